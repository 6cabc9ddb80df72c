package motion

import (
	"maps"
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/flow"
	"github.com/bpfprologue/bpfprologue/internal/insn"
)

// Compilers move what each run of a body computes alike in a loop of the caller to the code before that loop, and leave it the position that
// it had in the body. No run begins there. It has no copy in the loop, as the beginning of a loop that was rotated has, and does nothing
// that can be seen: it is the rest of the body that runs.

// invariant reports whether a piece of a body that begins at an instruction was moved out of a loop in which another way into the body is.
func (c *Rules) invariant(i, first int32, in []flow.Way) bool {
	g := c.Graph
	n := g.Block(first)
	block := &g.Blocks[n]
	plain := func(n int32) (s step, ok bool) {
		if g.Insns[n].Kind == flow.Plain {
			s, ok = c.stepAt(n)
		}
		return s, ok
	}
	moved := make(map[step]bool)
	var made insn.Registers
	stores := false
	at := first
	for ; at < block.Last && c.Bodies[i].Has(c.Owner[at]); at++ {
		k := g.Insns[at].Kind
		if k == flow.Jump && !c.Bodies[i].Has(c.Owner[g.Blocks[block.Succs[0]].First]) {
			break
		}
		if k != flow.Plain && k != flow.Nop || c.Acts(at) {
			return false
		}
		if s, ok := plain(at); ok {
			moved[s] = true
		}
		w, ok := c.Arch.Writes(g.Bytes(at))
		made, stores = made|w.Registers, stores || !ok || w.Memory
	}
	// The head of the loop can have instructions with no place but that of those, if these only make what the body needs elsewhere.
	needed := func() bool {
		return !stores && c.HasSuch(i, func(k int32) bool {
			reads, _, ok := c.Arch.Accesses(g.Bytes(k))
			return ok && reads&made != 0 && g.Block(k) != n
		})
	}
	next := block
	for turns := 0; at == next.Last; turns++ {
		if len(next.Succs) != 1 || turns == maxInvariants {
			return false
		}
		next = &g.Blocks[next.Succs[0]]
		at = next.First
		if c.Bodies[i].Has(c.Owner[at]) && needed() {
			for at < next.Last && c.borrowed(at) {
				at++
			}
		}
		if at < next.Last && c.Bodies[i].Has(c.Owner[at]) {
			return false
		}
	}
	copied := c.HasSuch(i, func(k int32) bool {
		s, ok := plain(k)
		return ok && moved[s] && g.Block(k) != n // nor in the loop
	})
	return !copied && g.RepeatsAny(in, n)
}

// TurnsOn reports whether a block is a loop of a body's own, by a branch of the body, in which nothing of others does what can be seen: GCC computes in it what the caller needs behind the
// loop, and the next turn too. A loop of the caller's that the body's test ends looks the same.
func (c *Rules) TurnsOn(i, n int32) bool {
	b := &c.Graph.Blocks[n]
	if last := b.Last - 1; !c.Unit.GNU() || c.Graph.Insns[last].Kind != flow.Branch || !c.Bodies[i].Has(c.Owner[last]) || !slices.Contains(b.Succs, n) {
		return false
	}
	for at := b.First; at < b.Last; at++ {
		if !c.Bodies[i].Has(c.Owner[at]) && c.Acts(at) {
			return false
		}
	}
	return true
}

// unswitched reports whether a piece of a body that begins at an instruction is only a test that was moved out of a loop in which another way into the body is: LLVM makes two
// loops of one for a test with the same outcome in each turn, and none is left in them.
func (c *Rules) unswitched(i, first int32, in []flow.Way) bool {
	g, n := c.Graph, c.Graph.Block(first)
	last := g.Blocks[n].Last - 1
	test, ok := c.stepAt(last)
	if !ok || g.Insns[last].Kind != flow.Branch || !c.Bodies[i].Has(c.Owner[last]) || c.entersAny(i, g.Blocks[n].Succs) {
		return false
	}
	for at := first; at < last; at++ {
		if k := g.Insns[at].Kind; k != flow.Plain && k != flow.Nop || !c.Bodies[i].Has(c.Owner[at]) || c.Acts(at) {
			return false
		}
	}
	tested := c.HasSuch(i, func(k int32) bool {
		s, ok := c.stepAt(k)
		return ok && k != last && g.Insns[k].Kind == flow.Branch && s.place == test.place
	})
	return !tested && g.RepeatsAny(in, n)
}

