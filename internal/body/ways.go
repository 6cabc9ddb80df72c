package body

import (
	"maps"
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/flow"
)

// A body that was inlined has no call at which every run of it begins: compilers copy its
// first instructions into several paths, unroll a loop around it, and enter it in its middle
// when they know how its first test ends. Each such place is a way in. The debug information
// names one of them, or, where its code was moved, none (DW_AT_entry_pc, DWARF 5 section 2.18).
//
// Which instructions are in a body is not enough to tell: compilers move instructions of a body
// ahead of it, and instructions of the caller into it. In code of GCC the statements of the line
// table tell it (is_stmt): GCC moves instructions, but never the markers of statements
// (-gstatement-frontiers). So a run begins at the first statement of the body after one of
// another, and ends at the first statement of another. In other code every instruction has the
// position that it was compiled for, and a run begins where execution comes from instructions of
// the caller to a position at which a run has begun elsewhere, in another basic block or at a
// copy of the same instruction.

// Way is a place where runs of an inlined body begin or end.
type Way struct {
	Addr uint64 // link-time address, where variables are resolved
	View uint64 // location view there; 1<<32 - 1 is after all views
	// Probe is the link-time address for a probe: Addr, or that of a jump or of padding that
	// leads there and to nothing else, where Addr is reached in other ways too.
	Probe uint64
	// Again is set if a probe also fires without a run beginning, or ending: for another turn
	// of a loop that the body begins with, or for code that never was in the body.
	Again bool
	// Behind is set if straight code leads to a way in from a loop that is not the body's.
	Behind bool
	// Before are the link-time addresses of the instructions from which alone a way in with
	// Again is entered, the last ones before it: see the sites before a way in package dwarfloc.
	Before []uint64
}

// Ways are the ways into and out of the body of an inlined instance.
type Ways struct {
	// In are such that each run passes one of them, by address. If they are not known, it has
	// one: where the debug information says that the body is entered.
	In  []Way
	Out []Way
	// Unknown is why the ways are not known, or "".
	Unknown string
	// Within is set if the instance is a part of another one, in which its runs begin: it has no
	// ways in of its own. GCC splits a function into its beginning and the rest, and may inline the rest
	// again, into the body of the former (-fpartial-inlining). LLVM merges equal instructions of
	// several instances into another one, which then has the ways in, or the ways out, of all.
	Within bool
	// Folded is set if the function has the code of another one too, of which a run there can be: see package folded.
	Folded bool
	// NoReturn is how many calls in the body do not return, and traps.
	NoReturn int
}

// Ways returns the ways of a record's body.
func (c *Code) Ways(rec int32) (Ways, error) {
	i, ok := c.body(rec)
	if !ok {
		return Ways{Unknown: "its function's code is not known"}, nil
	}
	b := &c.bodies[i]
	if within, err := c.within(int32(i)); err != nil || within {
		return Ways{Within: within}, err
	}
	entry := Ways{In: []Way{{Addr: b.start, View: b.view, Probe: b.start}}, Unknown: c.Why}
	if c.Why != "" {
		return entry, nil
	}
	var runs flow.Runs
	var kin map[int32]kinship
	marked := c.Marked()
	switch {
	case marked && !c.lost(int32(i)):
		runs = c.solveMarked(int32(i))
	default:
		kin = c.kinOf(int32(i))
		runs = c.solve(int32(i), kin)
		for k := range runs.In {
			// Where the function has markers and the body has none, several ways are guesses.
			if w := &runs.In[k]; c.restMerged(int32(i), w.Insn) || c.guessed(int32(i), w) || len(runs.In) > 1 && (marked || c.onlyComputes(int32(i), w.Insn)) {
				w.Again, w.Before = true, nil
			}
		}
	}
	if len(runs.In) == 0 && kin == nil && !runs.Joined {
		entry.Unknown = "no instruction of the body is reached"
		return entry, nil
	}
	out := Ways{NoReturn: runs.Ends}
	merged := c.mergedAway(int32(i))
	part := c.isMergedPart(int32(i))
	for _, w := range runs.In {
		if c.othersToo(int32(i), w) {
			continue
		}
		if w.Again = w.Again || part || marked && (c.converted(int32(i), &w) || c.joinedTests(int32(i), &w)) || merged && c.graph.Insns[w.Insn].Addr == b.start; part {
			w.Before = nil
		}
		in := c.place(w)
		in.Behind = marked && c.solver.BehindLoop(w.Insn)
		out.In = append(out.In, in)
	}
	out.Within = len(out.In) == 0
	unsure := len(out.In) > 0 && !slices.ContainsFunc(out.In, func(w Way) bool { return !w.Again || w.Before != nil }) // there may be none that ends
	for _, w := range runs.Out {
		w.Again = w.Again || unsure || merged && c.graph.Insns[w.Insn].Addr == b.start
		out.Out = append(out.Out, c.place(w))
	}
	return out, nil
}

