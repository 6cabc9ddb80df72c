package exprtest

import (
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/loc"
)

// AsInCode reports whether a location has a shift to the right or a division of 32 bits of registers: GCC's expression does not say how wide that is, but the code
// around does, which the second reader does not read.
func AsInCode(l *loc.Location) (found bool) {
	l.Exprs(func(e *loc.Expr) {
		e.Walk(func(n *loc.Expr) {
			switch n.Op {
			case ops.Shr, ops.Shra, ops.Div, ops.Mod, ops.UDiv, ops.UMod:
				if (n.A.Op == ops.ZExt || n.A.Op == ops.SExt) && n.A.Size == 4 {
					n.A.A.Walk(func(x *loc.Expr) { found = found || x.Op == ops.Reg })
				}
			}
		})
	})
	return found
}
