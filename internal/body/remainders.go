package body

import (
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/flow"
)

// LLVM tests whether turns are left over before the last copy of a loop that it unrolls, and gives the test the position at which the
// caller's loop ends: that of a body, if the body ends there with a loop of its own. The body's own tests have copies where the body has.

// withRemainders marks the pieces of a body that may be such a test: whether a run begins there is not known before the test.
func (c *Code) withRemainders(i int32, marks []flow.Mark) []flow.Mark {
	for k := range marks {
		if m := &marks[k]; m.Kind == flow.MarkEnter && c.remainder(i, m.Insn, marks) {
			m.Kind = flow.MarkPerhaps
		}
	}
	return marks
}

// remainder reports whether a piece of a body that begins at an instruction only tests whether the body runs, at a position that no other
// piece has.
func (c *Code) remainder(i, first int32, marks []flow.Mark) bool {
	g := c.graph
	n := g.Block(first)
	b := &g.Blocks[n]
	if len(b.Succs) != 2 || g.Insns[b.Last-1].Kind != flow.Branch {
		return false
	}
	places := make(map[rowPlace]bool)
	for at := first; at < b.Last; at++ {
		r := c.rowAt(at)
		if r == nil || !c.bodies[i].has(c.owner[at]) || c.acts(at) && at < b.Last-1 {
			return false
		}
		places[c.placeOf(r, at)] = true
	}
	begins := func(n int32) bool {
		at := c.past(g.Blocks[n].First)
		return slices.ContainsFunc(marks, func(m flow.Mark) bool { return m.Insn == at && m.Kind == flow.MarkEnter })
	}
	leaves := func(n int32) bool { return !c.bodies[i].has(c.owner[c.past(g.Blocks[n].First)]) }
	if (!begins(b.Succs[0]) || !leaves(b.Succs[1])) && (!begins(b.Succs[1]) || !leaves(b.Succs[0])) {
		return false
	}
	for _, r := range c.bodies[i].ranges {
		for k, ok := g.From(r.Lo); ok && k < int32(len(g.Insns)) && g.Insns[k].Addr < r.Hi; k++ {
			if row := c.rowAt(k); row != nil && (k < first || k >= b.Last) && places[c.placeOf(row, k)] {
				return false
			}
		}
	}
	return true
}
