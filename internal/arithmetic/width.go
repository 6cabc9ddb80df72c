// Package arithmetic says what the arithmetic of a compiler's note means: how wide it is, with which sign, which bits of a bit-field it is, and what of it was lost.
// DWARF's operations have the bits of an address, and compilers write those of the program's types by them as if these had as many.
package arithmetic

import (
	mathbits "math/bits"

	"github.com/go-delve/delve/pkg/dwarf/op"

	"github.com/bpfprologue/bpfprologue/internal/eval"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/types"
)

// GCC describes arithmetic of 32 bits by operations that have 64: for "(*p * 0x9e3779b1u) >> 19" it writes "deref_size 4; consts
// -0x61c8864f; mul; lit19; shr". It writes constants sign-extended from the width that the arithmetic has (GCC: gcc/dwarf2out.cc,
// mem_loc_descriptor), and each widening of an operand (a mask of 32 bits, a pair of shifts): where there is one, the arithmetic has 64 bits.
//
// The lower bits of a sum or a product do not depend on the width. What a shift to the right or a division moves down does.

// Width is how wide the arithmetic of a location is.
type Width uint8

const (
	// AsWritten means 64 bits, or that it makes no difference.
	AsWritten Width = iota
	// Narrow means 32 bits.
	Narrow
	// Unclear means one of the two.
	Unclear
)

// Registers is what the code says of registers where a note is read.
type Registers interface {
	// Bits returns how many lower bits of a register may not be 0.
	Bits(n uint64) uint64
	// Counts returns the least and the greatest number that a register can hold, if it is a loop's counter.
	Counts(n uint64) (least, most uint64, ok bool)
	// Given reports whether a register has what the function was given.
	Given(n uint64) bool
	// Near returns how many of the lowest bits of a register are 0 and how many lower ones may not be, by the instructions right before.
	Near(n uint64) (zeros, bits uint8, err error)
	// SetBefore reports whether one of the instructions right before computes a register from itself.
	SetBefore(n uint64) bool
	// Address reports whether a register holds an address.
	Address(n uint64) bool
	// Widths reports whether the code makes an operation, a shift to the right or a division, of the operands of an expression: as one of 32 bits, as one of 64,
	// or as one of so many bits, if that is not 0.
	Widths(e *loc.Expr, op loc.Op, bits uint8) (narrow, wide, short bool)
}

// unsigned has the divisions of numbers without a sign: GCC's notes do not tell them from others.
var unsigned = map[loc.Op]loc.Op{ops.Div: ops.UDiv, ops.Mod: ops.UMod}

// madeAs returns how wide a shift to the right or a division is, as the code makes it that is around: the compiler that lost its width in a note has computed the same
// there. It is Unclear if the code does not, or in several ways. made is the expression with operands of that width.
func madeAs(r Registers, e *loc.Expr) (made *loc.Expr, width Width) {
	shifts := e.Op == ops.Shr || e.Op == ops.Shra
	if shifts && e.B.Op == ops.Const && e.B.K >= 32 && e.B.K < 64 {
		return e, AsWritten // nobody shifts 32 bits so far
	}
	op := e.Op
	narrow, wide, _ := r.Widths(e, op, 0)
	if also, is := unsigned[op]; is && !narrow && !wide {
		op = also
		narrow, wide, _ = r.Widths(e, op, 0)
	}
	if e.Op == ops.Div && !narrow && !wide {
		op, narrow, wide = shifted(r, e)
	}
	if narrow == wide {
		return e, Unclear
	}
	out := *e
	if out.Op = op; wide {
		return &out, AsWritten
	}
	if out.A = extended(extensionFor[op], e.A); !shifts {
		out.B = extended(extensionFor[op], e.B)
	}
	return &out, Narrow
}

// shifted is madeAs for a division that the code makes a shift by the powers of two in the divisor, and a product: one of a number without a sign, or one that leaves
// no rest, as that of the distance of two pointers. Any other division of numbers with a sign adds something to negative ones first.
func shifted(r Registers, e *loc.Expr) (op loc.Op, narrow, wide bool) {
	if e.B.Op != ops.Const || e.B.K == 0 || e.B.K%2 != 0 || int64(e.B.K) < 0 {
		return ops.Div, false, false
	}
	by := &loc.Expr{Op: ops.Const, K: uint64(mathbits.TrailingZeros64(e.B.K))}
	narrow, wide, _ = r.Widths(&loc.Expr{Op: ops.Shra, A: e.A, B: by}, ops.Shra, 0)
	if op = ops.Div; !narrow && !wide {
		op = ops.UDiv
		narrow, wide, _ = r.Widths(&loc.Expr{Op: ops.Shr, A: e.A, B: by}, ops.Shr, 0)
	}
	return op, narrow, wide
}

