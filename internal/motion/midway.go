package motion

import (
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/flow"
	"github.com/bpfprologue/bpfprologue/internal/insn"
)

// Without markers of statements, GCC's code does not say which of the places of a body are those with which it begins. Where it has merged the end of a body with that of another one
// (-fcrossjumping), execution comes from the other body to instructions that are behind the beginning of this one.

// InRest reports whether a way into a body of GCC's code without markers is one into the rest of it: no body of the function begins at that place, and wherever the body itself
// comes to that instruction, or to a copy of it, it has tested before, or done what can be seen. A run that begins there would lack that. One of which GCC knows how the test ends looks the same.
func (c *Rules) InRest(i int32, w *flow.Way, ways []flow.Way) bool {
	s, ok := c.stepAt(w.Insn)
	if !ok || !c.Unit.GNU() || len(ways) < 2 || c.beginsAt(i, c.RowAt(w.Insn)) {
		return false
	}
	found, here := false, c.Graph.Block(w.Insn)
	for n, own := range c.Owner {
		at := int32(n)
		if !c.Bodies[i].Has(own) || at > w.Insn && c.Graph.Block(at) == here {
			continue
		}
		if t, ok := c.stepAt(at); !ok || t != s {
			continue
		}
		some, all := c.comesBehind(i, at, ways)
		if !all {
			return false
		}
		found = found || some
	}
	return found
}

// InTurns reports whether a way into a body of GCC's code without markers may only be where each turn of a caller's loop behind the body begins: no body of the function begins at that place,
// the first time execution comes there from the body itself, which has begun before and goes back to the caller in that block, and nothing there can be seen. GCC sets the variables of such
// a loop with the place of the body's end. A run in the loop, of which it has moved the beginning out, looks the same.
func (c *Rules) InTurns(i int32, w *flow.Way, ways []flow.Way) bool {
	return c.Unit.GNU() && c.idle(i, w.Insn) && c.Graph.Later(w.Insn, ways, false) && !c.beginsAt(i, c.RowAt(w.Insn))
}

// Unfinished reports whether a way into a body of GCC's code without markers may be one to what it shares with a loop of others, which comes there again: the piece there does nothing that
// can be seen, and no test, execution comes back to it with nothing else of the body in between, and leaves the loop for the rest of the body, which acts or tests. A run in each turn would have
// no rest. One of which GCC knows how its test ends has none either.
func (c *Rules) Unfinished(i int32, w *flow.Way, ways []flow.Way) bool {
	g, n := c.Graph, c.Graph.Block(w.Insn)
	if _, acts := c.ownIn(i, n); acts || !c.Unit.GNU() {
		return false
	}
	again, rest := false, false
	seen := make(map[int32]bool)
	for _, x := range ways {
		seen[g.Block(x.Insn)] = true
	}
	for work := slices.Clone(g.Blocks[n].Succs); len(work) > 0; {
		b := work[len(work)-1]
		work = work[:len(work)-1]
		again = again || b == n
		if seen[b] {
			continue
		}
		seen[b] = true
		if own, acts := c.ownIn(i, b); own {
			rest = rest || acts
		} else {
			work = append(work, g.Blocks[b].Succs...)
		}
	}
	return again && rest
}

// Shared reports whether a way into a body of GCC's code without markers may be where GCC has computed, ahead of tests of the caller's, what the body and others need (-fcode-hoisting): nothing there
// can be seen, behind one side of the tests the body goes on with what has been computed, and on a path that does not come to the body something else needs it. A run that begins there, whose rest
// was moved to the one side that needs all of it, looks the same.
func (c *Rules) Shared(i, first int32) bool {
	g := c.Graph
	n := g.Block(first)
	if _, ok := c.beforeTest(i, n); !ok || !c.Unit.GNU() {
		return false
	}
	var made kept
	tests := false // what the branch needs is the body's
	for at := first; at < g.Blocks[n].Last; at++ {
		own := c.Bodies[i].Has(c.Owner[at])
		if _, w, _ := c.Arch.Accesses(g.Bytes(at)); w == (insn.Writes{}) && g.Insns[at].Kind == flow.Plain {
			tests = own
		}
		c.needs(at, &made, own)
	}
	if tests {
		return false
	}
	own := func(block int32) bool { own, _ := c.ownIn(i, block); return own }
	goesOn, others := false, false
	type place struct {
		block int32
		made  kept
	}
	seen := map[int32]bool{n: true}
	for work := []place{{n, made}}; len(work) > 0 && len(seen) < maxFollowed && (!goesOn || !others); {
		p := work[len(work)-1]
		work = work[:len(work)-1]
		for _, to := range g.Blocks[p.block].Succs {
			if seen[to] {
				continue
			}
			seen[to] = true
			made, here, back := p.made, false, own(to)
			for at := g.Blocks[to].First; at < g.Blocks[to].Last; at++ {
				needs := c.needs(at, &made, false)
				if c.Bodies[i].Has(c.Owner[at]) {
					goesOn = goesOn || needs
					break
				}
				here = here || needs
			}
			if !back && here && !others {
				g.Ahead(to, func(block int32) bool {
					back = back || block != n && own(block)
					return back || block == n
				})
				others = !back
			}
			if !own(to) && made != (kept{}) {
				work = append(work, place{to, made})
			}
		}
	}
	return goesOn && others
}

