package convention

import (
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/loc"
)

// movedUp reports whether a function takes fewer arguments than it declares, those behind one that is gone a place earlier each. LLVM before version 15 says so nowhere, and
// a parameter that is not passed can still have a note: of what the body assigns it, behind the function's first instruction. One that is passed can lack a note at that
// instruction too, if that is all which reads it. They differ in this: the place where one is passed is, at that instruction, no other parameter's. And where two lack a note, and
// the code reads the place of one and not that of the other, nothing says which of them it reads.
func movedUp(s *entries.Spot, e dw.Entry, params []param) (moved bool, err error) {
	var lacking []*loc.Location
	var noted []uint64 // registers
	err = s.U.Img.EachParam(e, func(x *entries.Var) (bool, error) {
		root, err := x.Ultimate(nil)
		if err != nil {
			return false, err
		}
		at := slices.IndexFunc(params, func(p param) bool { return p.root == root })
		if at < 0 || params[at].reason.Code != reasons.None {
			return true, nil
		}
		l := &params[at].loc
		switch expr, found := note(s, x); {
		case found && len(expr) == 0:
			lacking = append(lacking, l)
		case l.Kind != loc.KindRegister || !plain(expr, l.Expr.K):
			for n := range uint64(32) {
				if plain(expr, n) {
					noted = append(noted, n)
				}
			}
		}
		return true, nil
	})
	if err != nil || len(lacking) == 0 {
		return false, err
	}
	taken := 0
	for _, l := range lacking {
		if l.Kind == loc.KindRegister && slices.Contains(noted, l.Expr.K) {
			return true, nil
		}
		if s.Takes(l) {
			taken++
		}
	}
	return taken > 0 && taken < len(lacking), nil
}
