// Package runs finds where runs of a body begin and end: the ways into it, and out of it.
//
//	c, err := runs.Follow(unit, record)
//	ways, err := c.Ways(record)
//	for _, w := range ways.In {
//		fmt.Printf("%#x\n", w.Probe)
//	}
//
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
//
// It sets marks where a body begins, goes on and ends, by its statements (markers.go) or by the positions of its instructions
// (positions.go), and has package flow solve them. What is marked but was moved there, and what may be no run, package motion knows.
package runs

import (
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/flow"
)

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
	// Midway is set if a way in is behind the first statement of the body: see body.Unit.BeginsAt.
	Midway bool
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
	w, err := c.ways(rec)
	i, ok := c.BodyOf(rec)
	if err != nil || !ok {
		return w, err
	}
	b := &c.Bodies[i]
	entersFirst := b.EntersFirst(c.Unit)
	for k := range w.In {
		in := &w.In[k]
		if entersFirst && in.Addr == b.Start {
			continue
		}
		first, known, err := c.Unit.BeginsAt(rec, in.Addr)
		if err != nil {
			return w, err
		}
		in.Midway = known && !first
	}
	return w, nil
}

func (c *Code) ways(rec int32) (Ways, error) {
	i, ok := c.BodyOf(rec)
	if !ok {
		return Ways{Unknown: "its function's code is not known"}, nil
	}
	b := &c.Bodies[i]
	if within, err := c.within(int32(i)); err != nil || within {
		return Ways{Within: within}, err
	}
	atEntry := func(why string) (Ways, error) {
		return Ways{In: []Way{{Addr: b.Start, View: b.View, Probe: b.Start}}, Unknown: why}, nil
	}
	if c.Why != "" {
		return atEntry(c.Why)
	}
	var runs flow.Runs
	var kin map[int32]kinship
	marked := c.Marked()
	switch {
	case marked && !c.Lost(int32(i)):
		runs = c.solveMarked(int32(i))
	default:
		kin = c.kinOf(int32(i))
		runs = c.solve(int32(i), kin)
		for k := range runs.In {
			if w := &runs.In[k]; c.guess(int32(i), w, runs.In, marked) {
				w.Again, w.Before = true, nil
			}
		}
	}
	if len(runs.In) == 0 && kin == nil && !runs.Joined {
		return atEntry("no instruction of the body is reached")
	}
	out := Ways{NoReturn: runs.Ends, In: make([]Way, 0, len(runs.In)), Out: make([]Way, 0, len(runs.Out))}
	merged := c.MergedAway(int32(i))
	part := c.MergedPart(int32(i))
	for _, w := range runs.In {
		if c.othersToo(int32(i), w) {
			continue
		}
		if w.Again = w.Again || part || marked && (c.Converted(int32(i), &w) || c.JoinedTests(int32(i), &w)) || merged && c.Graph.Insns[w.Insn].Addr == b.Start; part {
			w.Before = nil
		}
		in := c.place(w)
		in.Behind = marked && c.solver.BehindLoop(w.Insn)
		out.In = append(out.In, in)
	}
	out.Within = len(out.In) == 0
	unsure := len(out.In) > 0 && !slices.ContainsFunc(out.In, func(w Way) bool { return !w.Again || w.Before != nil }) // there may be none that ends
	for _, w := range runs.Out {
		w.Again = w.Again || unsure || merged && c.Graph.Insns[w.Insn].Addr == b.Start
		out.Out = append(out.Out, c.place(w))
	}
	return out, nil
}

// guess reports whether it is not known that a run begins at a way in, of all that were found by positions.
func (c *Code) guess(i int32, w *flow.Way, in []flow.Way, marked bool) bool {
	switch {
	case c.RestMerged(i, w.Insn), c.Guessed(i, w), c.Early(i, w.Insn):
		return true
	case marked: // the function has markers and the body has none
		return len(in) > 1 || c.LeftOver(i, w.Insn) || c.TwinFirst(i, w.Insn)
	}
	return c.InRest(i, w, in) || c.InTurns(i, w, in) || c.Apart(i, w, in) || c.Unfinished(i, w, in) || c.Shared(i, w.Insn) || len(in) > 1 && (c.OnlyComputes(i, w.Insn) || c.OnceMore(i, w.Insn, in))
}

func (c *Code) place(w flow.Way) Way {
	insns := c.Graph.Insns
	out := Way{Addr: insns[w.Insn].Addr, View: uint64(w.View), Probe: insns[w.Probe].Addr, Again: w.Again}
	for _, n := range w.Before {
		out.Before = append(out.Before, insns[n].Addr)
	}
	return out
}

// LastView is the view after all views of an address.
const LastView = flow.LastView

// within reports whether a body is a part of another one: of the body around it, if that is one of the same function, called from where it is
// declared; or of what the same call was inlined to in the body that such a part is in. GCC splits a function behind a call that is
// inlined, and the rest of that has an instance of its own in the part.
func (c *Code) within(i int32) (bool, error) {
	if part, err := c.ContinuesParent(i); part || err != nil {
		return part, err
	}
	p := c.Bodies[i].Parent
	if p < 0 || c.Bodies[i].Call.Line == 0 {
		return false, nil
	}
	if part, err := c.ContinuesParent(p); !part || err != nil {
		return false, err
	}
	whole := c.Bodies[p].Parent
	for k := whole + 1; k < c.Bodies[whole].End; k++ {
		if x := &c.Bodies[k]; x.Parent == whole && k != p && x.Call == c.Bodies[i].Call && c.FunctionOf(k) == c.FunctionOf(i) {
			return true, nil
		}
	}
	return false, nil
}
