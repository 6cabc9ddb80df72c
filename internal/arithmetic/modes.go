package arithmetic

import (
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/loc"
)

// GCC's note of an operation has no mode: "breg5 0; lit5; div" divides numbers of 8, 16, 32 or 64 bits, with a sign or without one. An operand that was extended
// shows it, and so does what is done with the result. Where neither does, and the number can have bits or a sign that the mode has not, the value is not known.

// modes looks for operations whose mode makes a difference and is not shown.
type modes struct {
	registers Registers
	unclear   bool
	cut       uint64 // to so many bits what is around is cut, and extended, or 0
}

// expr returns an expression, of which so many lower bits matter, with the operands of shifts extended where the note shows from how many bits.
func (m *modes) expr(e *loc.Expr, bits uint64) *loc.Expr {
	if e == nil || e.Op == ops.Deref || e.Op == ops.Caller || e.Op == ops.Reg || e.Op == ops.Const {
		return e // an address has 64 bits
	}
	switch {
	case Extends(e):
		out, shifted := *e, *e.A
		if x := e.A.A; e.B.K == 56 && shiftsByte(x) {
			shifted.A = &loc.Expr{Op: ops.Shra, A: &loc.Expr{Op: ops.SExt, Size: 1, A: x.A}, B: x.B}
		} else {
			cut := m.cut
			m.cut = 64 - e.B.K
			shifted.A = m.expr(x, min(bits, m.cut))
			m.cut = cut
		}
		out.A = &shifted
		return &out
	case e.Op == ops.And && e.B.Op == ops.Const && e.B.K == 0xff && shiftsByte(e.A):
		return e // a bit-field
	}
	below := operandBits(e, bits)
	out := *e
	switch e.Op {
	case ops.Shra:
		if e.A.Op == ops.Deref && e.A.Size == 2 && e.B.Op == ops.Const {
			out.A = &loc.Expr{Op: ops.SExt, Size: e.A.Size, A: e.A}
			return &out
		}
		m.unclear = m.unclear || shiftsByte(e) || m.mayBeShort(e)
		if m.reaches(e, bits) {
			return m.asMade(e)
		}
	case ops.Shr:
		if m.reaches(e, bits) {
			return m.asMade(e)
		}
	case ops.Div, ops.Mod:
		if m.signed(e.A, bits) {
			return m.asMade(e)
		}
	case ops.Not:
		m.unclear = m.unclear || bits == 8 && e.A.Op == ops.Deref && e.A.Size == 1
	}
	if negated(e) {
		m.unclear = m.unclear || m.signed(e.C, bits)
	}
	out.A, out.B, out.C = m.expr(e.A, below), m.expr(e.B, below), m.expr(e.C, below)
	return &out
}

// asMade returns a shift to the right or a division with the width that the code's own has.
func (m *modes) asMade(e *loc.Expr) *loc.Expr {
	made, width := madeAs(m.registers, e)
	m.unclear = m.unclear || width == Unclear
	return made
}

// mayBeShort reports whether a shift to the right that keeps the sign, inside of what is cut to 8 or 16 bits, may be one of a number of so many: then its operand was cut too,
// and a register has more.
func (m *modes) mayBeShort(e *loc.Expr) bool {
	return m.cut != 0 && m.cut < 32 && e.A.Op == ops.Reg && e.B.Op == ops.Const && m.registers.Bits(e.A.K) >= m.cut
}

// shiftsByte reports whether an expression is a byte of memory shifted to the right by less than it has: that of a signed number, or an unsigned bit-field that ends
// with the byte.
func shiftsByte(e *loc.Expr) bool {
	return e.Op == ops.Shra && e.A.Op == ops.Deref && e.A.Size == 1 && e.B.Op == ops.Const && e.B.K < 8
}

// reaches reports whether a shift of a register to the right by a number, of whose result 32 bits or fewer matter, brings bits into it that an
// operation of 32 bits would not.
func (m *modes) reaches(e *loc.Expr, bits uint64) bool {
	whole := bits == 8 || bits == 16 || bits == 32 // a mask that leaves others would be narrower
	if e.A.Op != ops.Reg || e.B.Op != ops.Const || e.B.K >= 32 || !whole || bits+e.B.K <= 32 {
		return false
	}
	has := m.registers.Bits(e.A.K)
	return has > 32 || e.Op == ops.Shra && has > 31
}

// signed reports whether a number, from which 32 bits or fewer of a result are made, may have a sign, or may not.
func (m *modes) signed(e *loc.Expr, bits uint64) bool {
	switch e.Op {
	case ops.Deref:
		return e.Size <= 4 && bits <= 32
	case ops.ZExt, ops.SExt:
		return e.A.Op == ops.Deref && e.A.Size == e.Size && bits <= 32
	case ops.Reg:
		return bits <= 32 && m.registers.Bits(e.K) > 31
	case ops.Or, ops.Xor:
		// (n | -3000) / 9, with an n that has no sign: the number has one if it is an int, and has not if it is an unsigned.
		return bits <= 32 && e.B.Op == ops.Const && e.B.K == uint64(int64(int32(e.B.K))) && int64(e.B.K) < 0
	}
	return false
}

// negated reports whether an expression is the absolute value of a number.
func negated(e *loc.Expr) bool {
	return e.Op == ops.Select && e.A.Op == ops.Lt && e.B.Op == ops.Neg && Equal(e.B.A, e.C)
}
