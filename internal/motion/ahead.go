package motion

import (
	"cmp"
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/flow"
	"github.com/bpfprologue/bpfprologue/internal/insn"
)

// withoutSpeculated drops the marks of pieces of a body that LLVM moved before a test of the caller's: only behind one side of the test is the
// rest, which does what can be seen. No run begins before the test, whose other side would leave the body unfinished.
func (c *Rules) withoutSpeculated(i int32, marks []flow.Mark) []flow.Mark {
	return slices.DeleteFunc(marks, func(m flow.Mark) bool {
		return (m.Kind == flow.MarkInside || m.Kind == flow.MarkEnter) && c.Speculated(i, m.Insn)
	})
}

// Speculated reports whether a piece of a body that begins at an instruction does nothing that can be seen, and is followed in its block by a branch of the
// caller's, behind which the body goes on in one block that does, or tests, and not in another: in the next ones, or further on.
func (c *Rules) Speculated(i, first int32) bool {
	g, n := c.Graph, c.Graph.Block(first)
	compares, ok := c.beforeTest(i, n)
	if !ok {
		return false
	}
	goesOn, leaves := false, false
	for _, to := range g.Blocks[n].Succs {
		own, acts := c.ownIn(i, to)
		goesOn, leaves = goesOn || acts, leaves || !own
	}
	does := func(n int32) bool { return g.Insns[n].Kind == flow.Plain && c.Bodies[i].Has(c.Owner[n]) && c.Acts(n) }
	if !compares && !c.Unit.GNU() && (!goesOn || !leaves) && c.HasSuch(i, does) {
		goesOn, leaves = c.actsAhead(i, n)
	}
	return goesOn && leaves
}

// beforeTest reports whether a branch of the caller's ends a block, what a body does there cannot be seen, and whether some of that compares.
func (c *Rules) beforeTest(i, n int32) (compares, ok bool) {
	g, b := c.Graph, &c.Graph.Blocks[n]
	last := b.Last - 1
	if r := c.RowAt(last); g.Insns[last].Kind != flow.Branch || c.Bodies[i].Has(c.Owner[last]) || r == nil || r.Line == 0 {
		return false, false
	}
	for at := b.First; at < last; at++ {
		if own := c.Bodies[i].Has(c.Owner[at]); own && (g.Insns[at].Kind != flow.Plain && g.Insns[at].Kind != flow.Nop || c.Acts(at)) {
			return false, false
		} else if w, _ := c.Arch.Writes(g.Bytes(at)); own && w == (insn.Writes{}) {
			compares = true // it may be all of a run, of which the branch needs the result
		}
	}
	return compares, true
}

// actsAhead reports whether a path from a block comes to another one in which a body does what can be seen, and whether one comes to the function's end without.
func (c *Rules) actsAhead(i, n int32) (acts, leaves bool) {
	return c.Graph.Ahead(n, func(block int32) bool { _, acts := c.ownIn(i, block); return acts })
}

// Early reports whether a piece of a body of GCC's code, that begins at an instruction, may have been computed before tests of the caller's, on one side of which alone the body
// goes on and does what can be seen: the rest of a run is not on all paths from there, unless one of the tests is the body's too.
func (c *Rules) Early(i, first int32) bool {
	n := c.Graph.Block(first)
	compares, ok := c.beforeTest(i, n)
	if !ok || compares || !c.Unit.GNU() || !c.actsAtAll(i) {
		return false
	}
	acts, leaves := c.actsAhead(i, n)
	return acts && leaves
}

// LowestEarly reports whether a way into a body without statements is only where the lowest piece of its code is (see Lowest), and that was computed before tests of the caller's, on one
// side of which alone the body goes on: GCC merges the rest with others' and leaves its statements out, but not those of what is computed in straight code. Nothing of the caller's needs
// the piece up to the first test: what a run has made that begins there, and is used, is needed. And the source does not have the call before the test: GCC moves the rest of what only
// computes behind a test that the rest is needed for.
func (c *Rules) LowestEarly(i int32, w *flow.Way) bool {
	if !c.Unit.GNU() || !c.Lowest(i, w) {
		return false
	}
	n := c.Graph.Block(w.Insn)
	if compares, ok := c.beforeTest(i, n); !ok || compares {
		return false
	}
	if goesOn, leaves := c.Graph.Ahead(n, func(block int32) bool { own, _ := c.ownIn(i, block); return own }); !goesOn || !leaves {
		return false
	}
	if c.callsBefore(i, c.Graph.Blocks[n].Last-1) {
		return false
	}
	return !c.needed(i, w.Insn)
}

