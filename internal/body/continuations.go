package body

import (
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/flow"
	"github.com/bpfprologue/bpfprologue/internal/insn"
)

// A compiler that leaves no markers of statements puts the parts of one expression far from each other, with code of the caller between: a load
// where its result is needed no sooner than much later, and the test of it there. The later part is at the same position as the beginning
// of the run, but goes on with what that computed, where another run would compute it again.

// without returns the runs for a body's marks, less those at which no run begins.
func (c *Code) without(i int32, marks []flow.Mark) flow.Runs {
	runs := c.solver.Solve(marks, nil)
	for range maxInvariants {
		if len(runs.In) < 2 {
			break
		}
		none := func(m flow.Mark) bool {
			return m.Kind != flow.MarkAway && slices.ContainsFunc(runs.In, func(w flow.Way) bool {
				return w.Insn == m.Insn && (c.invariant(i, w.Insn, runs.In) || c.unswitched(i, w.Insn, runs.In) || c.continues(i, w.Insn, runs.In))
			})
		}
		left := slices.DeleteFunc(slices.Clone(marks), none)
		if len(left) == len(marks) {
			break
		}
		further := c.solver.Solve(left, nil)
		if len(further.In) == 0 {
			break
		}
		runs, marks = further, left
	}
	return runs
}

// maxInvariants bounds how many pieces of a body that follow each other are looked at.
const maxInvariants = 4

// continues reports whether a piece of a body that begins at an instruction goes on with a run that began at another one of its ways in.
// Go's compiler copies no code of loops, so that each piece that is behind others does, and it moves registers elsewhere with the position of what needs them.
func (c *Code) continues(i, first int32, in []flow.Way) bool {
	if c.u.IsGo() {
		return c.graph.Later(first, in, true) ||
			!c.states(i, first) && slices.ContainsFunc(in, func(w flow.Way) bool {
				return (c.states(i, w.Insn) || c.idle(i, first) && !c.idle(i, w.Insn)) && !c.graph.Later(w.Insn, in, true)
			})
	}
	return (c.usesOwn(first) || c.resumes(i, first)) && c.graph.Later(first, in, true) || (c.comparesFor(i, first) || c.tests(i, first, in) || c.remade(i, first, in)) && c.graph.Later(first, in, false)
}

// comparesFor reports whether all that is left of a piece of a body that begins at an instruction is a comparison on which another's branch depends, with nothing between the
// two but what loads registers again: where several bodies compare the same, LLVM does so once, for the first of them, and then repeats that, with its position, in front
// of each branch. A run would branch itself.
func (c *Code) comparesFor(i, first int32) bool {
	last := c.graph.Blocks[c.graph.Block(first)].Last - 1
	r := c.rowAt(last)
	own := c.rowAt(first)
	if c.u.GNU() || c.graph.Insns[last].Kind != flow.Branch || c.bodies[i].has(c.owner[last]) || own == nil || r == nil || r.Line == 0 {
		return false
	}
	branches := func(n int32) bool {
		r := c.rowAt(n)
		return c.graph.Insns[n].Kind == flow.Branch && r != nil && c.bodies[i].has(c.owner[n]) && r.File == own.File && r.Line == own.Line
	}
	if !c.hasSuch(i, branches) {
		return false // no run branches itself
	}
	for at := first; at < last; at++ {
		if c.graph.Insns[at].Kind != flow.Plain {
			return false
		}
		if r := c.rowAt(at); r != nil && r.Line == 0 {
			continue
		}
		if _, w, ok := c.arch.Accesses(c.graph.Bytes(at)); !ok || w != (insn.Writes{}) || !c.bodies[i].has(c.owner[at]) {
			return false
		}
	}
	return true
}

// states reports whether a piece of a body that begins at an instruction has the beginning of a statement. In code of Go's compiler another one only loads again what
// was stored to the stack, with the position of what needs it.
func (c *Code) states(i, first int32) bool {
	block := &c.graph.Blocks[c.graph.Block(first)]
	for at := first; at < block.Last && c.bodies[i].has(c.owner[at]); at++ {
		if r := c.rowAt(at); r != nil && r.Stmt {
			return true
		}
	}
	return false
}

// tests reports whether a piece of a body that begins at an instruction does nothing that can be seen, where the body does, goes back to the caller in
// the same block, and begins with another position than the other pieces: LLVM repeats a comparison where the caller needs its result.
func (c *Code) tests(i, first int32, in []flow.Way) bool {
	x := c.rowAt(first)
	like := func(w flow.Way) bool { // that begins at the same position, and does something
		y := c.rowAt(w.Insn)
		return w.Insn != first && (x == nil || y != nil && c.placeOf(x, first) == c.placeOf(y, w.Insn)) && !c.idle(i, w.Insn)
	}
	return c.idle(i, first) && !slices.ContainsFunc(in, like) &&
		c.actsAtAll(i)
}

