package motion

import (
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/flow"
)

// LLVM unrolls a loop of the caller's with all that is in it, and computes once what the body begins with, if that is the same in all turns. Each copy then begins in the midst of the body, in a block
// of its own behind code of the caller's, as a rest of it would.

// maxUsed bounds the blocks between two copies of the caller's code.
const maxUsed = 32

// UsedAgain reports whether a piece of a body, that begins at an instruction, is of another run than what the body did before: the caller's code in front of it in its block has used what the body had
// made; behind the piece, or before that, the caller uses it at the same place again, with nothing but the body's in between; and what the body does between two such uses it does on both
// sides of this one. A caller uses a run's result behind the run, and at one place once, so that copies of the use are turns of its own loop. A compiler that puts what the caller
// makes of a number that the body has on its way into turns of the body's own loop would show the same. And where a run begins between two such uses, as begins says, each is in
// the midst of a run: clang 22 computes the i + k of "height[i] = i + k" where the body compares that.
func (c *Rules) UsedAgain(i, first int32, begins func(insn int32) bool) bool {
	n := c.Graph.Block(first)
	if c.Unit.GNU() || c.Unit.IsGo() {
		return false
	}
	var uses []step
	for at := c.Graph.Blocks[n].First; at < first; at++ {
		if c.Bodies[i].Has(c.Owner[at]) {
			return false
		}
		if s, ok := c.stepAt(at); ok && c.uses(i, at) {
			uses = append(uses, s)
		}
	}
	if uses == nil {
		return false
	}
	began := false
	look := func(at int32) { // the body's own loop comes back to its first statement behind others of the body
		began = began || at != first && at > 0 && !c.Bodies[i].Has(c.Owner[at-1]) && begins(at)
	}
	behind, again := c.untilUse(i, n, first, uses, true, look)
	if behind == nil || began {
		return false
	}
	before, earlier := c.untilUse(i, n, c.Graph.Blocks[n].First, uses, false, look)
	return (again || earlier && !began) && slices.ContainsFunc(behind, func(s step) bool { return slices.Contains(before, s) })
}

// uses reports whether an instruction of a body's caller reads a register that nothing but the body has written last.
func (c *Rules) uses(i, at int32) bool {
	if !c.Bodies[c.Owner[at]].Has(i) || c.Graph.Insns[at].Kind != flow.Plain {
		return false
	}
	r := c.RowAt(at)
	reads, _, known := c.Arch.Accesses(c.Graph.Bytes(at))
	if r == nil || r.Line == 0 || !known {
		return false
	}
	own := func(n int32) bool {
		if r := c.RowAt(n); r != nil && r.Line == 0 { // what joins paths has no position, nor has what loads a register again
			_, accesses := c.Arch.Touching(c.Graph.Bytes(n))
			return !accesses
		}
		return c.Bodies[i].Has(c.Owner[n])
	}
	for reg := uint16(0); reg < body.Followed; reg++ {
		if reads.Has(uint64(reg)) && c.Graph.WrittenBy(c.Arch, at, reg, slices.Contains(c.Unit.Image.Arch().Preserved, reg), own) {
			return true
		}
	}
	return false
}

// untilUse follows the paths from an instruction of a block, or back from there, through a body's code up to one of some uses, or another one at its place. It looks at the body's instructions, and
// returns what they do, and whether there is such a use.
func (c *Rules) untilUse(i, block, at int32, uses []step, ahead bool, look func(insn int32)) (steps []step, used bool) {
	g := c.Graph
	seen := map[int32]bool{block: true}
	var work []int32
	// through looks at a block between two instructions, and goes on behind it. A caller's instruction for an argument may be among those of the body.
	through := func(n, from, to int32) {
		some := false
		for k := range to - from {
			at := from + k
			if !ahead {
				at = to - 1 - k
			}
			r := c.RowAt(at)
			s, ok := c.stepAt(at)
			switch {
			case g.Insns[at].Kind == flow.Nop || g.Insns[at].Kind == flow.Jump || !ok || r.Line == 0:
			case c.Bodies[i].Has(c.Owner[at]):
				steps, some = append(steps, s), true
				look(at)
			case slices.ContainsFunc(uses, func(u step) bool { return u == s || u.place == s.place && c.uses(i, at) }):
				used = true
				return
			}
		}
		if !some && n != block || len(seen) > maxUsed {
			return
		}
		if ahead {
			work = append(work, g.Blocks[n].Succs...)
		} else {
			g.OnlyBehind(n, func(last int32) bool { work = append(work, g.Block(last)); return true })
		}
	}
	if ahead {
		through(block, at, g.Blocks[block].Last)
	} else {
		through(block, at, at)
	}
	for len(work) > 0 {
		n := work[len(work)-1]
		work = work[:len(work)-1]
		if !seen[n] {
			seen[n] = true
			through(n, g.Blocks[n].First, g.Blocks[n].Last)
		}
	}
	return steps, used
}