// needed reports whether others read what a body has made from an instruction on, in its block, or may: it is not computed ahead of a test for what is behind that.
func (c *Rules) needed(i, from int32) bool {
	made := insn.Registers(0)
	for at, last := from, c.Graph.Blocks[c.Graph.Block(from)].Last; at < last; at++ {
		code := c.Graph.Bytes(at)
		reads, _, ok := c.Arch.Accesses(code)
		writes, known := c.Arch.Writes(code)
		switch own := c.Bodies[i].Has(c.Owner[at]); {
		case own:
			made |= writes.Registers
		case c.Graph.Insns[at].Kind != flow.Plain:
		case !known || !ok || reads&made != 0:
			return true
		default:
			made &^= writes.Registers
		}
	}
	return false
}

// callsBefore reports whether the source has the call of a body before an instruction, in the body around both.
func (c *Rules) callsBefore(i, n int32) bool {
	r, own := c.RowAt(n), c.Owner[n]
	for p := c.Bodies[i].Parent; p >= 0; i, p = p, c.Bodies[p].Parent {
		if !c.Bodies[p].Has(own) {
			continue
		}
		call, at := &c.Bodies[i].Call, body.CallPlace{File: r.File, Line: r.Line}
		for ; own != p; own = c.Bodies[own].Parent {
			at = c.Bodies[own].Call
		}
		return call.File == at.File && call.Line < at.Line
	}
	return false
}

// ownIn reports whether a block has instructions of a body, and whether one does what can be seen.
func (c *Rules) ownIn(i, block int32) (own, acts bool) {
	for at := c.Graph.Blocks[block].First; at < c.Graph.Blocks[block].Last; at++ {
		if c.Bodies[i].Has(c.Owner[at]) {
			own, acts = true, acts || c.shows(at)
		}
	}
	return own, acts
}

// actsAtAll reports whether a body does anywhere what can be seen, or tests.
func (c *Rules) actsAtAll(i int32) bool {
	return c.HasSuch(i, func(n int32) bool { return c.Bodies[i].Has(c.Owner[n]) && c.shows(n) })
}

// shows reports whether an instruction does what can be seen, or tests. A jump that is always taken shows nothing of the body that has its position where LLVM has put it there, to
// lay out blocks; what GCC moves leaves no jump.
func (c *Rules) shows(at int32) bool {
	return (c.Graph.Insns[at].Kind != flow.Jump || c.Unit.GNU()) && c.Acts(at)
}

// LLVM moves what both sides of a test of the caller's compute to the code before it, with the position that one of them has, and merges the rest
// of that side with the same of others: such code has no position, and no body. Whether a run has begun where a body only computes is then not
// known before the test.

// maxApart is how many blocks of the caller's are between a piece of a body and the code that goes on with it, at most.
const maxApart = 3

// RestMerged reports whether a piece of a body, that begins at an instruction, may have been computed for code that was merged: it does nothing that can be
// seen, which most bodies of the function do, a branch of the caller's ends its block, and one side of that is code without position which does, with what the
// piece has computed.
func (c *Rules) RestMerged(i, first int32) bool {
	g := c.Graph
	n := g.Block(first)
	b := &g.Blocks[n]
	last := b.Last - 1
	if c.Unit.GNU() || c.Unit.IsGo() || c.Bodies[i].Parent < 0 || g.Insns[last].Kind != flow.Branch || c.Bodies[i].Has(c.Owner[last]) {
		return false
	}
	for at := first; at < last; at++ {
		if c.Bodies[i].Has(c.Owner[at]) && (g.Insns[at].Kind != flow.Plain && g.Insns[at].Kind != flow.Nop || c.Acts(at)) {
			return false
		}
	}
	return c.feedsMerged(i, first, b.Last, 0, maxApart) && c.MostAct(c.Bodies[i].Rec)
}

// feedsMerged reports whether code without position uses what a body computes from one instruction to another, or what is made has of that, and does
// what can be seen: behind so many blocks of the caller's at most.
func (c *Rules) feedsMerged(i, from, to int32, made uint64, left int) bool {
	g := c.Graph
	for at := from; at < to; at++ {
		reads, w, ok := c.Arch.Accesses(g.Bytes(at))
		if k := g.Insns[at].Kind; k == flow.Branch || k == flow.Jump || k == flow.Nop {
			continue
		}
		own, r := c.Bodies[i].Has(c.Owner[at]), c.RowAt(at)
		nowhere := !own && (r == nil || r.Line == 0)
		uses := ok && uint64(reads)&made != 0
		switch {
		case own && left < maxApart, !ok:
			return false
		case nowhere && uses && c.Acts(at):
			return true
		case own || nowhere && uses:
			made |= uint64(w.Registers)
		default:
			made &^= uint64(w.Registers)
		}
	}
	if left == 0 || made == 0 {
		return false
	}
	for _, n := range g.Blocks[g.Block(to-1)].Succs {
		if b := &g.Blocks[n]; c.feedsMerged(i, b.First, b.Last, made, left-1) {
			return true
		}
	}
	return false
}

