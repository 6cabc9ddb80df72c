package arithmetic

import (
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/loc"
)

// EqualLocation reports whether two locations are the same but for extensions of values,
// which the type repeats.
func EqualLocation(a, b *loc.Location) bool {
	ka, kb := a.Kind, b.Kind
	if ka == loc.KindValue {
		ka = loc.KindRegister
	}
	if kb == loc.KindValue {
		kb = loc.KindRegister
	}
	if ka != kb || len(a.Pieces) != len(b.Pieces) {
		return false
	}
	for i := range a.Pieces {
		if a.Pieces[i].BitSize != b.Pieces[i].BitSize || !EqualLocation(&a.Pieces[i].Loc, &b.Pieces[i].Loc) {
			return false
		}
	}
	return Equal(Unextended(a.Expr), Unextended(b.Expr))
}

// Unextended returns an expression without extensions and masks of whole bytes around it.
func Unextended(e *loc.Expr) *loc.Expr {
	for e != nil {
		switch {
		case e.Op == ops.ZExt || e.Op == ops.SExt:
			e = e.A
		case e.Op == ops.And && e.B.Op == ops.Const && (e.B.K == 0xff || e.B.K == 0xffff || e.B.K == 0xffffffff):
			e = e.A
		default:
			return e
		}
	}
	return nil
}

// Equal reports whether two expressions are the same.
func Equal(a, b *loc.Expr) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Op == b.Op && a.Size == b.Size && a.K == b.K && Equal(a.A, b.A) && Equal(a.B, b.B) && Equal(a.C, b.C)
}

// SameRegister reports whether a location depends on the register that another one is.
func SameRegister(l, reg *loc.Location) bool {
	found := false
	if reg.Kind == loc.KindRegister {
		l.Exprs(func(e *loc.Expr) {
			e.Walk(func(n *loc.Expr) { found = found || n.Op == ops.Reg && n.K == reg.Expr.K })
		})
	}
	return found
}
