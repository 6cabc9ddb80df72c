package body

import (
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/flow"
	"github.com/bpfprologue/bpfprologue/internal/index"
	"github.com/bpfprologue/bpfprologue/internal/insn"
)

// LLVM moves what both sides of a test of the caller's compute to the code before it, with the position that one of them has, and merges the rest
// of that side with the same of others: such code has no position, and no body. Whether a run has begun where a body only computes is then not
// known before the test.

// maxApart is how many blocks of the caller's are between a piece of a body and the code that goes on with it, at most.
const maxApart = 3

// restMerged reports whether a piece of a body, that begins at an instruction, may have been computed for code that was merged: it does nothing that can be
// seen, which most bodies of the function do, a branch of the caller's ends its block, and one side of that is code without position which does, with what the
// piece has computed.
func (c *Code) restMerged(i, first int32) bool {
	g := c.graph
	n := g.Block(first)
	b := &g.Blocks[n]
	last := b.Last - 1
	if c.u.GNU() || c.u.IsGo() || c.bodies[i].parent < 0 || g.Insns[last].Kind != flow.Branch || c.bodies[i].has(c.owner[last]) {
		return false
	}
	for at := first; at < last; at++ {
		if c.bodies[i].has(c.owner[at]) && (g.Insns[at].Kind != flow.Plain && g.Insns[at].Kind != flow.Nop || c.acts(at)) {
			return false
		}
	}
	return c.feedsMerged(i, first, b.Last, 0, maxApart) && c.mostAct(c.bodies[i].rec)
}

// feedsMerged reports whether code without position uses what a body computes from one instruction to another, or what is made has of that, and does
// what can be seen: behind so many blocks of the caller's at most.
func (c *Code) feedsMerged(i, from, to int32, made uint64, left int) bool {
	g := c.graph
	for at := from; at < to; at++ {
		reads, w, ok := c.arch.Accesses(g.Bytes(at))
		if k := g.Insns[at].Kind; k == flow.Branch || k == flow.Jump || k == flow.Nop {
			continue
		}
		own, r := c.bodies[i].has(c.owner[at]), c.rowAt(at)
		nowhere := !own && (r == nil || r.Line == 0)
		uses := ok && uint64(reads)&made != 0
		switch {
		case own && left < maxApart, !ok:
			return false
		case nowhere && uses && c.acts(at):
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

// maxActing bounds how many bodies of a function are looked at.
const maxActing = 64

// leftOver reports whether nothing is left of a body in GCC's code but what has been computed before a test of the caller's: no place at which it is entered, no
// statement, and nothing that can be seen and no test, of which most other bodies of the function have some. GCC has merged the rest with that of another call.
func (c *Code) leftOver(i int32) bool {
	b := &c.bodies[i]
	return b.parent >= 0 && !b.marked && !slices.ContainsFunc(c.statementRows, func(r statement) bool { return b.has(r.own) }) &&
		!c.hasSuch(i, func(n int32) bool { return c.graph.Insns[n].Kind == flow.Branch || c.acts(n) }) && c.mostAct(b.rec)
}

// mostAct reports whether instructions of most other bodies of a record's function do what can be seen, or branch.
func (c *Code) mostAct(rec int32) bool {
	looked, acting := 0, 0
	return c.others(rec, func(ranges []dw.Range) bool {
		looked++
		if slices.ContainsFunc(ranges, c.actsIn) {
			acting++
		}
		return true
	}) && 2*acting > looked
}

// others calls f with the ranges of other bodies of a record's function, as long as it returns true, and reports whether it has not returned false.
func (c *Code) others(rec int32, f func(ranges []dw.Range) bool) bool {
	looked, root := 0, c.u.Recs[rec].Root
	for k := 0; root >= 0 && k < len(c.u.Recs) && looked < maxActing; k++ {
		r := &c.u.Recs[k]
		if r.Root != root || int32(k) == rec || r.Flags&index.HasPC == 0 {
			continue
		}
		e, err := c.u.Entry(c.u.Off + uint64(r.Off))
		if err != nil {
			return false
		}
		if ranges, err := c.u.extentOf(e); err != nil || !f(ranges) {
			return false
		}
		looked++
	}
	return true
}

// actsIn reports whether an instruction in a range calls, or writes memory that is not in the frame.
func (c *Code) actsIn(r dw.Range) (acts bool) {
	_, _ = c.u.Image.each(r, func(_ uint64, in insn.Insn, code []byte) bool {
		w, ok := c.arch.Writes(code)
		acts = in.Call || in.Branches && in.Onward || ok && w.Memory && !c.arch.Spills(code)
		return !acts
	})
	return acts
}
