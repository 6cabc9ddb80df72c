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

// MaskBytes returns how many whole bytes a mask keeps, or 0 if it keeps others.
func MaskBytes(mask uint64) int64 {
	for n := int64(1); n < 8; n++ {
		if mask == 1<<(8*n)-1 {
			return n
		}
	}
	return 0
}
