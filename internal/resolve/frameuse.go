package resolve

import (
	"slices"

	"github.com/go-delve/delve/pkg/dwarf/op"

	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/eval"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/types"
)

// LLVM can lose the read of a spilled value: it then describes "the slot's contents divided
// by 3" as the slot's address divided by 3 (seen with clang 14 to 16 at -O3; gdb prints
// that). Such a value makes no sense, which shows in two ways: only adding to an address
// gives an address, and a number is no address.

// misusesFrame reports whether a value is computed from the address of a stack slot in a way
// in which no program computes.
func (ev *Evaluator) misusesFrame(l *loc.Location, t *types.Type) bool {
	switch l.Kind {
	case loc.KindValue:
	case loc.KindPieces:
		for i := range l.Pieces {
			if p := &l.Pieces[i]; p.Loc.Kind == loc.KindValue && ev.frameArithmetic(p.Loc.Expr) {
				return true
			}
		}
		return false
	default:
		return false
	}
	if ev.frameArithmetic(l.Expr) {
		return true
	}
	r, err := t.Resolve()
	if err != nil {
		return false
	}
	switch r.Kind {
	case types.Int, types.Bool, types.Char, types.Enum:
		return ev.frameAddress(unextended(l.Expr))
	}
	return false
}

// frameAddress reports whether an expression is a fixed place in the stack frame: the stack
// pointer, or the register that the canonical frame address is relative to, plus a number.
func (ev *Evaluator) frameAddress(e *loc.Expr) bool {
	if e != nil && e.Op == ops.Add && e.B.Op == ops.Const {
		e = e.A
	}
	if e == nil || e.Op != ops.Reg {
		return false
	}
	frame, ok := ev.spot.U.Img.Code.FramePointer()
	return e.K == uint64(ev.Arch.SP) || ok && e.K == frame && ev.framedBy(e.K)
}

// frameArithmetic reports whether an expression, without what it reads from memory, does
// other arithmetic on a frame address than adding and aligning.
func (ev *Evaluator) frameArithmetic(e *loc.Expr) bool {
	if e == nil || e.Op == ops.Deref || e.Op == ops.Reg || e.Op == ops.Const {
		return false
	}
	switch e.Op {
	case ops.Mul, ops.Div, ops.UDiv, ops.Mod, ops.UMod, ops.Or, ops.Xor, ops.Shl, ops.Shr, ops.Shra, ops.Neg, ops.Not, ops.Clz:
		if ev.frameAddress(unextended(e.A)) || ev.frameAddress(unextended(e.B)) {
			return true
		}
	case ops.ZExt, ops.SExt:
		if int(e.Size) < ev.Arch.WordSize && ev.frameAddress(unextended(e.A)) {
			return true // a part of an address is none
		}
	case ops.And:
		if e.B.Op == ops.Const && int64(e.B.K) >= 0 && ev.frameAddress(unextended(e.A)) && e.B.K != 0xffffffff {
			return true
		}
	}
	return ev.frameArithmetic(e.A) || ev.frameArithmetic(e.B) || ev.frameArithmetic(e.C)
}

// LLVM also forgets to say that what it describes is a value: for a char, a short or a structure of 4 bytes that is in a register of which
// the calling convention says that it is extended, clang 19 and 22 write conversions to the bits of the type, and nothing after them
// (mips64el, ppc64el, s390x). That makes the number an address.

// numberAsAddress reports whether an object is at an address that is a number of fewer bytes than a word has, or a part of it is.
func numberAsAddress(l *loc.Location, word int) bool {
	switch l.Kind {
	case loc.KindMemory:
		return (l.Expr.Op == ops.ZExt || l.Expr.Op == ops.SExt) && int(l.Expr.Size) < word
	case loc.KindPieces:
		return slices.ContainsFunc(l.Pieces, func(p loc.Piece) bool { return numberAsAddress(&p.Loc, word) })
	}
	return false
}

// LLVM can also lose the width of a value: it then describes "the upper byte of 64 bits" of a number
// that has fewer (seen with clang 19 at -O1 to -O3, for a member of a structure that is passed in a
// register). What is left of it is 0, whatever the register holds. A compiler that knew that the
// member is 0 would have said so.

