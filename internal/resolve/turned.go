package resolve

import (
	"bytes"

	"github.com/bpfprologue/bpfprologue/internal/dw"
)

// Turned looks at the lists of the callers' variables.
func (e *evidence) Turned() (bool, error) {
	s := e.s
	if s.Kind != Inline || !s.Behind {
		return false, nil
	}
	return s.ofCallers(func(x *Scoped) (bool, error) {
		if x.Location.IsBlock() {
			return false, nil
		}
		before, between, is := false, false, false
		l := s.U.Locations(x.Location, x.Views)
		for v := (dw.LocEntry{}); l.Next(&v); {
			same := bytes.Equal(v.Expr, e.c.Expr)
			switch {
			case v.Lo > s.At.Addr:
			case v.Hi > s.At.Addr:
				is = is || same
			case same && !between:
				before = true
			case before && !s.U.isValue(v.Expr):
				between = true
			}
		}
		return before && between && is, nil
	})
}
