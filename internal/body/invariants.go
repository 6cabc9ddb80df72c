package body

import (
	"cmp"
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/flow"
	"github.com/bpfprologue/bpfprologue/internal/insn"
)

// Compilers move what each run of a body computes alike in a loop of the caller to the code before that loop, and leave it the position that
// it had in the body. No run begins there. It has no copy in the loop, as the beginning of a loop that was rotated has, and does nothing
// that can be seen: it is the rest of the body that runs.

// invariant reports whether a piece of a body that begins at an instruction was moved out of a loop in which another way into the body is.
func (c *Code) invariant(i, first int32, in []flow.Way) bool {
	g := c.graph
	n := g.Block(first)
	block := &g.Blocks[n]
	plain := func(n int32) (s step, ok bool) {
		if g.Insns[n].Kind == flow.Plain {
			s, ok = c.stepAt(n)
		}
		return s, ok
	}
	moved := make(map[step]bool)
	at := first
	for ; at < block.Last && c.bodies[i].has(c.owner[at]); at++ {
		k := g.Insns[at].Kind
		if k == flow.Jump && !c.bodies[i].has(c.owner[g.Blocks[block.Succs[0]].First]) {
			break
		}
		if k != flow.Plain && k != flow.Nop || c.acts(at) {
			return false
		}
		if s, ok := plain(at); ok {
			moved[s] = true
		}
	}
	if at == block.Last && (len(block.Succs) != 1 || c.bodies[i].has(c.owner[g.Blocks[block.Succs[0]].First])) {
		return false
	}
	copied := c.hasSuch(i, func(k int32) bool {
		s, ok := plain(k)
		return ok && moved[s] && (k < first || k >= at)
	})
	return !copied && g.RepeatsAny(in, n)
}

// unswitched reports whether a piece of a body that begins at an instruction is only a test that was moved out of a loop in which another way into the body is: LLVM makes two
// loops of one for a test with the same outcome in each turn, and none is left in them.
func (c *Code) unswitched(i, first int32, in []flow.Way) bool {
	g, n := c.graph, c.graph.Block(first)
	last := g.Blocks[n].Last - 1
	test, ok := c.stepAt(last)
	if !ok || g.Insns[last].Kind != flow.Branch || !c.bodies[i].has(c.owner[last]) || c.entersAny(i, g.Blocks[n].Succs) {
		return false
	}
	for at := first; at < last; at++ {
		if k := g.Insns[at].Kind; k != flow.Plain && k != flow.Nop || !c.bodies[i].has(c.owner[at]) || c.acts(at) {
			return false
		}
	}
	tested := c.hasSuch(i, func(k int32) bool {
		s, ok := c.stepAt(k)
		return ok && k != last && g.Insns[k].Kind == flow.Branch && s.place == test.place
	})
	return !tested && g.RepeatsAny(in, n)
}

// entersAny reports whether the first instruction of one of some blocks is a body's.
func (c *Code) entersAny(i int32, blocks []int32) bool {
	return slices.ContainsFunc(blocks, func(n int32) bool { return c.bodies[i].has(c.owner[c.past(c.graph.Blocks[n].First)]) })
}

// withoutSpeculated drops the marks of pieces of a body that LLVM moved before a test of the caller's: only behind one side of the test is the
// rest, which does what can be seen. No run begins before the test, whose other side would leave the body unfinished.
func (c *Code) withoutSpeculated(i int32, marks []flow.Mark) []flow.Mark {
	return slices.DeleteFunc(marks, func(m flow.Mark) bool {
		return (m.Kind == flow.MarkInside || m.Kind == flow.MarkEnter) && c.speculated(i, m.Insn)
	})
}

