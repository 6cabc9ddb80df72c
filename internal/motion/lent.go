package motion

import (
	"github.com/bpfprologue/bpfprologue/internal/flow"
)

// Where two calls of a function compute the same, LLVM computes it once, where the first one needs it, and can give it the position of the second. In the midst of the first
// body it is an instruction of that one: no run of the second begins there, nor has one of the first ended.

// IsLent reports whether an instruction is such a one, and none at which a run of a body may begin: if that goes on in the same block, it can be its own as well.
func (c *Rules) IsLent(i, at int32) bool {
	if !c.lentRead {
		c.lentRead = true
		c.readLent()
	}
	last, lent := c.lent[at]
	if !lent || !c.Bodies[i].Has(c.Owner[at]) {
		return lent
	}
	for end := c.Graph.Blocks[c.Graph.Block(at)].Last; last < end; last++ {
		if c.Bodies[i].Has(c.Owner[last]) {
			return false
		}
	}
	return true
}

// readLent finds them.
func (c *Rules) readLent() {
	if c.Unit.GNU() || c.Unit.IsGo() || len(c.Bodies) < 3 {
		return
	}
	g := c.Graph
	for n := range g.Blocks {
		b := &g.Blocks[n]
		for at := b.First; at < b.Last; at++ {
			if at > b.First && c.Owner[at] == c.Owner[at-1] {
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
func (c *Rules) lentUntil(n, first int32) int32 {
	g, last := c.Graph, c.Graph.Blocks[n].Last
	end := first
	for ; end < last && c.Owner[end] == c.Owner[first]; end++ {
		if k := g.Insns[end].Kind; k != flow.Plain && k != flow.Nop || c.Acts(end) {
			return 0
		}
	}
	if end == last || c.Owner[first] <= 0 {
		return 0
	}
	for x := c.Owner[first]; x > 0; x = c.Bodies[x].Parent {
		for y := c.Owner[end]; y > 0; y = c.Bodies[y].Parent {
			if x == y || c.Bodies[x].Has(y) || c.Bodies[y].Has(x) || c.FunctionOf(x) != c.FunctionOf(y) {
				continue
			}
			within := func(at int32) bool { return c.Bodies[y].Has(c.Owner[at]) }
			if first > g.Blocks[n].First && !within(first-1) || first == g.Blocks[n].First && !g.OnlyBehind(n, within) {
				continue
			}
			other := c.HasSuch(x, func(at int32) bool { return at < first || at >= end })
			if other && !c.copied(first, end) {
				return end
			}
		}
	}
	return 0
}
