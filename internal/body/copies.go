package body

import (
	"github.com/bpfprologue/bpfprologue/internal/flow"
)

// Where several paths meet, GCC copies a variable on each of them to the register that it has from there on, and gives all of these copies the position of one. Those at the
// end of a turn of a body's own loop can so have the position of the caller's statement before the body.

// copiesAlone reports whether a block between instructions of a body has only such copies, and that position is one of another path to the same place.
func (c *Code) copiesAlone(i, n int32) bool {
	g := c.graph
	b := &g.Blocks[n]
	if !c.u.GNU() || len(b.Succs) != 1 || b.Succs[0] == n {
		return false
	}
	place := (*rowPlace)(nil)
	for at := b.First; at < b.Last; at++ {
		if k := g.Insns[at].Kind; k == flow.Nop || k == flow.Jump {
			continue
		}
		reads, w, ok := c.arch.Accesses(g.Bytes(at))
		r := c.rowAt(at)
		if !ok || r == nil || g.Insns[at].Kind != flow.Plain || w.Memory || w.Registers == 0 || !one(uint64(reads)) || !one(uint64(w.Registers)) || c.bodies[i].has(c.owner[at]) {
			return false
		}
		if _, _, accesses := c.arch.Operand(g.Bytes(at)); accesses {
			return false
		}
		if p := c.placeOf(r, at); place == nil {
			place = &p
		} else if *place != p {
			return false
		}
	}
	own := func(at int32) bool { return c.bodies[i].has(c.owner[at]) }
	to := b.Succs[0]
	if place == nil || !own(c.past(g.Blocks[to].First)) || !g.OnlyBehind(n, own) {
		return false
	}
	found := false
	g.OnlyBehind(to, func(last int32) bool {
		if p := &g.Blocks[g.Block(last)]; last >= b.Last || last < b.First {
			for at := p.First; at <= last && !found; at++ {
				r := c.rowAt(at)
				found = r != nil && c.placeOf(r, at) == *place
			}
		}
		return true
	})
	return found
}

// one reports whether a set has one register.
func one(set uint64) bool { return set != 0 && set&(set-1) == 0 }
