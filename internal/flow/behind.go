package flow

import (
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/insn"
)

// Later reports whether execution comes to an instruction only behind one of other ways in: each time, or the first time.
func (g *Graph) Later(first int32, in []Way, each bool) bool {
	other := func(at int32) bool {
		return at != first && slices.ContainsFunc(in, func(w Way) bool { return w.Insn == at })
	}
	seen := make(map[int32]bool)
	var work []int32
	// passes reports whether execution comes from an instruction to the way without another one, or leaves the block for others.
	passes := func(from, last int32) bool {
		for at := from; at < last; at++ {
			if at == first {
				return true
			}
			if other(at) {
				return false
			}
		}
		for _, to := range g.Blocks[g.Block(last-1)].Succs {
			if !seen[to] {
				seen[to] = true
				work = append(work, to)
			}
		}
		return false
	}
	entry, own := g.Entry(), &g.Blocks[g.Block(first)]
	seen[entry] = true
	if passes(g.Blocks[entry].First, g.Blocks[entry].Last) {
		return false
	}
	if each && passes(first+1, own.Last) {
		return false
	}
	for len(work) > 0 {
		b := &g.Blocks[work[0]]
		work = work[1:]
		if passes(b.First, b.Last) {
			return false
		}
	}
	return true
}

// RepeatsAny reports whether one of some ways is in a loop that does not have a block, which is not its own.
func (g *Graph) RepeatsAny(in []Way, without int32) bool {
	return slices.ContainsFunc(in, func(w Way) bool {
		b := g.Block(w.Insn)
		return b != without && g.Repeats(b, without)
	})
}

// maxBehind bounds how many blocks are looked through.
const maxBehind = 64

// WrittenBy reports whether such instructions alone write a register last, wherever execution comes from to another instruction. kept is set if calls preserve the register.
func (g *Graph) WrittenBy(a *insn.Arch, from int32, reg uint16, kept bool, such func(at int32) bool) bool {
	seen := make(map[int32]bool)
	var before func(block, end int32) bool
	before = func(block, end int32) bool {
		for at := end - 1; at >= g.Blocks[block].First; at-- {
			if g.Insns[at].Kind != Plain {
				continue // it leads elsewhere, or does nothing
			}
			code := g.Bytes(at)
			if in, ok := a.Next(code); ok && in.Call && kept {
				continue
			}
			w, ok := a.Writes(code)
			if !ok || w.Registers&(1<<reg) != 0 {
				return ok && such(at)
			}
		}
		return g.OnlyBehind(block, func(last int32) bool {
			p := g.Block(last)
			if seen[p] {
				return true
			}
			seen[p] = true
			return len(seen) < maxBehind && before(p, last+1)
		})
	}
	return before(g.Block(from), from)
}

// Needs returns the registers that instructions of a block, from one to another, need of those before them.
func (g *Graph) Needs(a *insn.Arch, from, to int32) (needed uint64) {
	made := uint64(0)
	for at := from; at < to; at++ {
		reads, w, _ := a.Accesses(g.Bytes(at))
		needed |= uint64(reads) &^ made
		made |= uint64(w.Registers)
	}
	return needed
}

// Changed returns the registers that some instructions write, all if that is not known; a call among them may write others.
func (g *Graph) Changed(a *insn.Arch, insns []int32) (w insn.Registers, call bool) {
	for _, n := range insns {
		code := g.Bytes(n)
		in, known := a.Next(code)
		x, ok := a.Writes(code)
		switch {
		case known && (in.Call || in.Branches || in.Lost):
			call = call || in.Call
		case !known || !ok:
			return ^insn.Registers(0), false
		default:
			w |= x.Registers
		}
	}
	return w, call
}

// FollowingTest returns the block to which only the branch at the end of another block leads, if it ends with a branch too and goes on to one of the blocks to which
// that does, and this one.
func (g *Graph) FollowingTest(block int32) (test, out int32, ok bool) {
	branches := func(n int32) bool { return g.Insns[g.Blocks[n].Last-1].Kind == Branch }
	for _, test = range g.Blocks[block].Succs {
		if !branches(block) || !branches(test) || g.Paths(test) != 1 {
			continue
		}
		for _, out = range g.Blocks[test].Succs {
			if slices.Contains(g.Blocks[block].Succs, out) {
				return test, out, true
			}
		}
	}
	return 0, 0, false
}

// maxBetween is over how many blocks Between looks back.
const maxBetween = 6

// Between returns the instructions that are run from one that is such to another, that one apart, where it is not far: on all paths there that have no other such one.
func (g *Graph) Between(such func(n int32) bool, to int32) (between []int32) {
	known := make(map[int32]bool) // blocks, and whether execution comes through them from such an instruction
	var back func(block, last int32, left int) bool
	back = func(block, last int32, left int) bool {
		whole := last == g.Blocks[block].Last // else it is the block of the other instruction, to which a loop may come again
		if whole {
			if comes, ok := known[block]; ok {
				return comes
			}
			known[block] = false
		}
		first, comes := last, false
		for ; first > g.Blocks[block].First && !comes; first-- {
			comes = such(first - 1)
		}
		if !comes && left > 0 {
			for _, p := range g.preds[block] {
				comes = back(p, g.Blocks[p].Last, left-1) || comes
			}
		}
		for n := first; comes && n < last; n++ {
			between = append(between, n)
		}
		if whole {
			known[block] = comes
		}
		return comes
	}
	back(g.Block(to), to, maxBetween)
	return between
}