// speculated reports whether a piece of a body that begins at an instruction does nothing that can be seen, and is followed in its block by a branch of the
// caller's, behind which the body goes on in one block that does, or tests, and not in another: in the next ones, or further on.
func (c *Code) speculated(i, first int32) bool {
	g, n := c.graph, c.graph.Block(first)
	b, last := &g.Blocks[n], g.Blocks[n].Last-1
	if r := c.rowAt(last); g.Insns[last].Kind != flow.Branch || c.bodies[i].has(c.owner[last]) || r == nil || r.Line == 0 {
		return false
	}
	compares := false // it may be all of a run, of which the branch needs the result
	for at := b.First; at < last; at++ {
		if own := c.bodies[i].has(c.owner[at]); own && (g.Insns[at].Kind != flow.Plain && g.Insns[at].Kind != flow.Nop || c.acts(at)) {
			return false
		} else if w, _ := c.arch.Writes(g.Bytes(at)); own && w == (insn.Writes{}) {
			compares = true
		}
	}
	goesOn, leaves := false, false
	for _, to := range b.Succs {
		own, acts := c.ownIn(i, to)
		goesOn, leaves = goesOn || acts, leaves || !own
	}
	does := func(n int32) bool { return g.Insns[n].Kind == flow.Plain && c.bodies[i].has(c.owner[n]) && c.acts(n) }
	if !compares && !c.u.GNU() && (!goesOn || !leaves) && c.hasSuch(i, does) {
		goesOn, leaves = g.Ahead(n, func(block int32) bool { _, acts := c.ownIn(i, block); return acts })
	}
	return goesOn && leaves
}

// ownIn reports whether a block has instructions of a body, and whether one does what can be seen.
func (c *Code) ownIn(i, block int32) (own, acts bool) {
	for at := c.graph.Blocks[block].First; at < c.graph.Blocks[block].Last; at++ {
		if c.bodies[i].has(c.owner[at]) {
			own, acts = true, acts || c.acts(at)
		}
	}
	return own, acts
}

// withoutPreparations drops the marks of pieces of a body that only prepare its next run: LLVM moves a load with which each turn of the
// caller's loop begins to the end of the turn before, behind the caller's test.
func (c *Code) withoutPreparations(i int32, marks []flow.Mark) []flow.Mark {
	return slices.DeleteFunc(marks, func(m flow.Mark) bool {
		return m.Kind == flow.MarkInside && c.prepares(i, m.Insn, marks) || m.Kind == flow.MarkEnter && c.loads(i, m.Insn, marks) ||
			(m.Kind == flow.MarkInside || m.Kind == flow.MarkEnter) && (c.feeds(i, m.Insn, marks) || c.forTwin(i, m.Insn))
	})
}

// forTwin reports whether a piece of a body that begins at an instruction is of a statement that does what can be seen elsewhere in the body, does nothing such, and comes
// before the same statement of another instance of the function in its block: LLVM makes a constant again that several instances need, for one of them.
func (c *Code) forTwin(i, first int32) bool {
	row, last := c.rowAt(first), c.graph.Blocks[c.graph.Block(first)].Last
	same := func(n int32) bool {
		r := c.rowAt(n)
		return r != nil && row != nil && r.File == row.File && r.Line == row.Line && r.Column == row.Column
	}
	at := first
	for ; at < last && (c.bodies[i].has(c.owner[at]) || c.functionOf(c.owner[at]) != c.functionOf(i)); at++ {
		if c.graph.Insns[at].Kind != flow.Plain || c.bodies[i].has(c.owner[at]) && (!same(at) || c.acts(at)) {
			return false
		}
	}
	return !c.u.GNU() && at < last && same(at) && c.hasSuch(i, func(n int32) bool { return c.owner[n] == i && same(n) && c.acts(n) })
}

// loads reports whether a piece of a body that begins at an instruction with the load of a global variable does nothing that can be seen before the next one in its block,
// which needs that, and goes on to a test: LLVM loads such a variable ahead of the caller's argument.
func (c *Code) loads(i, first int32, marks []flow.Mark) bool {
	g, b := c.graph, &c.graph.Blocks[c.graph.Block(first)]
	k := slices.IndexFunc(marks, func(m flow.Mark) bool { return m.Insn > first && m.Insn < b.Last && m.Kind == flow.MarkEnter })
	if k < 0 || c.u.GNU() || c.global(first) == 0 || !c.bodies[i].has(c.owner[b.Last-1]) {
		return false
	}
	w, known := c.arch.Writes(g.Bytes(first))
	made := w.Registers
	for at := first + 1; at < marks[k].Insn; at++ {
		w, ok := c.arch.Writes(g.Bytes(at))
		made, known = made&^w.Registers, known && ok && !c.acts(at)
	}
	reads, _, ok := c.arch.Accesses(g.Bytes(marks[k].Insn))
	return ok && known && reads&made != 0 && g.Insns[b.Last-1].Kind == flow.Branch
}

