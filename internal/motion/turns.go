package motion

import (
	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/flow"
)

// Where several paths meet, GCC copies a variable on each of them to the register that it has from there on, and gives all of these copies the position of one. Those at the
// end of a turn of a body's own loop can so have the position of the caller's statement before the body.

// CopiesAlone reports whether a block between instructions of a body has only such copies, and that position is one of another path to the same place.
func (c *Rules) CopiesAlone(i, n int32) bool {
	g := c.Graph
	b := &g.Blocks[n]
	if !c.Unit.GNU() || len(b.Succs) != 1 || b.Succs[0] == n {
		return false
	}
	own := func(at int32) bool { return c.Bodies[i].Has(c.Owner[at]) }
	to := b.Succs[0]
	if !own(c.Past(g.Blocks[to].First)) || !g.OnlyBehind(n, own) || !c.onlyCopies(i, n) { // what instructions do takes longest to find
		return false
	}
	place := (*body.Place)(nil)
	for at := b.First; at < b.Last; at++ {
		if k := g.Insns[at].Kind; k == flow.Nop || k == flow.Jump {
			continue
		}
		r := c.RowAt(at)
		if r == nil {
			return false
		}
		if p := c.PlaceOf(r, at); place == nil {
			place = &p
		} else if *place != p {
			return false
		}
	}
	found := false
	g.OnlyBehind(to, func(last int32) bool {
		if p := &g.Blocks[g.Block(last)]; last >= b.Last || last < b.First {
			for at := p.First; at <= last && !found; at++ {
				r := c.RowAt(at)
				found = r != nil && c.PlaceOf(r, at) == *place
			}
		}
		return true
	})
	return found
}

// onlyCopies reports whether all that a block does, and it does something, is to copy registers, and none of that is a body's.
func (c *Rules) onlyCopies(i, n int32) (some bool) {
	g := c.Graph
	for at := g.Blocks[n].First; at < g.Blocks[n].Last; at++ {
		if k := g.Insns[at].Kind; k == flow.Nop || k == flow.Jump {
			continue
		}
		reads, w, ok := c.Arch.Accesses(g.Bytes(at))
		_, _, accesses := c.Arch.Operand(g.Bytes(at))
		if !ok || accesses || g.Insns[at].Kind != flow.Plain || w.Memory || !reads.One() || !w.Registers.One() || c.Bodies[i].Has(c.Owner[at]) {
			return false
		}
		some = true
	}
	return some
}
