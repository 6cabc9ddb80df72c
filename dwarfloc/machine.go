package dwarfloc

import (
	"bytes"

	"github.com/go-delve/delve/pkg/dwarf/op"
)

// machine is DWARF's stack machine at one point of one expression.
type machine struct {
	ev    *evaluator
	b     buf
	stack []operand
	sec   string // where the expression stands, for errors
	off   uint64
}

// terminator is what a part of a composite location ends with.
type terminator uint8

const (
	endOfExpr terminator = iota
	endOfPiece
)

func (m *machine) damaged(what string) *stop {
	return &stop{err: m.ev.u.img.errorf(m.sec, m.off, "invalid expression: %s", what)}
}

// location evaluates to the end of the expression: a single location, or one that
// is put together from pieces.
func (m *machine) location() (Location, *stop) {
	var pieces []Piece
	for {
		loc, end, st := m.simple()
		if st != nil {
			return Location{}, st
		}
		if end == endOfExpr {
			if pieces == nil {
				if loc.Kind == KindNone {
					return loc, m.damaged("nothing is left on the stack")
				}
				return loc, nil
			}
			if loc.Kind != KindNone {
				return loc, m.damaged("a part that is no piece follows pieces")
			}
			return Location{Kind: KindPieces, Pieces: pieces}, nil
		}
		p, st := m.piece(loc)
		if st != nil {
			return Location{}, st
		}
		if len(pieces) >= maxPieces {
			return Location{}, unsupported("more than %d pieces", maxPieces)
		}
		pieces = append(pieces, p)
		m.stack = m.stack[:0]
		if m.b.p == len(m.b.d) {
			return Location{Kind: KindPieces, Pieces: pieces}, nil
		}
	}
}

// piece reads the operation that follows a part of a composite location.
func (m *machine) piece(loc Location) (Piece, *stop) {
	var p Piece
	if m.b.u8() == opBitPiece {
		p.BitSize, p.BitOffset = m.b.uleb(), m.b.uleb()
	} else {
		n := m.b.uleb()
		if n > 1<<32 {
			return p, m.damaged("a piece of absurd size")
		}
		p.BitSize = 8 * n
	}
	if m.b.bad {
		return p, m.damaged("a piece is cut short")
	}
	if p.BitSize == 0 || p.BitSize > 1<<32 || p.BitOffset > 1<<32 {
		return p, m.damaged("a piece of no or absurd size")
	}
	p.Loc = loc
	return p, nil
}

// atEnd tells whether a part of the location ends here, and how.
func (m *machine) atEnd() (terminator, bool) {
	if m.b.p >= len(m.b.d) {
		return endOfExpr, true
	}
	switch c := m.b.d[m.b.p]; c {
	case opBitPiece, uint8(op.DW_OP_piece):
		return endOfPiece, true
	}
	return 0, false
}

// finish is for operations that must be the last of a part.
func (m *machine) finish(loc Location) (Location, terminator, *stop) {
	// DW_OP_GNU_uninit may follow: the variable has no value yet, its place is known.
	if m.b.p < len(m.b.d) && m.b.d[m.b.p] == opGNUUninit {
		m.b.p++
	}
	end, ok := m.atEnd()
	if !ok {
		return loc, 0, m.damaged(opName(m.b.d[m.b.p]) + " follows a finished location")
	}
	return loc, end, nil
}