// withoutPreparations drops the marks of pieces of a body that only prepare its next run: LLVM moves a load with which each turn of the
// caller's loop begins to the end of the turn before, behind the caller's test.
func (c *Rules) withoutPreparations(i int32, marks []flow.Mark) []flow.Mark {
	return slices.DeleteFunc(marks, func(m flow.Mark) bool {
		return m.Kind == flow.MarkInside && c.prepares(i, m.Insn, marks) || m.Kind == flow.MarkEnter && c.loads(i, m.Insn, marks) ||
			(m.Kind == flow.MarkInside || m.Kind == flow.MarkEnter) && (c.feeds(i, m.Insn, marks) || c.forTwin(i, m.Insn) || c.constantsFor(i, m.Insn) || c.loadsAhead(i, m.Insn, marks))
	})
}

// prepares reports whether a piece of a body that begins at an instruction, behind a branch of the caller's, does nothing that can be seen
// and leads to where runs begin.
func (c *Rules) prepares(i, first int32, marks []flow.Mark) bool {
	g := c.Graph
	n := g.Block(first)
	b := &g.Blocks[n]
	for at := b.First; at < b.Last; at++ {
		k, own := g.Insns[at].Kind, c.Bodies[i].Has(c.Owner[at])
		switch {
		case own && at < first, c.Acts(at) && k != flow.Jump:
			return false
		case k != flow.Plain && k != flow.Nop && k != flow.Jump:
			return false
		}
	}
	for _, to := range b.Succs {
		k, _ := slices.BinarySearchFunc(marks, g.Blocks[to].First, func(m flow.Mark, at int32) int { return cmp.Compare(m.Insn, at) })
		if k == len(marks) || g.Block(marks[k].Insn) != to || marks[k].Kind != flow.MarkEnter || c.Past(g.Blocks[to].First) != marks[k].Insn {
			return false
		}
	}
	return len(b.Succs) > 0 && g.OnlyBehind(n, func(last int32) bool { return g.Insns[last].Kind == flow.Branch && !c.Bodies[i].Has(c.Owner[last]) })
}

// loads reports whether a piece of a body that begins at an instruction with the load of a global variable does nothing that can be seen before the next one in its block,
// which needs that, and goes on to a test: LLVM loads such a variable ahead of the caller's argument.
func (c *Rules) loads(i, first int32, marks []flow.Mark) bool {
	g, b := c.Graph, &c.Graph.Blocks[c.Graph.Block(first)]
	k := slices.IndexFunc(marks, func(m flow.Mark) bool { return m.Insn > first && m.Insn < b.Last && m.Kind == flow.MarkEnter })
	if k < 0 || c.Unit.GNU() || c.Global(first) == 0 || !c.Bodies[i].Has(c.Owner[b.Last-1]) {
		return false
	}
	w, known := c.Arch.Writes(g.Bytes(first))
	made := w.Registers
	for at := first + 1; at < marks[k].Insn; at++ {
		w, ok := c.Arch.Writes(g.Bytes(at))
		made, known = made&^w.Registers, known && ok && !c.Acts(at)
	}
	reads, _, ok := c.Arch.Accesses(g.Bytes(marks[k].Insn))
	return ok && known && reads&made != 0 && g.Insns[b.Last-1].Kind == flow.Branch
}

// feeds reports whether a piece of a body that begins at an instruction, at the end of a block, loads what the body needs in the next block, where a run begins in any
// case: LLVM moves a load of a loop to the ends of the paths to it on which the value is not there already. The caller may store something else in between.
func (c *Rules) feeds(i, first int32, marks []flow.Mark) bool {
	to, ok := c.meeting(first)
	if c.Unit.GNU() || !ok {
		return false
	}
	k, _ := slices.BinarySearchFunc(marks, to.First, func(m flow.Mark, at int32) int { return cmp.Compare(m.Insn, at) })
	for ; k < len(marks) && marks[k].Insn < to.Last && marks[k].Kind != flow.MarkEnter; k++ {
		if marks[k].Kind != flow.MarkAway {
			return false
		}
	}
	// What is read and written may be what runs add up, of which the piece can be the first.
	return k < len(marks) && marks[k].Insn < to.Last && c.needsPiece(i, first, marks[k].Insn, func(reads, writes uint64) uint64 { return reads &^ writes })
}

