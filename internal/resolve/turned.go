package resolve

import (
	"bytes"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/eval"
)

// Turned looks at the lists of the callers' variables. One that a statement behind the loop assigns has a view after it, and one that the loop compares
// with the number before it ends has the number. What a function writes as a number itself, in a body that is inlined there, is not what an outer one's variable is.
func (e *evidence) Turned() (bool, error) {
	s := e.s
	if s.Kind != entries.Inline || !s.Behind {
		return false, nil
	}
	return s.OfCallersWhile(func(x *entries.Scoped) (bool, error) {
		if x.Location.Form == 0 || x.Location.IsBlock() {
			return false, nil
		}
		first, before, is := false, false, false // the first one is what it was before the turn
		var between, at dw.LocEntry
		l := s.U.Locations(x.Location, x.Views)
		for v := (dw.LocEntry{}); l.Next(&v); {
			same := bytes.Equal(v.Expr, e.c.Expr)
			switch {
			case v.Lo > s.At.Addr:
			case v.Hi > s.At.Addr:
				is, at = is || same, v
			case between.Expr == nil && isValue(s.U, v.Expr):
				before = before || first && same
				first = first || !same
			case before && !isValue(s.U, v.Expr):
				between = v
			}
		}
		if !before || between.Expr == nil || !is || at.VLo > 0 {
			return false, nil
		}
		n, ok := eval.RegisterOf(between.Expr)
		if !ok {
			return true, nil
		}
		c, err := e.ev.codeOf(s)
		return err == nil && !c.TestedBefore(at.Lo, n), err
	}, e.isNumber)
}

// isNumber reports whether a caller's parameter may be the number that the site is passed: the debug information says so, or not what it is.
func (e *evidence) isNumber(x *entries.Scoped) bool {
	its, ok := e.s.Placed(x)
	return !ok || bytes.Equal(its.Expr, e.c.Expr)
}
