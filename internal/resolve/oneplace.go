package resolve

import (
	"bytes"

	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/loc"
)

// OnePlace asks whether the note has to be that of what is assigned too.
func (e *evidence) OnePlace() (bool, error) {
	s := e.s
	if s.Kind != entries.Inline || e.x.U.Body.Views() || e.v.Loc.Kind != loc.KindRegister || e.v.Loc.Expr.K >= body.Followed {
		return false, nil
	}
	left, err := e.left()
	if err != nil || !left && !e.x.Location.IsBlock() && s.U.Img.Code.Straight(s.At.Addr, e.c.Hi) { // it is noted over no branch
		return false, err
	}
	a, err := e.assignedWithoutViews()
	if left || err != nil {
		return a.registers, err
	}
	return e.stays(a.at)
}

// left looks at the list. A gap in it may be where the parameter has what is assigned, and a register that the body writes has both. That another body goes on with a place of which the
// code does not say what it has shows no assignment.
func (e *evidence) left() (bool, error) {
	s := e.s
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
			if r.Lo < r.Hi && (!dw.Covers(all, r.Lo) || !dw.Covers(all, r.Hi-1)) {
				return false, nil
			}
		}
	}
	for _, r := range ranges {
		if r.Lo < r.Hi && !s.U.Img.Code.Leaves(r, e.v.Loc.Expr.K) {
			return false, nil
		}
	}
	return true, nil
}

// stays reports whether the register is noted over the body's first branch, and has one number until there, though another body adds a number to the parameter at a place in front of its own:
// the branch is behind the statement, and the note that of what it makes. A branch that is in the text before the statement refutes it, as the other body may lack that, and one of what is inlined there says nothing.
func (e *evidence) stays(place body.Place) (bool, error) {
	if place.Line == 0 {
		return false, nil
	}
	c, err := e.ev.codeOf(e.s)
	if err != nil || c.Graph == nil || c.Why != "" {
		return false, err
	}
	own, ok := c.BodyOf(e.s.Rec)
	first, known := c.Graph.At(e.s.At.Addr)
	if !ok || !known {
		return false, nil
	}
	last := c.Graph.Blocks[c.Graph.Block(int32(first))].Last - 1
	branch := c.Graph.Insns[last].Addr
	in, ok := c.Arch.Next(c.Graph.Bytes(last))
	row := c.RowAt(last)
	return ok && in.Branches && in.Onward && !in.Call && c.Owner[last] == int32(own) && row != nil && row.File == place.File && row.Line >= place.Line &&
		(e.x.Location.IsBlock() || branch < e.c.Hi) && !e.s.U.Img.Code.WritesBetween(e.s.At.Addr, branch, 1<<e.v.Loc.Expr.K, nil), nil
}