// simple evaluates one part: to the end of the expression or to a piece.
func (m *machine) simple() (Location, terminator, *stop) {
	ev := m.ev
	for {
		if end, ok := m.atEnd(); ok {
			if len(m.stack) == 0 {
				return Location{}, end, nil
			}
			return Location{Kind: KindMemory, Expr: m.stack[len(m.stack)-1].e}, end, nil
		}
		if ev.ops++; ev.ops > maxOps {
			return Location{}, 0, unsupported("an expression that runs more than %d operations", maxOps)
		}
		if len(m.stack) > maxStack {
			return Location{}, 0, unsupported("an expression with more than %d values on its stack", maxStack)
		}
		code := m.b.u8()
		switch {
		case code >= uint8(op.DW_OP_reg0) && code <= uint8(op.DW_OP_reg31), code == uint8(op.DW_OP_regx):
			n := uint64(code - uint8(op.DW_OP_reg0))
			if code == uint8(op.DW_OP_regx) {
				n = m.b.uleb()
			}
			if m.b.bad {
				return Location{}, 0, m.damaged("an operand is cut short")
			}
			if st := ev.checkRegister(n); st != nil {
				return Location{}, 0, st
			}
			return m.finish(Location{Kind: KindRegister, Expr: ev.register(n, 0)})
		case code == opStackValue:
			if len(m.stack) == 0 {
				return Location{}, 0, m.damaged("DW_OP_stack_value on an empty stack")
			}
			e := m.stack[len(m.stack)-1].e
			kind := KindValue
			if e.Op == OpConst {
				kind = KindConstant
			}
			return m.finish(Location{Kind: kind, Expr: e})
		case code == opImplicitValue:
			b := m.b.bytes(m.b.uleb())
			if m.b.bad {
				return Location{}, 0, m.damaged("the block of DW_OP_implicit_value is cut short")
			}
			return m.finish(ev.bytesLocation(b))
		case code == opImplicitPointer, code == opGNUImplicitPtr:
			// The reference has the size of an address in DWARF 2.
			off := uint64(0)
			if ev.u.version <= 2 {
				off = m.b.uint(int(ev.u.addrSize))
			} else {
				off = m.b.offset(ev.u.dwarf64)
			}
			delta := m.b.sleb()
			if m.b.bad {
				return Location{}, 0, m.damaged("an operand is cut short")
			}
			return m.finish(Location{Kind: KindImplicitPointer, Target: off, TargetOffset: delta})
		case code == uint8(op.DW_OP_skip), code == uint8(op.DW_OP_bra):
			delta := int(int16(m.b.u16()))
			to := m.b.p + delta
			if m.b.bad || to < 0 || to > len(m.b.d) {
				return Location{}, 0, m.damaged("a branch leaves the expression")
			}
			if code == uint8(op.DW_OP_skip) {
				m.b.p = to
				continue
			}
			cond, st := m.pop()
			if st != nil {
				return Location{}, 0, st
			}
			if cond.e.Op == OpConst {
				if cond.e.K != 0 {
					m.b.p = to
				}
				continue
			}
			loc, st := m.branch(cond.e, to)
			return loc, endOfExpr, st
		default:
			if st := m.operation(code); st != nil {
				return Location{}, 0, st
			}
			if m.b.bad {
				return Location{}, 0, m.damaged("an operand of " + opName(code) + " is cut short")
			}
		}
	}
}

// branch follows both ways of a conditional branch to the end of the expression
// and joins what they found.
func (m *machine) branch(cond *Expr, to int) (Location, *stop) {
	ev := m.ev
	if ev.depth++; ev.depth > maxNesting {
		return Location{}, unsupported("more than %d branches", maxNesting)
	}
	defer func() { ev.depth-- }()
	way := func(p int) (Location, *stop) {
		w := machine{ev: ev, b: m.b, sec: m.sec, off: m.off, stack: append([]operand(nil), m.stack...)}
		w.b.p = p
		loc, end, st := w.simple()
		if st == nil && end != endOfExpr {
			st = unsupported("a branch in a location with pieces")
		}
		if st == nil && loc.Kind == KindNone {
			st = m.damaged("nothing is left on the stack")
		}
		return loc, st
	}
	yes, st := way(to)
	if st != nil {
		return Location{}, st
	}
	no, st := way(m.b.p)
	if st != nil {
		return Location{}, st
	}
	if (yes.Kind == KindMemory) != (no.Kind == KindMemory) || yes.Expr == nil || no.Expr == nil {
		return Location{}, unsupported("a branch between different kinds of locations")
	}
	kind := KindValue
	if yes.Kind == KindMemory {
		kind = KindMemory
	}
	return Location{Kind: kind, Expr: ev.node(Expr{Op: OpSelect, A: cond, B: yes.Expr, C: no.Expr})}, nil
}

// bytesLocation is a constant of up to 8 bytes, or known bytes.
func (ev *evaluator) bytesLocation(b []byte) Location {
	if len(b) > 0 && len(b) <= 8 {
		return Location{Kind: KindConstant, Expr: ev.constant(bytesUint(b, ev.u.img.be))}
	}
	return Location{Kind: KindBytes, Bytes: bytes.Clone(b)} // b goes with the file
}

func (m *machine) push(e *Expr, t *baseType) { m.stack = append(m.stack, operand{e, t}) }

