package motion

import (
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/flow"
	"github.com/bpfprologue/bpfprologue/internal/insn"
)

// A compiler that leaves no markers of statements puts the parts of one expression far from each other, with code of the caller between: a load
// where its result is needed no sooner than much later, and the test of it there. The later part is at the same position as the beginning
// of the run, but goes on with what that computed, where another run would compute it again.

// Runs returns the runs for a body's marks, less those at which no run begins.
func (c *Rules) Runs(solver *flow.Solver, i int32, marks []flow.Mark) flow.Runs {
	marks = c.withAnticipated(i, c.withRemainders(i, c.withoutSpeculated(i, c.withoutPreparations(i, marks))))
	runs := solver.Solve(marks, nil)
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
		further := solver.Solve(left, nil)
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
func (c *Rules) continues(i, first int32, in []flow.Way) bool {
	if c.Unit.IsGo() {
		return c.Graph.Later(first, in, true) ||
			!c.states(i, first) && slices.ContainsFunc(in, func(w flow.Way) bool {
				return (c.states(i, w.Insn) || c.idle(i, first) && !c.idle(i, w.Insn)) && !c.Graph.Later(w.Insn, in, true)
			})
	}
	goesOn := (c.usesOwn(first) || c.resumes(i, first) || c.comparesAgain(i, first, in) || c.comparesKept(i, first, in)) && c.Graph.Later(first, in, true) ||
		(c.comparesFor(i, first) || c.tests(i, first, in) || c.remade(i, first, in)) && c.Graph.Later(first, in, false) || c.branchesFor(i, first)
	return goesOn && !c.UsedAgain(i, first, func(at int32) bool { return slices.ContainsFunc(in, func(w flow.Way) bool { return w.Insn == at }) })
}

// comparesFor reports whether all that is left of a piece of a body that begins at an instruction is a comparison on which another's branch depends, with nothing between the
// two but what loads registers again, or computes for others: where several bodies compare the same, LLVM does so once, for the first of them, and then repeats that, with its
// position, in front of each branch. A run would branch itself.
func (c *Rules) comparesFor(i, first int32) bool {
	last := c.Graph.Blocks[c.Graph.Block(first)].Last - 1
	r := c.RowAt(last)
	own := c.RowAt(first)
	if c.Unit.GNU() || c.Graph.Insns[last].Kind != flow.Branch || c.Bodies[i].Has(c.Owner[last]) || own == nil || r == nil || r.Line == 0 {
		return false
	}
	branches := func(n int32) bool {
		r := c.RowAt(n)
		return c.Graph.Insns[n].Kind == flow.Branch && r != nil && c.Bodies[i].Has(c.Owner[n]) && r.File == own.File && r.Line == own.Line
	}
	if !c.HasSuch(i, branches) {
		return false // no run branches itself
	}
	for at := first; at < last; at++ {
		if c.Graph.Insns[at].Kind != flow.Plain {
			return false
		}
		own := c.Bodies[i].Has(c.Owner[at])
		if r := c.RowAt(at); r != nil && r.Line == 0 || !own && at > first && !c.Acts(at) {
			continue
		}
		if _, w, ok := c.Arch.Accesses(c.Graph.Bytes(at)); !ok || w != (insn.Writes{}) || !own {
			return false
		}
	}
	return true
}

// branchesFor reports whether all that is left of a piece of a body that begins at an instruction is a branch which depends on a comparison in front of it, of another instance of
// the function at the same place of the source: LLVM merges the ends of both, and the branch keeps the position of one. A run would compare itself.
func (c *Rules) branchesFor(i, first int32) bool {
	before := first - 1
	if c.Unit.GNU() || c.Graph.Insns[first].Kind != flow.Branch || first == c.Graph.Blocks[c.Graph.Block(first)].First || c.Bodies[i].Has(c.Owner[before]) {
		return false
	}
	x, y := c.RowAt(before), c.RowAt(first)
	w, ok := c.Arch.Writes(c.Graph.Bytes(before))
	return ok && w == (insn.Writes{}) && x != nil && y != nil && y.Line != 0 && c.PlaceOf(x, first) == c.PlaceOf(y, first) &&
		c.FunctionOf(c.Owner[before]) == c.FunctionOf(c.Owner[first])
}

// states reports whether a piece of a body that begins at an instruction has the beginning of a statement. In code of Go's compiler another one only loads again what
// was stored to the stack, with the position of what needs it.
func (c *Rules) states(i, first int32) bool {
	block := &c.Graph.Blocks[c.Graph.Block(first)]
	for at := first; at < block.Last && c.Bodies[i].Has(c.Owner[at]); at++ {
		if r := c.RowAt(at); r != nil && r.Stmt {
			return true
		}
	}
	return false
}

// tests reports whether a piece of a body that begins at an instruction does nothing that can be seen, where the body does, goes back to the caller in
// the same block, and begins with another position than the other pieces: LLVM repeats a comparison where the caller needs its result.
func (c *Rules) tests(i, first int32, in []flow.Way) bool {
	x := c.RowAt(first)
	like := func(w flow.Way) bool { // that begins at the same position, and does something
		y := c.RowAt(w.Insn)
		return w.Insn != first && (x == nil || y != nil && c.PlaceOf(x, first) == c.PlaceOf(y, w.Insn)) && !c.idle(i, w.Insn)
	}
	return c.idle(i, first) && !slices.ContainsFunc(in, like) &&
		c.actsAtAll(i)
}

// comparesAgain reports whether all that is left of a piece of a body that begins at an instruction is the comparison with which runs begin elsewhere, and what is computed with it,
// where the body does what can be seen: LLVM keeps a result no longer than the flags, and compares again where the caller's code needs it. The registers are those of the
// other comparison, and written where they were for that: another run in an unrolled loop would do something.
func (c *Rules) comparesAgain(i, first int32, in []flow.Way) bool {
	code := c.Graph.Bytes(first)
	reads, w, ok := c.Arch.Accesses(code)
	if !ok || w != (insn.Writes{}) || reads == 0 || c.Unit.GNU() || !c.idle(i, first) || !c.actsAtAll(i) {
		return false
	}
	var made map[int32]bool
	note := func(n int32) bool { made[n] = true; return true }
	known := func(n int32) bool { return made[n] }
	for k := range in {
		there := in[k].Insn
		same := there != first && string(c.Graph.Bytes(there)) == string(code) && !c.idle(i, there)
		for reg := uint16(0); same && reg < body.Followed; reg++ {
			if reads.Has(uint64(reg)) {
				made = make(map[int32]bool)
				same = c.Graph.WrittenBy(c.Arch, there, reg, false, note) && c.Graph.WrittenBy(c.Arch, first, reg, false, known)
			}
		}
		if same {
			return true
		}
	}
	return false
}

// idle reports whether a body does nothing that can be seen from an instruction to the end of its block, and goes back to the caller there or in the only block
// behind it.
func (c *Rules) idle(i, first int32) bool {
	block := &c.Graph.Blocks[c.Graph.Block(first)]
	onward := len(block.Succs) == 1 && !c.Bodies[i].Has(c.Owner[c.Graph.Blocks[block.Succs[0]].First])
	left := onward
	for at := first; at < block.Last; at++ {
		switch {
		case !c.Bodies[i].Has(c.Owner[at]):
			left = true
		case onward && c.Graph.Insns[at].Kind == flow.Jump:
		case c.Graph.Insns[at].Kind != flow.Plain && c.Graph.Insns[at].Kind != flow.Nop, c.Acts(at):
			return false
		}
	}
	return left
}

// usesOwn reports whether an instruction, of which the body has no copy, reads a register that, wherever execution comes from, instructions of the same position in
// the same body have written last.
func (c *Rules) usesOwn(first int32) bool {
	r := c.RowAt(first)
	reads, _, ok := c.Arch.Accesses(c.Graph.Bytes(first))
	if r == nil || r.Line == 0 || !ok || c.copied(first, first+1) {
		return false
	}
	place := c.PlaceOf(r, first)
	// What depends on nothing, as an address does, is the same in all runs, if there is a copy of what is done with it.
	once := !c.copied(first, c.pieceEnd(first))
	computed := func(n int32) bool {
		r := c.RowAt(n)
		return r != nil && c.PlaceOf(r, n) == place && (once || c.depends(n))
	}
	for reg := uint16(0); reads != 0; reg, reads = reg+1, reads>>1 {
		if reads&1 != 0 && c.Graph.WrittenBy(c.Arch, first, reg, slices.Contains(c.Unit.Image.Arch().Preserved, reg), computed) {
			return true
		}
	}
	return false
}

// resumes reports whether a piece of a body, of which there is no copy, begins behind a test of the body's own alone, or one of the caller's for which the body compares, and an
// instruction of the caller's that changes nothing but registers: an argument that is loaded no sooner.
func (c *Rules) resumes(i, first int32) bool {
	n := c.Graph.Block(first)
	for at := c.Graph.Blocks[n].First; at < first; at++ {
		if k := c.Graph.Insns[at].Kind; k != flow.Plain && k != flow.Nop || c.Acts(at) {
			return false
		}
	}
	return !c.copied(first, c.pieceEnd(first)) && c.Graph.OnlyBehind(n, func(last int32) bool {
		own := c.Bodies[i].Has(c.Owner[last])
		if !own && !c.Unit.GNU() && last > 0 && c.Graph.Insns[last-1].Kind == flow.Plain && c.Bodies[i].Has(c.Owner[last-1]) {
			w, ok := c.Arch.Writes(c.Graph.Bytes(last - 1))
			own = ok && w == (insn.Writes{})
		}
		return c.Graph.Insns[last].Kind == flow.Branch && own
	})
}

// remade reports whether a piece of a body that begins at an instruction is only a constant with which runs begin elsewhere, and go on in the same block to what they store:
// LLVM makes a constant again where it is needed, for another body too, with the place of the first. A run would go on there too.
func (c *Rules) remade(i, first int32, in []flow.Way) bool {
	made, ok := c.stepAt(first)
	if !ok || c.Unit.GNU() || !c.idle(i, first) || c.Global(first) != 0 || c.depends(first) || c.pieceEnd(first) > first+1 {
		return false
	}
	stores := func(from int32) bool {
		for at := from + 1; at < c.pieceEnd(from); at++ {
			if w, ok := c.Arch.Writes(c.Graph.Bytes(at)); ok && w.Memory {
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

// pieceEnd returns where the piece of a body that begins at an instruction ends in its block.
func (c *Rules) pieceEnd(first int32) int32 {
	last := first + 1
	for end := c.Graph.Blocks[c.Graph.Block(first)].Last; last < end && c.Owner[last] == c.Owner[first]; {
		last++
	}
	return last
}

// depends reports whether an instruction reads registers.
func (c *Rules) depends(n int32) bool {
	reads, _, ok := c.Arch.Accesses(c.Graph.Bytes(n))
	return ok && reads != 0
}
