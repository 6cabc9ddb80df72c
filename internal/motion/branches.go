package motion

import (
	"math/bits"
	"slices"
	"sort"

	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/flow"
	"github.com/bpfprologue/bpfprologue/internal/insn"
	"github.com/bpfprologue/bpfprologue/internal/radix"
)

// Converted reports whether a run of a body need not be one at a way in: GCC has made one of both sides of a test (if-conversion), drops the markers that were in the branch,
// the entry's too, and has an instruction choose between what the body's instructions compute and another value, or compute one of both with a number that the test makes.
// Of a body that link-time optimization has left without markers the choice may also be one behind a run.
func (c *Rules) Converted(i int32, w *flow.Way) bool {
	b := &c.Bodies[i]
	if !c.unmarked(i) && !c.unmarkedPart(i) {
		return false
	}
	var computed insn.Registers
	for at := w.Insn; at < c.Graph.Blocks[c.Graph.Block(w.Insn)].Last; at++ {
		code := c.Graph.Bytes(at)
		reads, writes, known := c.Arch.Accesses(code)
		if !known {
			break
		}
		for r := range uint64(body.Followed) {
			if writes.Registers.Has(r) && reads&^(1<<r)&computed != 0 && c.Arch.Chooses(code, r) {
				return true
			}
		}
		if computed &^= writes.Registers; b.Has(c.Owner[at]) {
			computed |= writes.Registers
		}
	}
	return c.decided(i, w.Insn)
}

// decided reports whether a condition of the caller's decides what a body makes, from an instruction to the end of its block: an instruction of the body makes a number of a
// condition, as GCC does where the values of both sides of a test differ by bits that it can mask, and no other body of the function has a condition at all. A condition of the body's
// own that is known in all others looks the same.
func (c *Rules) decided(i, first int32) bool {
	for at := first; at < c.Graph.Blocks[c.Graph.Block(first)].Last; at++ {
		if c.Bodies[i].Has(c.Owner[at]) && c.Arch.Decides(c.Graph.Bytes(at)) {
			return c.NoneDecides(c.Bodies[i].Rec)
		}
	}
	return false
}

// JoinedTests reports whether the test with which a way into a body ends may be one of the caller's too: GCC joins two tests behind which code goes on alike into one
// (-ftree-ifcombine), at the position of the second, with the markers in front of both. There are then two branches at that position, where no other body of the function has
// more than one, and the first needs what the caller has loaded, and the second does not.
func (c *Rules) JoinedTests(i int32, w *flow.Way) bool {
	g, b := c.Graph, &c.Bodies[i]
	first := g.Block(w.Insn)
	second, out, ok := g.FollowingTest(first)
	x, y := g.Blocks[first].Last-1, g.Blocks[second].Last-1
	r, again := c.RowAt(x), c.RowAt(y)
	if !ok || r == nil || again == nil || c.PlaceOf(r, x) != c.PlaceOf(again, y) || !b.Has(c.Owner[x]) || !b.Has(c.Owner[y]) || c.entersAny(i, []int32{out}) {
		return false
	}
	only := g.Needs(c.Arch, w.Insn, x+1) &^ g.Needs(c.Arch, g.Blocks[second].First, y+1)
	loads := func(n int32) bool {
		_, stores, ok := c.Arch.Operand(g.Bytes(n))
		return ok && !stores && !b.Has(c.Owner[n])
	}
	for ; only != 0 && !g.WrittenBy(c.Arch, w.Insn, uint16(bits.TrailingZeros64(only)), false, loads); only &= only - 1 {
	}
	one := false
	return only != 0 && c.Others(b.Rec, func(ranges []dw.Range) bool {
		n := c.Unit.BranchesAt(ranges, r)
		one = one || n == 1
		return n < 2
	}) && one
}

// GCC threads a jump past the first test of a body whose result is known on a path, and the path then goes on in the body behind the statement
// that is the test: without a row for it, execution has come to an instruction of the body. Where that can leave the body again before the next
// statement of it, only the instruction tells that a run has begun.

// WithThreaded adds marks where paths come to instructions of a body from others', and go on to a statement at which a run would be seen to begin, which is not
// the body's first one, or past it. They are those that marks were if there are none.
func (c *Rules) WithThreaded(i int32, runs *flow.Runs, marks []flow.Mark) []flow.Mark {
	out := marks
	seen := make(map[int32]bool)
	add := func(at int32, kind flow.MarkKind) {
		if !seen[at] {
			seen[at] = true
			out = append(slices.Clip(out), flow.Mark{Insn: at, Kind: kind})
		}
	}
	for k := range runs.In {
		w := &runs.In[k]
		if c.beginsWith(i, w) || !c.StatementIn(i, c.Graph.Insns[w.Insn].Addr) {
			continue
		}
		c.comesFrom(i, w.Insn, func(at int32) { add(at, flow.MarkEnter) })
	}
	c.pastMarkers(i, runs, out[len(marks):], func(at int32) { add(at, flow.MarkPerhaps) })
	if len(out) > len(marks) {
		SortMarks(out)
	}
	return out
}