// Apart reports whether a way into a body of GCC's code without markers may be one to a part alone of what the body computes: the next block, to which other paths come too, goes on with
// that at another way in. GCC puts an addition together with one of the caller's, on the path that has it. Runs of which one needs the result of the one before look the same, but repeat it.
func (c *Rules) Apart(i int32, w *flow.Way, ways []flow.Way) bool {
	to, ok := c.meeting(w.Insn)
	return ok && c.Unit.GNU() && slices.ContainsFunc(ways, func(next flow.Way) bool {
		return next.Insn >= to.First && next.Insn < to.Last && next.Probe == next.Insn && !next.Again && !slices.ContainsFunc(c.Owner[to.First:next.Insn], c.Bodies[i].Has) &&
			c.needsPiece(i, w.Insn, next.Insn, func(reads, _ uint64) uint64 { return reads })
	})
}

// meeting returns the block to which alone that of an instruction leads, if other paths come there too.
func (c *Rules) meeting(from int32) (to *flow.Block, ok bool) {
	g := c.Graph
	succs := g.Blocks[g.Block(from)].Succs
	if len(succs) != 1 || g.Paths(succs[0]) < 2 {
		return nil, false
	}
	return &g.Blocks[succs[0]], true
}

// needsPiece reports whether a piece of a body that begins at an instruction, with nothing of the body before it in its block, does nothing that can be seen, and the next block goes on at
// another one with what it has computed, and not with a copy of it. uses returns which of the registers that an instruction reads and writes count.
func (c *Rules) needsPiece(i, first, next int32, uses func(reads, writes uint64) uint64) bool {
	g := c.Graph
	b, to := &g.Blocks[g.Block(first)], &g.Blocks[g.Block(next)]
	if slices.ContainsFunc(c.Owner[b.First:first], c.Bodies[i].Has) {
		return false
	}
	var made uint64 // registers that the piece writes last
	piece := make(map[step]bool)
	for at := first; at < b.Last; at++ {
		k, own := g.Insns[at].Kind, c.Bodies[i].Has(c.Owner[at])
		if k != flow.Jump && (k != flow.Plain && k != flow.Nop || own && c.Acts(at)) {
			return false
		}
		if k == flow.Jump {
			continue
		}
		w, ok := c.Arch.Writes(g.Bytes(at))
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
	needs := false
	for at := to.First; at < to.Last && (at <= next || c.Bodies[i].Has(c.Owner[at])); at++ {
		own := c.Bodies[i].Has(c.Owner[at])
		if s, ok := c.stepAt(at); own && ok && piece[s] || !own && c.calls(at) {
			return false // a copy
		}
		reads, _, ok := c.Arch.Accesses(g.Bytes(at))
		w, known := c.Arch.Writes(g.Bytes(at))
		if !ok || !known {
			return needs
		}
		needs = needs || own && uses(uint64(reads), uint64(w.Registers))&made != 0
		made &^= uint64(w.Registers)
	}
	return needs
}

// calls reports whether an instruction is a call, or does what is not known.
func (c *Rules) calls(at int32) bool {
	in, ok := c.Arch.Next(c.Graph.Bytes(at))
	return !ok || in.Call
}

// forTwin reports whether a piece of a body that begins at an instruction is of a statement that does what can be seen elsewhere in the body, does nothing such, and comes
// before the same statement of another instance of the function in its block: LLVM makes a constant again that several instances need, for one of them.
func (c *Rules) forTwin(i, first int32) bool {
	row, last := c.RowAt(first), c.Graph.Blocks[c.Graph.Block(first)].Last
	same := func(n int32) bool {
		r := c.RowAt(n)
		return r != nil && row != nil && r.SamePlace(row)
	}
	at := first
	for ; at < last && (c.Bodies[i].Has(c.Owner[at]) || c.FunctionOf(c.Owner[at]) != c.FunctionOf(i)); at++ {
		if c.Graph.Insns[at].Kind != flow.Plain || c.Bodies[i].Has(c.Owner[at]) && (!same(at) || c.Acts(at)) {
			return false
		}
	}
	return !c.Unit.GNU() && at < last && same(at) && c.HasSuch(i, func(n int32) bool { return c.Owner[n] == i && same(n) && c.Acts(n) })
}
