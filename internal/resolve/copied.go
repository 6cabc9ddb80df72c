package resolve

import (
	"bytes"
	"math"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/eval"
)

// Copied looks for the next way into the body, on either side of this one, of which the list says the same, and from which execution goes on to this one, or from this one to it; and for a
// caller's variable that has the parameter's number at both, and another one in between. What is no number is with the numbers that are passed beside it. A loop that sets its variable to the
// same number in each turn refutes it, which is not looked at.
func (e *evidence) Copied() (bool, error) {
	s := e.s
	if s.Kind != entries.Inline || s.Own || e.x.Location.IsBlock() {
		return false, nil
	}
	sides, n := e.besides(e.x, e.c.Expr)
	if n == 0 {
		return false, nil
	}
	if saysNumber(s.U, e.c.Expr) {
		return e.countsBetween(sides[:n], e.c.Expr)
	}
	entry, err := s.Entry()
	if err != nil {
		return false, err
	}
	copied := false
	err = s.U.Img.EachParam(entry, func(x *entries.Var) (bool, error) {
		if x.Off == e.x.Off || x.Location.Form == 0 || x.Location.IsBlock() {
			return true, nil
		}
		expr, err := s.Note(x)
		if err != nil || !saysNumber(s.U, expr) {
			return true, nil //nolint:nilerr // the error is reported where that parameter is asked for
		}
		sides, n := e.besides(x, expr)
		copied, err = e.countsBetween(sides[:n], expr)
		return !copied, err
	})
	return copied, err
}

func saysNumber(u *entries.Unit, expr []byte) bool {
	_, ok := eval.Number(expr, u.Encoding())
	return ok
}

// besides returns what is between the probe's address and the nearest notes before it and behind it that say the same of a parameter, if it is noted as no other number in between: a
// caller's variable that alternates, or that an inner loop counts, is.
func (e *evidence) besides(x *entries.Var, expr []byte) (out [2]dw.Range, n int) {
	at := e.s.At.Addr
	before, after := dw.Range{Hi: at}, dw.Range{Lo: at, Hi: math.MaxUint64}
	last, next := uint64(0), uint64(math.MaxUint64) // where the nearest notes of other numbers begin
	l := e.s.U.Locations(x.Location, x.Views)
	for v := (dw.LocEntry{}); l.Next(&v); {
		switch same := bytes.Equal(v.Expr, expr); {
		case v.Default || !same && (v.Lo == at || !saysNumber(e.s.U, v.Expr)):
		case v.Lo > at && same:
			after.Hi = min(after.Hi, v.Lo)
		case v.Lo > at:
			next = min(next, v.Lo)
		case !same:
			last = max(last, v.Lo)
		case v.Hi < at:
			before.Lo = max(before.Lo, v.Hi)
		}
	}
	if before.Lo > last {
		out[n] = before
		n++
	}
	if after.Hi < next {
		out[n] = after
		n++
	}
	return out, n
}

// countsBetween reports whether a caller's variable has a number at the probe, and is noted with another one in between.
func (e *evidence) countsBetween(sides []dw.Range, expr []byte) (bool, error) {
	s := e.s
	if len(sides) == 0 {
		return false, nil
	}
	return s.OfCallers(func(x *entries.Scoped) (bool, error) {
		if x.Location.Form == 0 || x.Location.IsBlock() {
			return false, nil
		}
		if its, ok := s.Placed(x); !ok || !bytes.Equal(its.Expr, expr) {
			return false, nil
		}
		var there, another [2]bool // at the other way, and in between
		l := s.U.Locations(x.Location, x.Views)
		for v := (dw.LocEntry{}); l.Next(&v); {
			same := bytes.Equal(v.Expr, expr)
			for i, r := range sides {
				end := r.Lo + r.Hi - s.At.Addr
				there[i] = there[i] || same && v.Lo <= end && end <= v.Hi
				another[i] = another[i] || !same && v.Lo >= r.Lo && v.Hi <= r.Hi && saysNumber(s.U, v.Expr)
			}
		}
		for i, r := range sides {
			if there[i] && another[i] && s.U.Img.Code.Onward(r.Lo, r.Hi) {
				return true, nil
			}
		}
		return false, nil
	})
}