// comesFrom calls f with the instructions at which execution comes to a body, if it goes on to one of its instructions or, after a branch, elsewhere, with no statement
// of any body in between.
func (c *Rules) comesFrom(i, to int32, f func(at int32)) {
	g, b := c.Graph, &c.Bodies[i]
	seen := make(map[int32]bool)
	var visit func(at int32, branched bool)
	visit = func(at int32, branched bool) {
		n := g.Block(at - 1)
		first := g.Blocks[n].First
		for at > first {
			if !b.Has(c.Owner[at-1]) {
				if branched {
					f(at)
				}
				return
			}
			at--
			if begins, own := c.statementsOn(i, at); begins {
				if branched && !own {
					f(at)
				}
				return
			}
		}
		entered := false
		g.OnlyBehind(n, func(last int32) bool {
			switch p := g.Block(last); {
			case !b.Has(c.Owner[last]):
				entered = true
			case !seen[p]:
				seen[p] = true
				visit(last+1, branched || len(g.Blocks[p].Succs) > 1)
			}
			return true
		})
		if entered && branched {
			f(first)
		}
	}
	if to > g.Blocks[g.Block(to)].First {
		visit(to, false)
		return
	}
	g.OnlyBehind(g.Block(to), func(last int32) bool {
		if p := g.Block(last); b.Has(c.Owner[last]) && !seen[p] {
			seen[p] = true
			visit(last+1, len(g.Blocks[p].Succs) > 1)
		}
		return true
	})
}

// pastMarkers calls f with the instructions at which execution may come to a body past all of its markers, and goes on to a last statement of it that has no code, without a way in between.
// GCC leaves out a block that has markers and a jump alone, and lets what led to it lead to where that does: to an instruction of the body that begins a block, where no statement
// stands. It merges equal ends of paths too, and then the code is of others: nothing that acts is believed, nor what another instance of its function leads to, and what is, not for sure.
func (c *Rules) pastMarkers(i int32, runs *flow.Runs, threaded []flow.Mark, f func(at int32)) {
	g, b := c.Graph, &c.Bodies[i]
	if b.Parent < 0 || len(c.Ended) == 0 || len(runs.In) == 0 {
		return
	}
	var seen map[int32]bool
	way := func(from, end int32) bool {
		return slices.ContainsFunc(runs.In, func(w flow.Way) bool { return w.Insn >= from && w.Insn < end }) ||
			slices.ContainsFunc(threaded, func(m flow.Mark) bool { return m.Insn >= from && m.Insn < end })
	}
	acts := func(from, end int32) bool {
		for at := from; at < end; at++ {
			if g.Insns[at].Kind == flow.Plain && c.Acts(at) {
				return true
			}
		}
		return false
	}
	var visit func(to int32, does bool)
	visit = func(to int32, does bool) {
		block := g.Block(to - 1)
		first := g.Blocks[block].First
		for at := to - 1; at >= first; at-- {
			if !b.Has(c.Owner[at]) {
				return
			}
			if begins, _ := c.statementsOn(i, at); begins {
				return
			}
			does = does || g.Insns[at].Kind == flow.Plain
		}
		if way(first, to) || acts(first, to) {
			return
		}
		entered := false
		c.behind(first, func(last int32) {
			switch p := g.Block(last); {
			case !b.Has(c.Owner[last]):
				entered = entered || !c.sameFunction(i, c.Owner[first], c.Owner[last])
			case !seen[p]:
				if seen == nil {
					seen = make(map[int32]bool)
				}
				seen[p] = true
				visit(last+1, does)
			}
		})
		if entered && does && !g.Later(first, runs.In, true) {
			f(first)
		}
	}
	last := int32(-1) // the instruction of the statement before
	for _, k := range c.endedIn(i) {
		r := &c.Ended[k]
		if r.Insn == last || c.Declared(r) {
			continue
		}
		if last = r.Insn; way(r.Insn, g.Blocks[r.Block].Last) {
			continue
		}
		c.behind(r.Insn, func(at int32) {
			if b.Has(c.Owner[at]) {
				visit(at+1, false)
			}
		})
	}
}

// behind calls f with the instructions that are run right before one.
func (c *Rules) behind(to int32, f func(at int32)) {
	n := c.Graph.Block(to)
	if to > c.Graph.Blocks[n].First {
		f(to - 1)
		return
	}
	c.Graph.OnlyBehind(n, func(last int32) bool {
		f(last)
		return true
	})
}

// endedIn returns the numbers of the last statements without code of a body and those in it, by body and address.
func (c *Rules) endedIn(i int32) []int32 {
	if c.ended == nil {
		c.ended = make([]int32, len(c.Ended))
		for k := range c.ended {
			c.ended[k] = int32(k)
		}
		radix.Sort(c.ended, func(k *int32) uint64 { return uint64(c.Ended[*k].Own) })
	}
	from := func(own int32) int {
		return sort.Search(len(c.ended), func(k int) bool { return c.Ended[c.ended[k]].Own >= own })
	}
	b := &c.Bodies[i]
	return c.ended[from(b.First):from(b.End)]
}

// sameFunction reports whether an instruction of another body's is in an instance of a function of which a body, or one in it that has another instruction, is one too.
func (c *Rules) sameFunction(i, own, other int32) bool {
	for ; own >= i; own = c.Bodies[own].Parent {
		for x := other; x >= 0; x = c.Bodies[x].Parent {
			if c.FunctionOf(x) == c.FunctionOf(own) {
				return true
			}
		}
	}
	return false
}

// statementsOn reports whether statements begin at an instruction, and whether one of them is a body's.
func (c *Rules) statementsOn(i, n int32) (begins, own bool) {
	k := sort.Search(len(c.Statements), func(k int) bool { return c.Statements[k].Past >= n })
	for ; k < len(c.Statements) && c.Statements[k].Past == n; k++ {
		begins, own = true, own || c.Bodies[i].Has(c.Statements[k].Own)
	}
	return begins, own
}