// madeShort is madeAs for an operation that may also be one of so many bits.
func madeShort(r Registers, e *loc.Expr, bits uint8) (made *loc.Expr, width Width) {
	narrow, wide, short := r.Widths(e, e.Op, bits)
	if !short {
		return madeAs(r, e)
	}
	if narrow || wide || e.Op != ops.Shr && e.Op != ops.Shra {
		return e, Unclear
	}
	out := *e
	out.A = &loc.Expr{Op: extensionFor[e.Op], Size: bits / 8, A: e.A}
	return &out, Narrow
}

// extended returns the lower 32 bits of an operand, extended.
func extended(by loc.Op, x *loc.Expr) *loc.Expr {
	if x.Op == ops.Const || x.Op == by && x.Size <= 4 {
		return x
	}
	return &loc.Expr{Op: by, Size: 4, A: x}
}

// Note is what GCC wrote of a variable.
type Note struct {
	Expr      []byte
	Encoding  eval.Encoding
	WordSize  int
	Registers Registers
}

// Narrow makes the arithmetic of the note's location 32 bits wide where it is, and says what is known of its width.
func (n *Note) Narrow(l *loc.Location, t *types.Type) Width {
	size, err := t.ByteSize()
	if err != nil || size <= 0 {
		size = 8
	}
	switch l.Kind {
	case loc.KindValue:
		r, err := t.Resolve()
		if err == nil && n.WordSize == 8 {
			if e, decided := short(n.Registers, l.Expr, uint64(size), r.Signed); !decided {
				return Unclear
			} else if e != l.Expr {
				l.Expr = e
				return Narrow
			}
		}
		if err == nil && r.Kind == types.Bool {
			size = 0 // its lowest bit counts
		}
		return n.narrowValue(l, uint64(size))
	case loc.KindPieces:
		found := AsWritten
		for i := range l.Pieces {
			if p := &l.Pieces[i]; p.Loc.Kind == loc.KindValue {
				found = max(found, n.narrowValue(&p.Loc, (p.BitSize+7)/8))
			}
		}
		return found
	}
	return AsWritten
}

// narrowValue is Narrow for a number of so many bytes, which may be a piece of what the note describes.
func (n *Note) narrowValue(l *loc.Location, size uint64) Width {
	if size > 1 && negatesByte(l.Expr) || size == 1 && negatesTruth(n.Registers, l.Expr) || masksAll(n.Registers, l.Expr) {
		return Unclear
	}
	if n.WordSize != 8 {
		return AsWritten
	}
	bits := min(max(8*size, 1), 64)
	m := modes{registers: n.Registers}
	l.Expr = m.expr(l.Expr, bits)
	found := AsWritten
	if movesDown(l.Expr) && !n.special() {
		x := narrowing{bits: bits, registers: n.Registers}
		l.Expr = x.expr(l.Expr, bits)
		found = x.found
	}
	if m.unclear {
		found = Unclear
	}
	return found
}

// narrowing narrows an expression.
type narrowing struct {
	bits      uint64 // of the value
	found     Width
	registers Registers
}

// arithmetic reports whether an operation is a number, a register, memory, a parameter, arithmetic of two numbers, their comparison, a choice between numbers, or the end of a
// value or a piece. Operands of a comparison, and what is chosen, are noted as any others: "breg0 0; lit3; mod; const1u 255; and; lit0; ne" is of a byte, by gcc 11 to 16.
func arithmetic(c op.Opcode) bool {
	switch c {
	case op.DW_OP_bra, op.DW_OP_skip, op.DW_OP_swap, op.DW_OP_drop, op.DW_OP_over, op.DW_OP_dup,
		op.DW_OP_deref, op.DW_OP_deref_size, op.DW_OP_fbreg, op.DW_OP_bregx, op.DW_OP_piece, op.DW_OP_bit_piece, op.DW_OP_stack_value, eval.OpGNUParameterRef:
		return true
	}
	return c >= op.DW_OP_const1u && c <= op.DW_OP_consts || c >= op.DW_OP_and && c <= op.DW_OP_xor || c >= op.DW_OP_eq && c <= op.DW_OP_ne ||
		c >= op.DW_OP_lit0 && c <= op.DW_OP_lit31 || c >= op.DW_OP_breg0 && c <= op.DW_OP_breg31 || c >= op.DW_OP_reg0 && c <= op.DW_OP_reg31
}

