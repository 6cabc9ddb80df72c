package body

import (
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/flow"
)

// GCC writes a row of the line table where the place changes, in the order of addresses, and gives instructions that have none, as many that it makes itself, the place of
// those before them. Where execution comes to a block by a jump, what stands before it is something else that ran: the place says nothing until it changes.

// borrowed reports whether an instruction may have no place but that of the one before it in the code.
func (c *Code) borrowed(n int32) bool {
	if n == 0 || !c.u.GNU() {
		return false
	}
	x, y := c.rowAt(n-1), c.rowAt(n)
	return x != nil && y != nil && c.placeOf(x, n-1) == c.placeOf(y, n)
}

// guessed reports whether only a borrowed place says that a run of a body begins at a way in: that of the way itself, to which execution only jumps; or that of the caller's
// instructions before it, to which the body itself jumps, as for another turn of its loop.
func (c *Code) guessed(i int32, w *flow.Way) bool {
	g := c.graph
	n := g.Block(w.Insn)
	first := c.past(g.Blocks[n].First)
	for at := first; at <= w.Insn; at++ {
		if !c.borrowed(at) {
			return false
		}
		if at == w.Insn {
			return at == first && (n == 0 || !g.FallsThrough(n-1))
		}
		if at+1 == w.Insn {
			break
		}
	}
	return !g.OnlyBehind(n, func(last int32) bool {
		return last+1 == g.Blocks[n].First || !c.bodies[i].has(c.owner[last])
	})
}

// remade reports whether a piece of a body that begins at an instruction is only a constant with which runs begin elsewhere, and go on in the same block to what they store:
// LLVM makes a constant again where it is needed, for another body too, with the place of the first. A run would go on there too.
func (c *Code) remade(i, first int32, in []flow.Way) bool {
	made, ok := c.stepAt(first)
	if !ok || c.u.GNU() || !c.idle(i, first) || c.global(first) != 0 || c.depends(first) || c.pieceEnd(first) > first+1 {
		return false
	}
	stores := func(from int32) bool {
		for at := from + 1; at < c.pieceEnd(from); at++ {
			if w, ok := c.arch.Writes(c.graph.Bytes(at)); ok && w.Memory {
				return true
			}
		}
		return false
	}
	return slices.ContainsFunc(in, func(w flow.Way) bool {
		s, ok := c.stepAt(w.Insn)
		return ok && w.Insn != first && s == made && stores(w.Insn)
	})
}