// solveMarked returns the runs of a body by the markers of its statements.
func (c *Code) solveMarked(i int32) flow.Runs {
	twins := c.twinsOf(i)
	b := &c.bodies[i]
	own := func(n int32) bool { return b.has(c.owner[n]) }
	marks := c.statements(i, twins)
	if c.bare(i) {
		marks = c.withCopied(i, marks)
	}
	runs := c.solver.Solve(marks, own)
	if more := c.withThreaded(i, &runs, marks); len(more) > len(marks) {
		runs = c.solver.Solve(more, own)
	}
	if len(runs.In) == 0 && twins != nil && !runs.Joined {
		runs = c.solver.Solve(c.statements(i, nil), own)
	}
	for k := range runs.In {
		w := &runs.In[k]
		w.Again = w.Again || c.taken(i, w)
		if c.inTail(i, w, runs.In) || c.leftOver(i) || len(runs.In) > 1 && (c.lowest(i, w) || c.solver.Distributed(runs.In, k, c.distributed)) {
			w.Again, w.Before = true, nil
		}
	}
	return runs
}

// distributed reports whether some blocks have the statements of others, few instructions at the places of theirs, and none that does there what can be seen: they may be parts
// of one loop, and are no copies.
func (c *Code) distributed(blocks, others []int32) bool {
	places := func(blocks []int32) (stated, done map[rowPlace]bool) {
		stated, done = make(map[rowPlace]bool), make(map[rowPlace]bool)
		for k := range c.statementRows {
			if r := &c.statementRows[k]; slices.Contains(blocks, r.block) {
				stated[r.place] = true
			}
		}
		for _, n := range blocks {
			for at := c.graph.Blocks[n].First; at < c.graph.Blocks[n].Last; at++ {
				if r := c.rowAt(at); r != nil && c.graph.Insns[at].Kind == flow.Plain {
					p := c.placeOf(r, at)
					done[p] = done[p] || c.acts(at)
				}
			}
		}
		return stated, done
	}
	stated, done := places(blocks)
	further, too := places(others)
	maps.DeleteFunc(further, func(p rowPlace, _ bool) bool { return stated[p] })
	shared, acts := 0, false
	for p, does := range too {
		if did, has := done[p]; has {
			shared, acts = shared+1, acts || did && does
		}
	}
	return len(further) == 0 && !acts && 2*shared <= min(len(done), len(too))
}

// lowest reports whether a way into a body is only where the lowest piece of its code is: GCC says where a body is entered as long as anything there is
// left of it. The piece may be what is left of an end that GCC has merged with others.
func (c *Code) lowest(i int32, w *flow.Way) bool {
	b := &c.bodies[i]
	return !b.marked && len(b.ranges) > 1 && c.graph.Insns[w.Insn].Addr == b.start && !c.statementIn(i, b.start)
}

// mergedAway reports whether nothing is left of a body, where it begins, but a record at the
// address where another body of its function begins, and two paths meet. GCC merges equal ends of
// paths and keeps the statements of both before the first instruction: it is not known which of
// the two runs there.
func (c *Code) mergedAway(i int32) bool {
	b, t := &c.bodies[i], c.twinsOf(i)
	n, ok := c.graph.At(b.start)
	return ok && b.live && t != nil && !b.has(c.owner[n]) && c.graph.Meets(int32(n)) && slices.ContainsFunc(t.bodies, func(k int32) bool {
		x := &c.bodies[k]
		return k != i && x.live && x.start == b.start && x.has(c.owner[n])
	})
}

