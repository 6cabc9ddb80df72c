package exprtest

import (
	"math/bits"

	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/loc"
)

// AsInCode reports whether a location has a shift to the right or a division of 32 bits of registers: GCC's expression does not say how wide that is, but the code
// around does, which the second reader does not read.
func AsInCode(l *loc.Location) (found bool) {
	if _, cut := CutInCode(l); cut {
		return true
	}
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

// CutInCode returns the mask of a location that is lower bits of a byte or a word, or of a register, and no whole bytes: GCC's expression does not say that these are a
// bit-field's, but the code around does.
func CutInCode(l *loc.Location) (mask uint64, cut bool) {
	if l.Kind != loc.KindValue || l.Expr.Op != ops.And || l.Expr.B.Op != ops.Const {
		return 0, false
	}
	x, mask := l.Expr.A, l.Expr.B.K
	return mask, mask < 0xffff && mask != 0xff && mask&(mask+1) == 0 && (x.Op == ops.Reg || x.Op == ops.Deref && x.Size <= 2)
}

// SmallFor returns how many bits registers may have for arithmetic of 32 bits and of 64 to give the same in a location: sums of a few are less than 31 bits, and products
// with the numbers that are factors.
func SmallFor(l *loc.Location) int {
	most := uint64(0)
	l.Exprs(func(e *loc.Expr) {
		e.Walk(func(n *loc.Expr) {
			if n.Op == ops.Mul && n.B.Op == ops.Const {
				most = max(most, n.B.K)
			}
		})
	})
	const sums = 28
	return max(min(sums, 31-bits.Len64(most)), 1)
}