// movesDown reports whether an expression moves upper bits down, and not in an address.
func movesDown(e *loc.Expr) bool {
	return e != nil && e.Op != ops.Deref && e.Op != ops.Caller && (extensionFor[e.Op] != 0 || movesDown(e.A) || movesDown(e.B) || movesDown(e.C))
}

// extensionFor has the operations that move upper bits of their first operand down, and how 32 bits of it are extended.
var extensionFor = map[loc.Op]loc.Op{
	ops.Shr: ops.ZExt, ops.UDiv: ops.ZExt, ops.UMod: ops.ZExt,
	ops.Shra: ops.SExt, ops.Div: ops.SExt, ops.Mod: ops.SExt,
}

// negatesByte reports whether an expression is the negation of all bits of a byte, extended by zeros: GCC 12 writes that of a truth value so,
// of which it means only the lowest bit.
func negatesByte(e *loc.Expr) bool {
	found := false
	e.Walk(func(n *loc.Expr) {
		byteOf := n.Op == ops.ZExt && n.Size == 1 || n.Op == ops.And && n.B.Op == ops.Const && n.B.K == 0xff
		found = found || byteOf && n.A.Op == ops.Not
	})
	return found
}

// negatesTruth reports whether an expression is the negation of all bits of a register that holds a truth value, by the code: of the others
// GCC means none.
func negatesTruth(r Registers, e *loc.Expr) bool {
	if e.Op != ops.Not || e.A.Op != ops.Reg {
		return false
	}
	_, bits, err := r.Near(e.A.K)
	return err == nil && bits == 1
}

// masksAll reports whether an expression moves up what a mask leaves of a register, and the register has none of these bits, by the code: that
// has computed there already what GCC says is to be computed from it, as in "and $7; shl $5".
func masksAll(r Registers, e *loc.Expr) bool {
	found := false
	e.Walk(func(n *loc.Expr) {
		if found || n.Op != ops.Shl || n.B.Op != ops.Const || n.A.Op != ops.And || n.A.A.Op != ops.Reg || n.A.B.Op != ops.Const {
			return
		}
		if mask := n.A.B.K; n.B.K < 64 && mask>>n.B.K == 0 && mask != 0 && r.SetBefore(n.A.A.K) {
			zeros, _, err := r.Near(n.A.A.K)
			found = err == nil && mask>>zeros == 0
		}
	})
	return found
}

// special reports whether the note has other operations than arithmetic, such as those with types: it is left as it is written.
func (n *Note) special() bool {
	for at := 0; at < len(n.Expr); {
		o, err := eval.Decode(n.Expr, at, n.Encoding)
		if err != nil || !arithmetic(op.Opcode(o.Code)) && !o.IsAddress() {
			return true
		}
		at = o.Next
	}
	return false
}

// operandBits returns how many lower bits matter of the operands of an operation, of whose result so many do.
func operandBits(e *loc.Expr, bits uint64) uint64 {
	switch {
	case e.Op >= ops.Eq:
		return 64
	case e.Op == ops.ZExt || e.Op == ops.SExt:
		return min(bits, 8*uint64(e.Size))
	case e.B == nil || e.B.Op != ops.Const:
	case e.Op == ops.And:
		return min(bits, uint64(64-mathbits.LeadingZeros64(e.B.K)))
	case e.Op == ops.Shl && e.B.K < bits:
		return bits - e.B.K
	case e.Op == ops.Shr || e.Op == ops.Shra:
		return bits + min(e.B.K, 64-bits)
	}
	return bits
}

