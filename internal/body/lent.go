package body

import (
	"github.com/bpfprologue/bpfprologue/internal/flow"
)

// Where two calls of a function compute the same, LLVM computes it once, where the first one needs it, and can give it the position of the second. In the midst of the first
// body it is an instruction of that one: no run of the second begins there, nor has one of the first ended.

// isLent reports whether an instruction is such a one, and none at which a run of a body may begin: if that goes on in the same block, it can be its own as well.
func (c *Code) isLent(i, at int32) bool {
	if !c.lentRead {
		c.lentRead = true
		c.readLent()
	}
	last, lent := c.lent[at]
	if !lent || !c.bodies[i].has(c.owner[at]) {
		return lent
	}
	for end := c.graph.Blocks[c.graph.Block(at)].Last; last < end; last++ {
		if c.bodies[i].has(c.owner[last]) {
			return false
		}
	}
	return true
}

// readLent finds them.
func (c *Code) readLent() {
	if c.u.GNU() || c.u.IsGo() || len(c.bodies) < 3 {
		return
	}
	g := c.graph
	for n := range g.Blocks {
		b := &g.Blocks[n]
		for at := b.First; at < b.Last; at++ {
			if at > b.First && c.owner[at] == c.owner[at-1] {
				continue
			}
			end := c.lentUntil(int32(n), at)
			for ; at < end; at++ {
				if c.lent == nil {
					c.lent = make(map[int32]int32)
				}
				c.lent[at] = end
			}
		}
	}
}

// lentUntil returns where a piece of a body ends that begins at an instruction and is in the midst of another body of its function, or 0.
func (c *Code) lentUntil(n, first int32) int32 {
	g, last := c.graph, c.graph.Blocks[n].Last
	end := first
	for ; end < last && c.owner[end] == c.owner[first]; end++ {
		if k := g.Insns[end].Kind; k != flow.Plain && k != flow.Nop || c.acts(end) {
			return 0
		}
	}
	if end == last || c.owner[first] <= 0 {
		return 0
	}
	for x := c.owner[first]; x > 0; x = c.bodies[x].parent {
		for y := c.owner[end]; y > 0; y = c.bodies[y].parent {
			if x == y || c.bodies[x].has(y) || c.bodies[y].has(x) || c.functionOf(x) != c.functionOf(y) {
				continue
			}
			within := func(at int32) bool { return c.bodies[y].has(c.owner[at]) }
			if first > g.Blocks[n].First && !within(first-1) || first == g.Blocks[n].First && !g.OnlyBehind(n, within) {
				continue
			}
			other := c.hasSuch(x, func(at int32) bool { return at < first || at >= end })
			if other && !c.copied(first, end) {
				return end
			}
		}
	}
	return 0
}
