package body

import (
	"slices"
	"sort"

	"github.com/bpfprologue/bpfprologue/internal/flow"
)

// GCC threads a jump past the first test of a body whose result is known on a path, and the path then goes on in the body behind the statement
// that is the test: without a row for it, execution has come to an instruction of the body. Where that can leave the body again before the next
// statement of it, only the instruction tells that a run has begun.

// withThreaded adds marks where paths come to instructions of a body from others', and go on to a statement at which a run would be seen to begin, which is not
// the body's first one, or past it. They are those that marks were if there are none.
func (c *Code) withThreaded(i int32, runs *flow.Runs, marks []flow.Mark) []flow.Mark {
	out := marks
	seen := make(map[int32]bool)
	for k := range runs.In {
		w := &runs.In[k]
		if c.beginsWith(i, w) || !c.statementIn(i, c.graph.Insns[w.Insn].Addr) {
			continue
		}
		c.comesFrom(i, w.Insn, func(at int32) {
			if !seen[at] {
				seen[at] = true
				out = append(slices.Clip(out), flow.Mark{Insn: at, Kind: flow.MarkEnter})
			}
		})
	}
	if len(out) > len(marks) {
		slices.SortStableFunc(out, compareMarks)
	}
	return out
}

// comesFrom calls f with the instructions at which execution comes to a body, if it goes on to one of its instructions or, after a branch, elsewhere, with no statement
// of any body in between.
func (c *Code) comesFrom(i, to int32, f func(at int32)) {
	g, b := c.graph, &c.bodies[i]
	seen := make(map[int32]bool)
	var visit func(at int32, branched bool)
	visit = func(at int32, branched bool) {
		n := g.Block(at - 1)
		first := g.Blocks[n].First
		for at > first {
			if !b.has(c.owner[at-1]) {
				if branched {
					f(at)
				}
				return
			}
			at--
			if begins, own := c.statementsOn(i, at); begins {
				if branched && !own {
					f(at)
				}
				return
			}
		}
		entered := false
		g.OnlyBehind(n, func(last int32) bool {
			switch p := g.Block(last); {
			case !b.has(c.owner[last]):
				entered = true
			case !seen[p]:
				seen[p] = true
				visit(last+1, branched || len(g.Blocks[p].Succs) > 1)
			}
			return true
		})
		if entered && branched {
			f(first)
		}
	}
	if to > g.Blocks[g.Block(to)].First {
		visit(to, false)
		return
	}
	g.OnlyBehind(g.Block(to), func(last int32) bool {
		if p := g.Block(last); b.has(c.owner[last]) && !seen[p] {
			seen[p] = true
			visit(last+1, len(g.Blocks[p].Succs) > 1)
		}
		return true
	})
}

// statementsOn reports whether statements begin at an instruction, and whether one of them is a body's.
func (c *Code) statementsOn(i, n int32) (begins, own bool) {
	k := sort.Search(len(c.statementRows), func(k int) bool { return c.statementRows[k].past >= n })
	for ; k < len(c.statementRows) && c.statementRows[k].past == n; k++ {
		begins, own = true, own || c.bodies[i].has(c.statementRows[k].own)
	}
	return begins, own
}
