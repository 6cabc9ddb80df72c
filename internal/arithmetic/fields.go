package arithmetic

import (
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/loc"
)

// GCC notes a bit-field that does not begin with its byte as extracted by two shifts (gcc/cfgexpand.cc, expand_debug_expr). They are written as if an address had 8
// bits, the number of its bytes: "lit6; shl; lit7; shr" are the bits from 7-6 on, of which there are 8-7. And an unsigned field has the shift that keeps signs, a signed
// one the other.

// Extracted returns an expression in which the extraction of a bit-field of a byte has its meaning.
func Extracted(e *loc.Expr) *loc.Expr {
	number := func(k uint64) *loc.Expr { return &loc.Expr{Op: ops.Const, K: k} }
	if Extends(e) && e.B.K == 56 && e.A.A.Op == ops.Shr && e.A.A.B.Op == ops.Const && e.A.A.B.K > 0 && e.A.A.B.K < 8 && e.A.A.A.Op != ops.Shl {
		// The field ends with the byte: there is nothing to shift up.
		up := number(56 + e.A.A.B.K)
		return &loc.Expr{Op: ops.Shra, A: &loc.Expr{Op: ops.Shl, A: e.A.A, B: up}, B: up}
	}
	inner, unsigned := e, false
	switch {
	case e.Op == ops.And && e.B.Op == ops.Const && e.B.K == 0xff && e.A.Op == ops.Shra:
		inner, unsigned = e.A, true
	case Extends(e) && e.B.K == 56 && e.A.A.Op == ops.Shr:
		inner = e.A.A
	default:
		return e
	}
	if inner.B.Op != ops.Const || inner.A.Op != ops.Shl || inner.A.B.Op != ops.Const {
		return e
	}
	down, up := inner.B.K, inner.A.B.K
	if down >= 8 || up == 0 || up > down {
		return e
	}
	field := &loc.Expr{Op: ops.Shr, A: inner.A.A, B: number(down - up)}
	if down == up {
		field = inner.A.A
	}
	if unsigned {
		return &loc.Expr{Op: ops.And, A: field, B: number(1<<(8-down) - 1)}
	}
	return &loc.Expr{Op: ops.Shra, A: &loc.Expr{Op: ops.Shl, A: field, B: number(56 + down)}, B: number(56 + down)}
}

// short returns an expression for a parameter of 8 or 16 bits, which may have a sign, in which two shifts have their meaning. Nothing extends memory of as many bits there, so
// the shifts have no more of them either. A bit-field is the same, whichever of the two shifts GCC has written: the bits that are left, with the sign of the parameter.
// decided is false for what can be two numbers: the shifts are those of a register, which may have more bits than the parameter. Or one shift is left of a signed bit-field that
// ends with its byte, which "(signed char)(c >> 6)" has too.
func short(r Registers, e *loc.Expr, bytes uint64, signed bool) (out *loc.Expr, decided bool) {
	bits := 8 * bytes
	if bytes != 1 && bytes != 2 || e.Op != ops.Shr && e.Op != ops.Shra || e.B.Op != ops.Const || e.B.K == 0 || e.B.K >= bits {
		return e, true
	}
	if e.A.Op == ops.Deref && uint64(e.A.Size) == bytes {
		return e, bytes != 1 || !signed || e.Op != ops.Shr
	}
	if e.A.Op != ops.Shl || e.A.B.Op != ops.Const || e.A.B.K == 0 || e.A.B.K >= bits {
		return e, true
	}
	switch x := e.A.A; {
	case x.Op == ops.Reg:
		return e, r.Bits(x.K)+e.A.B.K <= bits && !signed
	case x.Op != ops.Deref || uint64(x.Size) != bytes:
		return e, true
	}
	number := func(k uint64) *loc.Expr { return &loc.Expr{Op: ops.Const, K: k} }
	op := ops.Shr
	if signed {
		op = ops.Shra
	}
	return &loc.Expr{Op: op, A: &loc.Expr{Op: ops.Shl, A: e.A.A, B: number(64 - bits + e.A.B.K)}, B: number(64 - bits + e.B.K)}, true
}

// MaskBytes returns how many whole bytes a mask keeps, or 0 if it keeps others.
func MaskBytes(mask uint64) int64 {
	for n := int64(1); n < 8; n++ {
		if mask == 1<<(8*n)-1 {
			return n
		}
	}
	return 0
}