// expr returns an expression, of which the lower bits matter, with the operands extended whose upper bits would not be there in
// arithmetic of 32 bits.
func (n *narrowing) expr(e *loc.Expr, bits uint64) *loc.Expr {
	if e == nil || e.Op == ops.Deref || e.Op == ops.Caller {
		return e // an address has 64 bits, and what a call passes has its own width
	}
	below := operandBits(e, bits)
	by, moves := extensionFor[e.Op]
	shifts := e.Op == ops.Shr || e.Op == ops.Shra
	switch {
	case moves && (!shifts || e.B.Op != ops.Const):
		below = 64
	case e.Op == ops.ZExt || e.Op == ops.SExt:
		below = 8 * uint64(e.Size)
	}
	out := *e
	out.A, out.B, out.C = n.expr(e.A, below), n.expr(e.B, below), n.expr(e.C, below)
	if !moves || Extends(e) {
		return &out
	}
	o := operandsOf(e.A)
	if o.register && !o.wide && (o.carries && n.cutsMore(e, bits) || !o.carries && (by == ops.ZExt || e.Op == ops.Shra) && n.cuts(e, bits)) {
		if bits == 8 && !o.carries && (e.Op != ops.Shra || !n.cutsMore(e, bits)) {
			n.found = Unclear // it may also be a truth value, of which only the lowest bit is meant, and not the byte
			return &out
		}
		made, width := madeShort(n.registers, &out, uint8(bits))
		n.found = max(n.found, width)
		return made
	}
	if below <= 32 {
		return &out
	}
	if o.small && by == ops.ZExt {
		n.found = Unclear // extended to 32 bits, or to 64
		return &out
	}
	if few(out.A) && (shifts || few(out.B)) {
		return &out
	}
	if !shifts {
		o.add(operandsOf(e.B))
	}
	switch {
	case o.wide, !o.memory && !o.register:
		return &out
	case o.register && e.Op == ops.Shr && o.negative:
		// Nobody multiplies 64 bits by a negative number and shifts that as an unsigned one.
	case o.register && (n.bits > 32 || !o.carries && by == ops.ZExt && !n.givenIn(e.A)):
		return &out // a register that is only shifted has zeros above a number of 32 bits, if the function has put it there
	case o.register:
		if n.hasAddress(e.A) {
			return &out // the distance of two of them
		}
		if n.counted(out.A) && (shifts || n.counted(out.B)) {
			return &out
		}
		made, width := madeAs(n.registers, &out)
		n.found = max(n.found, width)
		return made
	}
	if out.A = extended(by, out.A); !shifts {
		out.B = extended(by, out.B)
	}
	n.found = max(n.found, Narrow)
	return &out
}

// counted reports whether a number is a loop's counter plus or minus a constant, or a constant, and neither negative nor more than 31 bits: then all widths have the same
// bits of it.
func (n *narrowing) counted(e *loc.Expr) bool {
	const limit = 1 << 31
	switch {
	case e.Op == ops.Const:
		return e.K < limit
	case e.Op == ops.Reg:
		_, most, ok := n.registers.Counts(e.K)
		return ok && most < limit
	case e.Op == ops.Add && e.A.Op == ops.Reg && e.B.Op == ops.Const:
		least, most, ok := n.registers.Counts(e.A.K)
		return ok && least+e.B.K <= most+e.B.K && most+e.B.K < limit
	}
	return false
}

// few reports whether an expression itself says that a number has fewer than 32 bits and no sign: then all widths have the same bits of it.
func few(e *loc.Expr) bool {
	switch e.Op {
	case ops.Const:
		return e.K < 1<<31
	case ops.And:
		return few(e.A) || few(e.B)
	case ops.Or, ops.Xor:
		return few(e.A) && few(e.B)
	}
	return false
}

// hasAddress reports whether an address is one of the terms of an expression.
func (n *narrowing) hasAddress(e *loc.Expr) bool {
	switch e.Op {
	case ops.Addr:
		return true
	case ops.Reg:
		return n.registers.Address(e.K)
	case ops.Add, ops.Sub:
		return n.hasAddress(e.A) || n.hasAddress(e.B)
	}
	return false
}

// givenIn reports whether a register of an expression has upper bits that nobody says anything of.
func (n *narrowing) givenIn(e *loc.Expr) bool {
	found := false
	e.Walk(func(x *loc.Expr) { found = found || x.Op == ops.Reg && n.registers.Given(x.K) })
	return found
}

// cuts reports whether an operation, of whose result so many lower bits matter, may be one of as many bits, 8 or 16, and gives another result
// than that of all bits of the register that is its operand. A mask of other bits would not be there.
func (n *narrowing) cuts(e *loc.Expr, bits uint64) bool {
	shifts := e.Op == ops.Shr || e.Op == ops.Shra
	if bits != 8 && bits != 16 || shifts && (e.B.Op != ops.Const || e.B.K >= bits) {
		return false
	}
	if e.Op == ops.Shra {
		// With as many bits, a register's sign is not extended.
		return e.A.Op != ops.Reg || n.registers.Bits(e.A.K) <= bits || n.cutsMore(e, bits)
	}
	found := false
	e.A.Walk(func(x *loc.Expr) { found = found || x.Op == ops.Reg && n.registers.Bits(x.K) > bits })
	return found
}