// idle reports whether a body does nothing that can be seen from an instruction to the end of its block, and goes back to the caller there or in the only block
// behind it.
func (c *Code) idle(i, first int32) bool {
	block := &c.graph.Blocks[c.graph.Block(first)]
	onward := len(block.Succs) == 1 && !c.bodies[i].has(c.owner[c.graph.Blocks[block.Succs[0]].First])
	left := onward
	for at := first; at < block.Last; at++ {
		switch {
		case !c.bodies[i].has(c.owner[at]):
			left = true
		case onward && c.graph.Insns[at].Kind == flow.Jump:
		case c.graph.Insns[at].Kind != flow.Plain && c.graph.Insns[at].Kind != flow.Nop, c.acts(at):
			return false
		}
	}
	return left
}

// onlyComputes reports whether all that is known of a piece of a body that begins at an instruction is that it computes something for the caller, where the body
// does what can be seen: GCC gives a value that it needs at several places the position of one of them. It may also be all that is left of a run.
func (c *Code) onlyComputes(i, first int32) bool {
	return c.u.GNU() && c.idle(i, first) && c.actsAtAll(i)
}

// usesOwn reports whether an instruction, of which the body has no copy, reads a register that, wherever execution comes from, instructions of the same position in
// the same body have written last.
func (c *Code) usesOwn(first int32) bool {
	r := c.rowAt(first)
	reads, _, ok := c.arch.Accesses(c.graph.Bytes(first))
	if r == nil || r.Line == 0 || !ok || c.copied(first, first+1) {
		return false
	}
	place := c.placeOf(r, first)
	// What depends on nothing, as an address does, is the same in all runs, if there is a copy of what is done with it.
	once := !c.copied(first, c.pieceEnd(first))
	computed := func(n int32) bool {
		r := c.rowAt(n)
		return r != nil && c.placeOf(r, n) == place && (once || c.depends(n))
	}
	for reg := uint16(0); reads != 0; reg, reads = reg+1, reads>>1 {
		if reads&1 != 0 && c.graph.WrittenBy(c.arch, first, reg, slices.Contains(c.u.Image.Arch().Preserved, reg), computed) {
			return true
		}
	}
	return false
}

// resumes reports whether a piece of a body, of which there is no copy, begins behind a test of the body's own alone, or one of the caller's for which the body compares, and an
// instruction of the caller's that changes nothing but registers: an argument that is loaded no sooner.
func (c *Code) resumes(i, first int32) bool {
	n := c.graph.Block(first)
	for at := c.graph.Blocks[n].First; at < first; at++ {
		if k := c.graph.Insns[at].Kind; k != flow.Plain && k != flow.Nop || c.acts(at) {
			return false
		}
	}
	return !c.copied(first, c.pieceEnd(first)) && c.graph.OnlyBehind(n, func(last int32) bool {
		own := c.bodies[i].has(c.owner[last])
		if !own && !c.u.GNU() && last > 0 && c.graph.Insns[last-1].Kind == flow.Plain && c.bodies[i].has(c.owner[last-1]) {
			w, ok := c.arch.Writes(c.graph.Bytes(last - 1))
			own = ok && w == (insn.Writes{})
		}
		return c.graph.Insns[last].Kind == flow.Branch && own
	})
}

// pieceEnd returns where the piece of a body that begins at an instruction ends in its block.
func (c *Code) pieceEnd(first int32) int32 {
	last := first + 1
	for end := c.graph.Blocks[c.graph.Block(first)].Last; last < end && c.owner[last] == c.owner[first]; {
		last++
	}
	return last
}

// depends reports whether an instruction reads registers.
func (c *Code) depends(n int32) bool {
	reads, _, ok := c.arch.Accesses(c.graph.Bytes(n))
	return ok && reads != 0
}

// copied reports whether a body has copies of instructions, from one to another, elsewhere. What loads a register again that was stored to the frame is no copy of
// another load: it has the position of the instruction that needs it.
func (c *Code) copied(first, last int32) bool {
	type like struct {
		step
		depends, frame bool
	}
	own, sp := c.owner[first], uint64(c.u.Image.Arch().SP)
	likes := func(n int32) (like, bool) {
		s, ok := c.stepAt(n)
		m, _, accesses := c.arch.Operand(c.graph.Bytes(n))
		return like{s, c.depends(n), accesses && m.Base == sp}, ok && c.owner[n] == own
	}
	piece := make(map[like]bool)
	for n := first; n < last; n++ {
		if l, ok := likes(n); ok {
			piece[l] = true
		}
	}
	for n := range int32(len(c.graph.Insns)) {
		if n < first || n >= last {
			if l, ok := likes(n); ok && piece[l] {
				return true
			}
		}
	}
	return false
}