// feeds reports whether a piece of a body that begins at an instruction, at the end of a block, loads what the body needs in the next block, where a run begins in any
// case: LLVM moves a load of a loop to the ends of the paths to it on which the value is not there already.
func (c *Code) feeds(i, first int32, marks []flow.Mark) bool {
	g := c.graph
	b := &g.Blocks[g.Block(first)]
	if c.u.GNU() || len(b.Succs) != 1 || g.Paths(b.Succs[0]) < 2 {
		return false
	}
	var made uint64 // registers that the piece writes last
	piece := make(map[step]bool)
	for at := b.First; at < b.Last; at++ {
		k, own := g.Insns[at].Kind, c.bodies[i].has(c.owner[at])
		if own && at < first || k != flow.Jump && (k != flow.Plain && k != flow.Nop || own && c.acts(at)) {
			return false
		}
		if k == flow.Jump {
			continue
		}
		w, ok := c.arch.Writes(g.Bytes(at))
		if !ok {
			return false
		}
		if made &^= uint64(w.Registers); own {
			made |= uint64(w.Registers)
			if s, ok := c.stepAt(at); ok && k == flow.Plain {
				piece[s] = true
			}
		}
	}
	to := &g.Blocks[b.Succs[0]]
	k, _ := slices.BinarySearchFunc(marks, to.First, func(m flow.Mark, at int32) int { return cmp.Compare(m.Insn, at) })
	for ; k < len(marks) && marks[k].Insn < to.Last && marks[k].Kind != flow.MarkEnter; k++ {
		if marks[k].Kind != flow.MarkAway {
			return false
		}
	}
	if k == len(marks) || marks[k].Insn >= to.Last {
		return false
	}
	uses := false
	for at := to.First; at < to.Last && (at <= marks[k].Insn || c.bodies[i].has(c.owner[at])); at++ {
		own := c.bodies[i].has(c.owner[at])
		if s, ok := c.stepAt(at); own && ok && piece[s] || !own && c.acts(at) {
			return false // a copy
		}
		reads, _, ok := c.arch.Accesses(g.Bytes(at))
		w, known := c.arch.Writes(g.Bytes(at))
		if !ok || !known {
			return uses
		}
		// What is read and written may be what runs add up, of which the piece can be the first.
		uses = uses || own && uint64(reads)&made&^uint64(w.Registers) != 0
		made &^= uint64(w.Registers)
	}
	return uses
}

// prepares reports whether a piece of a body that begins at an instruction, behind a branch of the caller's, does nothing that can be seen
// and leads to where runs begin.
func (c *Code) prepares(i, first int32, marks []flow.Mark) bool {
	g := c.graph
	n := g.Block(first)
	b := &g.Blocks[n]
	for at := b.First; at < b.Last; at++ {
		k, own := g.Insns[at].Kind, c.bodies[i].has(c.owner[at])
		switch {
		case own && at < first, c.acts(at) && k != flow.Jump:
			return false
		case k != flow.Plain && k != flow.Nop && k != flow.Jump:
			return false
		}
	}
	for _, to := range b.Succs {
		k, _ := slices.BinarySearchFunc(marks, g.Blocks[to].First, func(m flow.Mark, at int32) int { return cmp.Compare(m.Insn, at) })
		if k == len(marks) || g.Block(marks[k].Insn) != to || marks[k].Kind != flow.MarkEnter || c.past(g.Blocks[to].First) != marks[k].Insn {
			return false
		}
	}
	return len(b.Succs) > 0 && g.OnlyBehind(n, func(last int32) bool { return g.Insns[last].Kind == flow.Branch && !c.bodies[i].has(c.owner[last]) })
}
