package runs

import (
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/flow"
	"github.com/bpfprologue/bpfprologue/internal/motion"
)

// solveMarked returns the runs of a body by the markers of its statements.
func (c *Code) solveMarked(i int32) flow.Runs {
	twins := c.TwinsOf(i)
	b := &c.Bodies[i]
	own := func(n int32) bool { return b.Has(c.Owner[n]) }
	marks := c.statements(i, twins)
	if c.Bare(i) {
		marks = c.WithCopied(i, marks)
	}
	runs := c.solver.Solve(marks, own)
	if more := c.WithThreaded(i, &runs, marks); len(more) > len(marks) {
		runs = c.solver.Solve(more, own)
	}
	if len(runs.In) == 0 && twins != nil && !runs.Joined {
		runs = c.solver.Solve(c.statements(i, nil), own)
	}
	for k := range runs.In {
		w := &runs.In[k]
		w.Again = w.Again || c.Taken(i, w)
		if c.InTail(i, w, runs.In) || c.InMerged(w, c.joins) || c.LeftOver(i, w.Insn) || c.LowestEarly(i, w) || len(runs.In) > 1 && (c.Lowest(i, w) || c.solver.Distributed(runs.In, k, c.Distributed)) {
			w.Again, w.Before = true, nil
		}
	}
	return runs
}

// othersToo reports whether a way into a body is one into another body of its function, which is not around it or in it, and counts there: by the row of the line table
// where that begins, or by a row of instructions that both have. One row is one call's, or that of two that GCC has merged, and each time that it is reached one of them
// runs.
func (c *Code) othersToo(i int32, w flow.Way) bool {
	t := c.TwinsOf(i)
	if t == nil || !c.Marked() {
		return false
	}
	addr := c.Graph.Insns[w.Insn].Addr
	begins := func(k int32) bool {
		x := &c.Bodies[k]
		return x.Live && x.Viewed && x.Start == addr && x.View == uint64(w.View)
	}
	first := begins(i)
	return slices.ContainsFunc(t.Bodies, func(k int32) bool {
		x := &c.Bodies[k]
		if k <= i && i < x.End || i <= k && k < c.Bodies[i].End {
			return false
		}
		its := k < i && dw.Covers(x.Ranges, addr)
		if first || begins(k) {
			its = begins(k) && (!first || k < i)
		}
		return its && slices.ContainsFunc(c.solveMarked(k).In, func(o flow.Way) bool { return o.Insn == w.Insn && o.View == w.View })
	})
}

// statements returns the marks of a body by the statements of the line table. twins, which may
// be nil, are the bodies of the same function. The marks are valid until the next call.
func (c *Code) statements(i int32, twins *body.Twins) []flow.Mark {
	b := &c.Bodies[i]
	out := c.marks[:0]
	entered := !b.Live
	enter := func() {
		entered = true
		if n, ok := c.Graph.At(b.Start); ok && b.Live {
			out = append(out, flow.Mark{Insn: c.Past(int32(n)), Kind: motion.EntryMark, View: uint32(b.View)})
		}
	}
	last, block := motion.EntryMark, int32(-1) // of the mark before
	nearby := c.nearTwins(twins)
	for n := range c.blocks {
		run := &c.blocks[n]
		if (run.most < b.First || run.least >= b.End) && (entered || run.last < b.Start) && (twins == nil || nearby[run.most+1] == nearby[run.least]) {
			// None of the block's statements is the body's or a twin's: they are one mark.
			if r := &c.Statements[run.first]; last != flow.MarkExit || r.Block != block {
				out = append(out, flow.Mark{Insn: r.Insn, Kind: flow.MarkExit, View: uint32(r.View)})
				last, block = flow.MarkExit, r.Block
			}
			continue
		}
		for k := int(run.first); k < int(run.end); k++ {
			r := &c.Statements[k]
			if !entered && (r.Addr > b.Start || r.Addr == b.Start && r.View >= b.View && !c.later(i, k)) {
				enter()
				last = motion.EntryMark
			}
			kind, at, view := flow.MarkExit, r.Insn, r.View
			switch {
			case b.Has(r.Own):
				if kind = flow.MarkEnter; twins != nil && !twins.Starts[r.Place] {
					kind = flow.MarkInside
				}
				if at = r.Past; at != r.Insn {
					view = 0
				}
			case twins != nil && nearby[r.Own+1] != nearby[r.Own] && twins.Has(c.Code, r.Own, i):
				if twins.Starts[r.Place] {
					out = append(out, flow.Mark{Insn: at, Kind: flow.MarkExit, View: uint32(view)})
				}
				kind = flow.MarkTwin
			}
			if kind == last && r.Block == block && kind != flow.MarkTwin {
				continue // it changes nothing
			}
			out = append(out, flow.Mark{Insn: at, Kind: kind, View: uint32(view)})
			last, block = kind, r.Block
		}
	}
	if !entered {
		enter()
	}
	out = c.twinEntries(twins, i, out)
	motion.SortMarks(out)
	c.marks = out
	return c.WithoutHoisted(i, twins, out)
}

// later reports whether a statement is one before a body's first one at the same address:
// without views, the debug information does not say where between them the body begins.
func (c *Code) later(i int32, k int) bool {
	b, r := &c.Bodies[i], &c.Statements[k]
	return r.Addr == b.Start && !b.Has(r.Own)
}

// twinEntries adds the entries of a body's twins that have lost the statements there: a run of the
// body has ended where one of a twin begins.
func (c *Code) twinEntries(t *body.Twins, i int32, out []flow.Mark) []flow.Mark {
	if t == nil {
		return out
	}
	for _, k := range t.Unmarked {
		x := &c.Bodies[k]
		n, ok := c.Graph.At(x.Start)
		if !ok || !x.Live || x.Start == c.Bodies[i].Start || c.Bodies[i].Has(k) || x.Has(i) || !x.Has(c.Owner[n]) {
			continue
		}
		out = append(out, flow.Mark{Insn: int32(n), Kind: flow.MarkExit}, flow.Mark{Insn: int32(n), Kind: flow.MarkTwin})
	}
	return out
}

// nearTwins returns how many of the bodies before each are some twins or inside one: nearby[b]-nearby[a] of
// those from a to b-1 are. It is valid until it is called for others.
func (c *Code) nearTwins(t *body.Twins) []int32 {
	if t == nil || c.nearbyOf == t {
		return c.nearby
	}
	c.nearbyOf = t
	c.nearby = append(slices.Grow(c.nearby[:0], len(c.Bodies)+1), 0)
	for k := range c.Bodies {
		is := c.TwinsOf(int32(k)) == t
		if p := c.Bodies[k].Parent; p >= 0 {
			is = is || c.nearby[p+1] != c.nearby[p] // a body comes after the one around it
		}
		n := c.nearby[k]
		if is {
			n++
		}
		c.nearby = append(c.nearby, n)
	}
	return c.nearby
}