// shiftedOut drops the values, and parts of a value, of which no bit is left. It reports whether
// nothing remains.
func shiftedOut(l *loc.Location) bool {
	switch l.Kind {
	case loc.KindValue:
		return alwaysZero(l.Expr)
	case loc.KindPieces:
		for i := range l.Pieces {
			if p := &l.Pieces[i]; p.Loc.Kind == loc.KindValue && alwaysZero(p.Loc.Expr) {
				p.Loc, p.Reason = loc.Location{}, loc.Reason{Code: reasons.Contradictory, Detail: nothingLeft}
			}
		}
	}
	return false
}

const nothingLeft = "all bits of the value are shifted out"

// alwaysZero reports whether an expression is 0 though it depends on the machine.
func alwaysZero(e *loc.Expr) bool {
	depends := false
	e.Walk(func(n *loc.Expr) { depends = depends || n.Op == ops.Reg || n.Op == ops.Deref })
	return depends && possibleOnes(e) == 0
}

// possibleOnes returns the bits of an expression's value that may be 1.
func possibleOnes(e *loc.Expr) uint64 {
	const all = 1<<64 - 1
	low := func(size uint8) uint64 {
		if size == 0 || size >= 8 {
			return all
		}
		return 1<<(8*size) - 1
	}
	by := func() (uint64, bool) { return e.B.K, e.B.Op == ops.Const && e.B.K < 64 }
	switch e.Op {
	case ops.Const:
		return e.K
	case ops.Deref:
		return low(e.Size)
	case ops.ZExt:
		return possibleOnes(e.A) & low(e.Size)
	case ops.And:
		return possibleOnes(e.A) & possibleOnes(e.B)
	case ops.Or, ops.Xor:
		return possibleOnes(e.A) | possibleOnes(e.B)
	case ops.Shl:
		if n, ok := by(); ok {
			return possibleOnes(e.A) << n
		}
	case ops.Shr:
		if n, ok := by(); ok {
			return possibleOnes(e.A) >> n
		}
	}
	return all
}

// And it can lose the extension of a number: it describes a parameter of 64 bits as the slot to which it spilled the 32 of them that the caller has, from
// which each use extends them again (seen with clang 14 at -O1, -O2 and -Os). The code stores less to that slot than the type has.

// storedNarrow reports whether an object of an inlined body is in a slot of the frame to which the code stores fewer bytes alone.
func (ev *Evaluator) storedNarrow(l *loc.Location, t *types.Type) (bool, error) {
	if l.Kind != loc.KindMemory || ev.spot.Kind != entries.Inline {
		return false, nil
	}
	if r, err := t.Resolve(); err != nil || r.Kind != types.Int && r.Kind != types.Enum && r.Kind != types.Pointer {
		return false, nil //nolint:nilerr // the type is asked for elsewhere
	}
	var few [2]body.Slot
	slots := slotsOf(few[:0], l, t)
	if len(slots) != 1 || slots[0].Size < 2 || slots[0].Base != uint64(ev.Arch.SP) && !ev.framedBy(slots[0].Base) {
		return false, nil
	}
	c, err := ev.codeOf(ev.spot)
	return err == nil && c.StoredNarrow(slots[0]), err
}

// And it can describe what it has left of a number: bits that the body cannot use are not computed, and become an operand that is 0 (seen with clang 15 to 22
// at -O1 and -O2). Nobody adds 0 on purpose.

// addsNothing reports whether an expression has an operation with 0 that changes nothing.
func (ev *Evaluator) addsNothing(expr []byte) bool {
	zero := false
	for at := 0; at < len(expr); {
		o, err := eval.Decode(expr, at, ev.Encoding)
		if err != nil {
			return false
		}
		c := op.Opcode(o.Code)
		if zero && (c == op.DW_OP_or || c == op.DW_OP_xor || c == op.DW_OP_plus) {
			return true
		}
		zero = c == op.DW_OP_lit0 || c >= op.DW_OP_const1u && c <= op.DW_OP_consts && o.A == 0
		at = o.Next
	}
	return false
}
