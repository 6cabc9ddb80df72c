package entries

import (
	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/loc"
)

// Takes reports whether the code of the spot's function reads all registers of a location at its beginning, before it sets them: then they are arguments with a use.
func (s *Spot) Takes(l *loc.Location) bool {
	sp := uint64(s.U.Img.Arch().SP)
	var of body.Registers
	l.Exprs(func(e *loc.Expr) {
		e.Walk(func(n *loc.Expr) {
			if n.Op == ops.Reg && n.K < 64 && n.K != sp {
				of |= 1 << n.K
			}
		})
	})
	return of != 0 && s.U.Img.Code.ReadsFirst(s.Fun.Start, of)
}