// othersToo reports whether a way into a body is one into another body of its function, which is not around it or in it, and counts there: by the row of the line table
// where that begins, or by a row of instructions that both have. One row is one call's, or that of two that GCC has merged, and each time that it is reached one of them
// runs.
func (c *Code) othersToo(i int32, w flow.Way) bool {
	t := c.twinsOf(i)
	if t == nil || !c.Marked() {
		return false
	}
	addr := c.graph.Insns[w.Insn].Addr
	begins := func(k int32) bool {
		x := &c.bodies[k]
		return x.live && x.viewed && x.start == addr && x.view == uint64(w.View)
	}
	first := begins(i)
	return slices.ContainsFunc(t.bodies, func(k int32) bool {
		x := &c.bodies[k]
		if k <= i && i < x.end || i <= k && k < c.bodies[i].end {
			return false
		}
		its := k < i && dw.Covers(x.ranges, addr)
		if first || begins(k) {
			its = begins(k) && (!first || k < i)
		}
		return its && slices.ContainsFunc(c.solveMarked(k).In, func(o flow.Way) bool { return o.Insn == w.Insn && o.View == w.View })
	})
}

// within reports whether a body is a part of another one: of the body around it, if that is one of the same function, called from where it is
// declared; or of what the same call was inlined to in the body that such a part is in. GCC splits a function behind a call that is
// inlined, and the rest of that has an instance of its own in the part.
func (c *Code) within(i int32) (bool, error) {
	if part, err := c.isPart(i); part || err != nil {
		return part, err
	}
	p := c.bodies[i].parent
	if p < 0 || c.bodies[i].call.line == 0 {
		return false, nil
	}
	if part, err := c.isPart(p); !part || err != nil {
		return false, err
	}
	whole := c.bodies[p].parent
	for k := whole + 1; k < c.bodies[whole].end; k++ {
		if x := &c.bodies[k]; x.parent == whole && k != p && x.call == c.bodies[i].call && c.functionOf(k) == c.functionOf(i) {
			return true, nil
		}
	}
	return false, nil
}

// isPart reports whether a body is a part of the body around it: one of the same function, called
// from where that is declared.
func (c *Code) isPart(i int32) (bool, error) {
	b := &c.bodies[i]
	// A macro can declare several functions at one line that call each other, as the kernel's
	// SYSCALL_DEFINE does.
	if b.parent < 0 || b.text == (text{}) || c.functionOf(b.parent) != c.functionOf(i) {
		return false, nil
	}
	e, err := c.u.Entry(c.u.Off + uint64(c.u.Recs[b.rec].Off))
	if err != nil {
		return false, err
	}
	var line, column uint64
	err = e.Attrs(func(a dw.Attr, v dw.Value) {
		switch a {
		case dw.AttrCallLine:
			line = v.U
		case dw.AttrCallColumn:
			column = v.U
		}
	})
	return uint32(line) == b.text.line && (column == 0 || b.text.column == 0 || uint32(column) == b.text.column), err
}

// isMergedPart reports whether a body is a part of another function than the one around it, called from where it is declared: GCC merges functions that are
// equal (-fipa-icf), and so the rest of one that it split with that of another.
func (c *Code) isMergedPart(i int32) bool {
	b := &c.bodies[i]
	return b.parent >= 0 && b.text.line != 0 && b.call.line == b.text.line && b.call.column != 0 && b.call.column == b.text.column &&
		c.bodies[b.parent].text.line != b.text.line && c.functionOf(b.parent) != c.functionOf(i)
}

func (c *Code) place(w flow.Way) Way {
	insns := c.graph.Insns
	out := Way{Addr: insns[w.Insn].Addr, View: uint64(w.View), Probe: insns[w.Probe].Addr, Again: w.Again}
	for _, n := range w.Before {
		out.Before = append(out.Before, insns[n].Addr)
	}
	return out
}

// LastView is the view after all views of an address.
const LastView = flow.LastView