// Distributed reports whether some blocks have the statements of others, few instructions at the places of theirs, and none that does there what can be seen: they may be parts
// of one loop, and are no copies.
func (c *Rules) Distributed(blocks, others []int32) bool {
	places := func(blocks []int32) (stated, done map[body.Place]bool) {
		stated, done = make(map[body.Place]bool), make(map[body.Place]bool)
		for k := range c.Statements {
			if r := &c.Statements[k]; slices.Contains(blocks, r.Block) {
				stated[r.Place] = true
			}
		}
		for _, n := range blocks {
			for at := c.Graph.Blocks[n].First; at < c.Graph.Blocks[n].Last; at++ {
				if r := c.RowAt(at); r != nil && c.Graph.Insns[at].Kind == flow.Plain {
					p := c.PlaceOf(r, at)
					done[p] = done[p] || c.Acts(at)
				}
			}
		}
		return stated, done
	}
	stated, done := places(blocks)
	further, too := places(others)
	maps.DeleteFunc(further, func(p body.Place, _ bool) bool { return stated[p] })
	shared, acts := 0, false
	for p, does := range too {
		if did, has := done[p]; has {
			shared, acts = shared+1, acts || did && does
		}
	}
	return len(further) == 0 && !acts && 2*shared <= min(len(done), len(too))
}

// LLVM tests whether turns are left over before the last copy of a loop that it unrolls, and gives the test the position at which the
// caller's loop ends: that of a body, if the body ends there with a loop of its own. The body's own tests have copies where the body has.

// withRemainders marks the pieces of a body that may be such a test: whether a run begins there is not known before the test.
func (c *Rules) withRemainders(i int32, marks []flow.Mark) []flow.Mark {
	for k := range marks {
		if m := &marks[k]; m.Kind == flow.MarkEnter && c.remainder(i, m.Insn, marks) {
			m.Kind = flow.MarkPerhaps
		}
	}
	return marks
}

// remainder reports whether a piece of a body that begins at an instruction only tests whether the body runs, at a position that no other
// piece has.
func (c *Rules) remainder(i, first int32, marks []flow.Mark) bool {
	g := c.Graph
	n := g.Block(first)
	b := &g.Blocks[n]
	if len(b.Succs) != 2 || g.Insns[b.Last-1].Kind != flow.Branch {
		return false
	}
	places := make(map[body.Place]bool)
	for at := first; at < b.Last; at++ {
		r := c.RowAt(at)
		if r == nil || !c.Bodies[i].Has(c.Owner[at]) || c.Acts(at) && at < b.Last-1 {
			return false
		}
		places[c.PlaceOf(r, at)] = true
	}
	begins := func(n int32) bool {
		at := c.Past(g.Blocks[n].First)
		return slices.ContainsFunc(marks, func(m flow.Mark) bool { return m.Insn == at && m.Kind == flow.MarkEnter })
	}
	leaves := func(n int32) bool { return !c.Bodies[i].Has(c.Owner[c.Past(g.Blocks[n].First)]) }
	if (!begins(b.Succs[0]) || !leaves(b.Succs[1])) && (!begins(b.Succs[1]) || !leaves(b.Succs[0])) {
		return false
	}
	for _, r := range c.Bodies[i].Ranges {
		for k, ok := g.From(r.Lo); ok && k < int32(len(g.Insns)) && g.Insns[k].Addr < r.Hi; k++ {
			if row := c.RowAt(k); row != nil && (k < first || k >= b.Last) && places[c.PlaceOf(row, k)] {
				return false
			}
		}
	}
	return true
}
