package motion

import (
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/flow"
	"github.com/bpfprologue/bpfprologue/internal/insn"
)

// step is what copies of an instruction have in common.
type step struct {
	place body.Place
	shape uint64
}

// stepAt returns the step of an instruction. ok is false if it has no position.
func (c *Rules) stepAt(n int32) (s step, ok bool) {
	r := c.RowAt(n)
	if r == nil {
		return s, false
	}
	return step{c.PlaceOf(r, n), c.Shape(n)}, true
}

// maxCopy bounds how many instructions of a copy are compared.
const maxCopy = 64

// Repeated reports whether instructions of a body from one instruction of a block on may be a copy
// of those from an earlier one on. They are none if they change a variable at a position that the earlier
// ones do not have, and lack something of the earlier ones. GCC gives all instructions of an expression its position, and orders them with
// those of others: then those are none behind which the body does what can be seen, if it did nothing between the two.
func (c *Rules) Repeated(i int32, block *flow.Block, from, at int32) bool {
	if c.Unit.GNU() {
		return c.ActsFrom(i, from, at) || !c.ActsFrom(i, at, block.Last)
	}
	if c.comparesBoth(i, block, from, at) {
		return false
	}
	each := func(from, to int32, f func(n int32, s step)) {
		for n := from; n < min(to, block.Last); n++ {
			if s, ok := c.stepAt(n); ok && c.Bodies[i].Has(c.Owner[n]) && c.Graph.Insns[n].Kind != flow.Nop {
				f(n, s)
			}
		}
	}
	first, known := make(map[step]bool), make(map[body.Place]bool)
	each(from, min(at, from+maxCopy), func(_ int32, s step) { first[s], known[s.place] = true, true })
	other := false
	each(at, at+2*min(at-from, maxCopy)+8, func(n int32, s step) {
		delete(first, s)
		if !known[s.place] && c.Global(n) != 0 {
			w, ok := c.Arch.Writes(c.Graph.Bytes(n))
			other = other || ok && w.Memory
		}
	})
	return !other || len(first) == 0
}

// comparesBoth reports whether a body's branch ends a block, and the body's first comparison, from one instruction on, is of what instructions of it have made up to another one and of what others have
// made from that on: both are loaded for it, at one position, as that of a macro is. Runs of which the second one compares with what the first one has left would compare in the first one too.
func (c *Rules) comparesBoth(i int32, block *flow.Block, from, at int32) bool {
	own := func(n int32) bool { return c.Bodies[i].Has(c.Owner[n]) }
	if last := block.Last - 1; c.Graph.Insns[last].Kind != flow.Branch || !own(last) {
		return false
	}
	var one, two insn.Registers
	for n := from; n < block.Last-1; n++ {
		if c.Graph.Insns[n].Kind == flow.Nop {
			continue
		}
		reads, w, ok := c.Arch.Accesses(c.Graph.Bytes(n))
		if !ok {
			return false
		}
		if own(n) && w == (insn.Writes{}) {
			return n > at && reads&one != 0 && reads&two != 0
		}
		one, two = one&^w.Registers, two&^w.Registers
		if own(n) && n < at {
			one |= w.Registers
		} else if own(n) {
			two |= w.Registers
		}
	}
	return false
}

// copied reports whether a body has copies of instructions, from one to another, elsewhere. What loads a register again that was stored to the frame is no copy of
// another load: it has the position of the instruction that needs it.
func (c *Rules) copied(first, last int32) bool {
	type like struct {
		step
		depends, frame bool
	}
	own, sp := c.Owner[first], uint64(c.Unit.Image.Arch().SP)
	likes := func(n int32) (like, bool) {
		s, ok := c.stepAt(n)
		m, _, accesses := c.Arch.Operand(c.Graph.Bytes(n))
		return like{s, c.depends(n), accesses && m.Base == sp}, ok && c.Owner[n] == own
	}
	piece := make(map[like]bool)
	for n := first; n < last; n++ {
		if l, ok := likes(n); ok {
			piece[l] = true
		}
	}
	for n := range int32(len(c.Graph.Insns)) {
		if n < first || n >= last {
			if l, ok := likes(n); ok && piece[l] {
				return true
			}
		}
	}
	return false
}

// GoesOnBehind reports whether a body goes on, behind copies that begin in a block and of which the first one is from one instruction to
// another, with what the copies do not have: then they are turns of a loop of the body's, and not runs.
func (c *Rules) GoesOnBehind(i, n, from, to int32) bool {
	g := c.Graph
	own := func(at int32) *dw.Row {
		if !c.Bodies[i].Has(c.Owner[at]) {
			return nil
		}
		return c.RowAt(at)
	}
	first, known := c.stepAt(from)
	for at := to + 1; known && at < g.Blocks[n].Last; at++ { // the last copy
		if s, ok := c.stepAt(at); ok && s == first && own(at) != nil {
			to = at
		}
	}
	copied := make(map[body.Place]bool)
	for at := from; at < to; at++ {
		if r := own(at); r != nil {
			copied[c.PlaceOf(r, at)] = true
		}
	}
	seen := map[int32]bool{n: true}
	for work := []int32{n}; len(work) > 0; {
		b := &g.Blocks[work[0]]
		at := b.First
		if work[0] == n {
			at = to
		}
		work = work[1:]
		left := false
		for ; at < b.Last && !left; at++ {
			r := c.RowAt(at)
			switch own := c.Bodies[i].Has(c.Owner[at]); {
			case r == nil || r.Line == 0 || g.Insns[at].Kind == flow.Nop:
			case !own:
				left = true
			case !copied[c.PlaceOf(r, at)] && c.Acts(at):
				return true
			}
		}
		for _, to := range b.Succs {
			if !left && !seen[to] {
				seen[to] = true
				work = append(work, to)
			}
		}
	}
	return false
}

// ActsFrom reports whether a body does what can be seen from one instruction to another.
func (c *Rules) ActsFrom(i, from, to int32) bool {
	for at := from; at < to; at++ {
		if c.Bodies[i].Has(c.Owner[at]) && c.Acts(at) {
			return true
		}
	}
	return false
}

// ActsAgain reports whether something that a body does from one instruction of a block to another, and that can be seen, is done alike at the same place behind that: two runs in straight code do the
// same. Where nothing is, all may be one run's, as GCC gives each instruction of an expression the expression's place; or the compiler has made one of what two runs do.
func (c *Rules) ActsAgain(i, from, to int32) bool {
	does := make(map[step]bool)
	for at := from; at < c.Graph.Blocks[c.Graph.Block(from)].Last; at++ {
		s, ok := c.stepAt(at)
		switch {
		case !ok || !c.Bodies[i].Has(c.Owner[at]) || !c.Acts(at):
		case at < to:
			does[s] = true
		case does[s]:
			return true
		}
	}
	return false
}

// entersAny reports whether the first instruction of one of some blocks is a body's.
func (c *Rules) entersAny(i int32, blocks []int32) bool {
	return slices.ContainsFunc(blocks, func(n int32) bool { return c.Bodies[i].Has(c.Owner[c.Past(c.Graph.Blocks[n].First)]) })
}
