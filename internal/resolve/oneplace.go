package resolve

import (
	"bytes"

	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/loc"
)

// OnePlace looks at the list. A gap in it may be where the parameter has what is assigned, and a register that the body writes has both. That another body goes on with a place of which the
// code does not say what it has shows no assignment.
func (e *evidence) OnePlace() (bool, error) {
	s := e.s
	if s.Kind != entries.Inline || e.x.U.Body.Views() || e.v.Loc.Kind != loc.KindRegister || e.v.Loc.Expr.K >= body.Followed {
		return false, nil
	}
	ranges, err := s.U.Extent(&s.PCs)
	if err != nil {
		return false, err
	}
	if !e.x.Location.IsBlock() {
		var all []dw.Range
		l := s.U.Locations(e.x.Location, e.x.Views)
		for v := (dw.LocEntry{}); l.Next(&v); {
			if !bytes.Equal(v.Expr, e.c.Expr) {
				return false, nil
			}
			all = append(all, dw.Range{Lo: v.Lo, Hi: v.Hi})
		}
		for _, r := range ranges {
			if r.Lo < r.Hi && !(dw.Covers(all, r.Lo) && dw.Covers(all, r.Hi-1)) {
				return false, nil
			}
		}
	}
	for _, r := range ranges {
		if r.Lo < r.Hi && !s.U.Img.Code.Leaves(r, e.v.Loc.Expr.K) {
			return false, nil
		}
	}
	a, err := e.assignedWithoutViews()
	return a == madeInside, err
}