func (m *machine) pop() (operand, *stop) {
	if len(m.stack) == 0 {
		return operand{}, m.damaged("the stack is empty")
	}
	v := m.stack[len(m.stack)-1]
	m.stack = m.stack[:len(m.stack)-1]
	return v, nil
}

// pick copies the value n below the top.
func (m *machine) pick(n int) *stop {
	if n >= len(m.stack) {
		return m.damaged("the stack is not that deep")
	}
	m.stack = append(m.stack, m.stack[len(m.stack)-1-n])
	return nil
}

// binaryOps are the operations with two operands: on values without a type, and
// on values of signed and unsigned types.
var binaryOps = map[uint8]struct{ generic, signed, unsigned ExprOp }{
	uint8(op.DW_OP_and):   {OpAnd, OpAnd, OpAnd},
	uint8(op.DW_OP_or):    {OpOr, OpOr, OpOr},
	uint8(op.DW_OP_xor):   {OpXor, OpXor, OpXor},
	uint8(op.DW_OP_plus):  {OpAdd, OpAdd, OpAdd},
	uint8(op.DW_OP_minus): {OpSub, OpSub, OpSub},
	uint8(op.DW_OP_mul):   {OpMul, OpMul, OpMul},
	uint8(op.DW_OP_div):   {OpDiv, OpDiv, OpUDiv},
	uint8(op.DW_OP_mod):   {OpUMod, OpMod, OpUMod},
	uint8(op.DW_OP_shl):   {OpShl, OpShl, OpShl},
	uint8(op.DW_OP_shr):   {OpShr, OpShr, OpShr},
	uint8(op.DW_OP_shra):  {OpShra, OpShra, OpShra},
	uint8(op.DW_OP_eq):    {OpEq, OpEq, OpEq},
	uint8(op.DW_OP_ne):    {OpNe, OpNe, OpNe},
	uint8(op.DW_OP_lt):    {OpLt, OpLt, OpULt},
	uint8(op.DW_OP_le):    {OpLe, OpLe, OpULe},
	uint8(op.DW_OP_gt):    {OpGt, OpGt, OpUGt},
	uint8(op.DW_OP_ge):    {OpGe, OpGe, OpUGe},
}

// binary applies an operation with two operands.
func (m *machine) binary(code uint8) *stop {
	if len(m.stack) < 2 {
		return m.damaged("the stack is empty")
	}
	a, b := m.stack[len(m.stack)-2], m.stack[len(m.stack)-1]
	m.stack = m.stack[:len(m.stack)-2]
	o := binaryOps[code]
	kind := o.generic
	t := a.typ
	if t != nil {
		kind = o.unsigned
		if t.signed {
			kind = o.signed
		}
	}
	shift := kind == OpShl || kind == OpShr || kind == OpShra
	ae, be := a.e, b.e
	if t != nil && b.typ == nil && !shift {
		// DWARF wants operands of one type, but LLVM writes a constant operand of a
		// converted value without one (DW_OP_convert; DW_OP_lit7; DW_OP_and, seen with
		// clang 14): it means a number of that type.
		if be.Op != OpConst {
			return m.damaged(opName(code) + " on operands of different types")
		}
		be = m.ev.extend(be, t.size, t.signed)
	} else if !shift && b.typ != nil && (t == nil || t.size != b.typ.size || t.signed != b.typ.signed) {
		return m.damaged(opName(code) + " on operands of different types")
	}
	// A logical shift of a signed value, and an arithmetic one of an unsigned
	// value, look at the value as its type's width holds it.
	switch {
	case kind == OpShr && t != nil && t.signed:
		ae = m.ev.extend(ae, t.size, false)
	case kind == OpShra && t != nil && !t.signed:
		ae = m.ev.extend(ae, t.size, true)
	}
	e := m.ev.binary(kind, ae, be)
	if kind >= OpEq {
		t = nil // comparisons give a generic value
	}
	m.push(m.ev.wrap(e, t), t)
	return nil
}

func (m *machine) unary(o ExprOp) *stop {
	v, st := m.pop()
	if st != nil {
		return st
	}
	e := m.ev.node(Expr{Op: o, A: v.e})
	if v.e.Op == OpConst {
		k := -v.e.K
		if o == OpNot {
			k = ^v.e.K
		}
		e = m.ev.constant(k)
	}
	m.push(m.ev.wrap(e, v.typ), v.typ)
	return nil
}
