package entries

import (
	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/loc"
)

// passedIn returns the registers of a location, but for the stack pointer.
func (s *Spot) passedIn(l *loc.Location) (of body.Registers) {
	sp := uint64(s.U.Img.Arch().SP)
	l.Exprs(func(e *loc.Expr) {
		e.Walk(func(n *loc.Expr) {
			if n.Op == ops.Reg && n.K < 64 && n.K != sp {
				of |= 1 << n.K
			}
		})
	})
	return of
}

// Takes reports whether the code of the spot's function reads all registers of a location at its beginning, before it sets them: then they are arguments with a use.
func (s *Spot) Takes(l *loc.Location) bool {
	of := s.passedIn(l)
	return of != 0 && s.U.Img.Code.ReadsFirst(s.Fun.Start, of)
}

// Unset reports whether a location is in registers that the function's code does not set between its beginning and the spot.
func (s *Spot) Unset(l *loc.Location) bool {
	inMemory := false
	l.Exprs(func(e *loc.Expr) {
		e.Walk(func(n *loc.Expr) {
			inMemory = inMemory || n.Op == ops.Reg && n.K == uint64(s.U.Img.Arch().SP) || n.Op == ops.Deref
		})
	})
	of := s.passedIn(l)
	return !inMemory && l.Kind != loc.KindMemory && of != 0 && s.U.Img.Code.Unchanged(s.Fun.Start, s.At.Addr, of)
}