// needs reports whether an instruction needs what is kept, which is left in its place or written over, or, if it makes that, what it writes is kept too.
func (c *Rules) needs(at int32, k *kept, makes bool) bool {
	code := c.Graph.Bytes(at)
	reads, w, _ := c.Arch.Accesses(code)
	m, stores, fixed := c.Arch.Operand(code)
	slot := fixed && m.Base == uint64(c.Unit.Image.Arch().SP)
	needs := reads&k.registers != 0 || slot && !stores && slices.Contains(k.slots[:], m)
	if in, ok := c.Arch.Next(code); ok && in.Call {
		w.Registers = ^c.Preserved()
	}
	switch k.registers &^= w.Registers; {
	case makes:
		k.registers |= w.Registers
		if slot && stores {
			k.add(m)
		}
	case slot && stores:
		for i := range k.slots {
			if k.slots[i] == m {
				k.slots[i] = insn.Slot{}
			}
		}
	}
	return needs
}

// InMidst reports whether the lowest instruction of a body, which is in several pieces, is in the midst of it: GCC says without markers only where that is. A run does not begin there if the
// body itself comes to it and has tested before, or done what can be seen; or comes so to a copy, to which the lowest one does not lead: of a common end that GCC has made of the body's and
// another's, and then given to both again. What a caller's loop has between two runs, if that cannot be seen, looks the same.
func (c *Rules) InMidst(i, lowest int32) bool {
	b := &c.Bodies[i]
	if b.Viewed || len(b.Ranges) < 2 {
		return false
	}
	if behind, _ := c.comesBehind(i, lowest, nil); behind {
		return true
	}
	r := c.RowAt(lowest)
	s, ok := c.stepAt(lowest)
	return ok && r != nil && c.HasSuch(i, func(n int32) bool {
		if t, ok := c.stepAt(n); !ok || n == lowest || t != s || c.RowAt(n) == nil || !r.SamePlace(c.RowAt(n)) {
			return false
		}
		behind, _ := c.comesBehind(i, n, nil)
		from, to := c.Graph.Block(lowest), c.Graph.Block(n)
		leads := from == to
		if behind && !leads {
			leads, _ = c.Graph.Ahead(from, func(block int32) bool { return block == to })
		}
		return behind && !leads
	})
}

// beginsAt reports whether a body of a function, one or another, begins at the place of a row.
func (c *Rules) beginsAt(i int32, place *dw.Row) bool {
	for k := range c.Bodies {
		b := &c.Bodies[k]
		if !b.Live || c.FunctionOf(int32(k)) != c.FunctionOf(i) {
			continue
		}
		n, ok := c.Graph.At(b.Start)
		if !ok {
			continue
		}
		first := c.Past(int32(n))
		if r := c.RowAt(first); r == nil || !r.SamePlace(place) {
			continue
		}
		if !c.InMidst(int32(k), first) {
			return true
		}
	}
	return false
}

// comesBehind follows the paths back from an instruction of a body, in its code and in what does nothing that can be seen. It reports whether the body acts or tests on
// one of them, and whether it does so on all that come from the body, before they come to a way into it.
func (c *Rules) comesBehind(i, first int32, ways []flow.Way) (some, all bool) {
	g := c.Graph
	seen := make(map[int32]bool)
	all = true
	var back func(block, end int32)
	back = func(block, end int32) {
		for at := end - 1; at >= g.Blocks[block].First; at-- {
			k := g.Insns[at].Kind
			switch own := c.Bodies[i].Has(c.Owner[at]); {
			case own && c.Acts(at): // or tests: what jumps acts
				some = true
				return
			case own && slices.ContainsFunc(ways, func(w flow.Way) bool { return w.Insn == at }):
				all = false
				return
			case !own && k != flow.Jump && (k != flow.Plain && k != flow.Nop || c.Acts(at)):
				return
			}
		}
		g.OnlyBehind(block, func(last int32) bool {
			if p := g.Block(last); !seen[p] {
				seen[p] = true
				back(p, last+1)
			}
			return true
		})
	}
	back(g.Block(first), first)
	return some, all
}