// cutsMore reports whether the code makes a shift to the right, of what may have more bits than the result, as one of as many as that: of "n >>= 1" with a short n, and not of a number that
// is cut behind the shift. It is unclear which of these it is for a sum, if the code does not make the shift at all. A register is mostly that of a number that is cut, and two shifts a bit-field.
func (n *narrowing) cutsMore(e *loc.Expr, bits uint64) bool {
	if bits != 8 && bits != 16 || e.Op != ops.Shr && e.Op != ops.Shra || e.B.Op != ops.Const || e.B.K >= bits || e.A.Op == ops.Reg && n.registers.Bits(e.A.K) <= bits {
		return false
	}
	narrow, wide, short := n.registers.Widths(e, e.Op, uint8(bits))
	if !short && !narrow && !wide && e.A.Op != ops.Reg && e.A.Op != ops.Shl {
		n.found = Unclear
	}
	return short
}

// Extends reports whether an expression extends the lower bits of a number by two shifts, of 64 bits.
func Extends(e *loc.Expr) bool {
	return (e.Op == ops.Shra || e.Op == ops.Shr) && e.B.Op == ops.Const && e.B.K >= 32 && e.B.K < 64 &&
		e.A.Op == ops.Shl && e.A.B.Op == ops.Const && e.A.B.K == e.B.K
}

// operandsIn is what the operands of arithmetic are.
type operandsIn struct {
	memory   bool // of 32 bits or fewer
	small    bool // what was sign-extended from fewer bits than 32
	register bool
	wide     bool // memory of 64 bits, a number that is not sign-extended from 32, or what was extended: then the arithmetic has 64 bits
	carries  bool // it may have other upper bits than arithmetic of 32 bits
	negative bool // it is a product with a negative number
}

func (o *operandsIn) add(p operandsIn) {
	o.memory, o.register, o.wide, o.carries = o.memory || p.memory, o.register || p.register, o.wide || p.wide, o.carries || p.carries
	o.small = o.small || p.small
	o.negative = o.negative || p.negative
}

func operandsOf(e *loc.Expr) (o operandsIn) {
	if Extends(e) {
		return operandsIn{wide: true, small: e.Op == ops.Shra && e.B.K > 32}
	}
	switch e.Op {
	case ops.Deref:
		return operandsIn{memory: e.Size <= 4, wide: e.Size > 4}
	case ops.Reg:
		return operandsIn{register: true}
	case ops.Caller:
		return operandsIn{wide: true} // a parameter of 64 bits: others are extended
	case ops.Const:
		return operandsIn{wide: e.K != uint64(int64(int32(e.K)))}
	case ops.ZExt, ops.SExt:
		if e.Size <= 4 {
			return operandsIn{memory: true}
		}
	case ops.Add, ops.Sub, ops.Mul, ops.Shl, ops.Neg, ops.Not:
		o.carries, o.negative = true, e.Op == ops.Mul && e.B.Op == ops.Const && int64(e.B.K) < 0
	}
	for _, x := range [...]*loc.Expr{e.A, e.B, e.C} {
		if x != nil {
			o.add(operandsOf(x))
		}
	}
	return o
}

// DependsOnWidth reports whether upper bits of what an expression is computed from get into its lower ones, or decide something: these bits
// are not what was passed where that has fewer.
func DependsOnWidth(e *loc.Expr) bool {
	if e == nil || e.Op == ops.Deref || e.Op == ops.ZExt || e.Op == ops.SExt {
		return false
	}
	if extensionFor[e.Op] != 0 || eval.Comparison(e.Op) || e.Op == ops.Select {
		return hasUpperBits(e.A) || hasUpperBits(e.B) || hasUpperBits(e.C)
	}
	if e.Op == ops.Caller {
		return false // of its own width
	}
	return DependsOnWidth(e.A) || DependsOnWidth(e.B) || DependsOnWidth(e.C)
}

// hasUpperBits reports whether an expression may have other upper bits than what was passed: it is computed from a register, or from what a
// call passes, that is not made as wide as it was.
func hasUpperBits(e *loc.Expr) bool {
	switch {
	case e == nil || e.Op == ops.Deref || e.Op == ops.ZExt || e.Op == ops.SExt || e.Op == ops.Const || e.Op == ops.Addr:
		return false
	case e.Op == ops.Reg || e.Op == ops.Caller:
		return true
	}
	return hasUpperBits(e.A) || hasUpperBits(e.B) || hasUpperBits(e.C)
}
