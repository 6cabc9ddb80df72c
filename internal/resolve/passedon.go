package resolve

import (
	"bytes"
	"math"

	"github.com/bpfprologue/bpfprologue/internal/arithmetic"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/loc"
)

// PassedOn reports whether a variable of a function that the site is inlined into is in the same place at the site, or is what the
// parameter points to.
func (e *evidence) PassedOn() (bool, error) {
	return e.passed(math.MaxUint64)
}

func (e *evidence) PassedBefore() (bool, error) { return e.passed(e.s.At.Addr) }

// passed reports what PassedOn does, of the variables whose places are noted before an address.
func (e *evidence) passed(before uint64) (bool, error) {
	if err := e.readCallers(); err != nil {
		return false, err
	}
	pointed := e.v.Loc.Kind == loc.KindValue && e.ev.frameAddress(e.v.Loc.Expr)
	for i := range e.ev.callers {
		its := &e.ev.callers[i]
		if its.Lo >= before {
			continue
		}
		if bytes.Equal(its.Expr, e.c.Expr) {
			return true, nil
		}
		if !pointed {
			continue
		}
		var l loc.Location
		r, err := e.ev.Locate(its.Expr, its.Sec, its.Off, &l)
		if err == nil && r.Code == reasons.None && l.Kind == loc.KindMemory && arithmetic.Equal(l.Expr, e.v.Loc.Expr) {
			return true, nil
		}
	}
	return false, nil
}

// placedVariable is a variable of a function that the site is inlined into, and where it is.
type placedVariable struct {
	entries.Chosen
	x *entries.Scoped
}

// readCallers finds where the variables of the functions are that the site is inlined into.
func (e *evidence) readCallers() error {
	if e.ev.callersRead {
		return nil
	}
	var out []placedVariable
	_, err := e.s.OfCallers(func(x *entries.Scoped) (bool, error) {
		if its, ok := e.s.Placed(x); ok {
			out = append(out, placedVariable{its, x})
		}
		return false, nil
	})
	if err == nil {
		e.ev.callers, e.ev.callersRead = out, true
	}
	return err
}
