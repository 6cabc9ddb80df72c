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
	if runs.Joined {
		c.besideTwins(i, add)
	}
	c.pastAll(i, func(at int32) { add(at, flow.MarkPerhaps) })
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

// besideTwins calls f with the instructions at which execution comes from a run of another instance of its function to a body, past its first test, whose result is known on that path: no
// statement is there. It is not that run that goes on there, as in ends that are merged: the body goes on to a statement or a test which the run has had, and of which either has one, in no loop.
func (c *Rules) besideTwins(i int32, f func(at int32, kind flow.MarkKind)) {
	g, b, t := c.Graph, &c.Bodies[i], c.TwinsOf(i)
	if b.Parent < 0 || t == nil {
		return
	}
	c.eachBlock(i, func(n int32) {
		at := g.Blocks[n].First
		if begins, _ := c.statementsOn(i, at); begins {
			return
		}
		some, all := false, true
		g.OnlyBehind(n, func(last int32) bool {
			if own := c.Owner[last]; !b.Has(own) {
				twin := c.twinAround(t, own, i)
				is := twin >= 0 && c.repeats(i, twin, n, last)
				some, all = some || is, all && is
			}
			return true
		})
		switch {
		case some && all:
			f(at, flow.MarkEnter)
		case some:
			f(at, flow.MarkPerhaps)
		}
	})
}

// eachBlock calls f with the blocks which begin with an instruction of a body.
func (c *Rules) eachBlock(i int32, f func(n int32)) {
	c.HasSuch(i, func(at int32) bool {
		if n := c.Graph.Block(at); c.Graph.Blocks[n].First == at && c.Bodies[i].Has(c.Owner[at]) {
			f(n)
		}
		return false
	})
}

// pastAll calls f with the instructions at which execution may come to a body past all of its markers, from a test of the caller's: GCC leaves out a block that has markers and a jump alone, and lets
// what led to it lead to where that does. There the body makes a test of which all other paths have had the statement.
func (c *Rules) pastAll(i int32, f func(at int32)) {
	g, b := c.Graph, &c.Bodies[i]
	if b.Parent < 0 {
		return
	}
	c.eachBlock(i, func(n int32) {
		end := g.Blocks[n].Last - 1
		r := c.RowAt(end)
		if g.Paths(n) < 2 || !c.testsAlone(i, n) || r == nil {
			return
		}
		from, with := false, false
		if g.OnlyBehind(n, func(last int32) bool {
			row, only := c.RowAt(last), true
			of := func(s *body.Statement, row *dw.Row) bool {
				return row != nil && s.Place.File == row.File && s.Place.Line == row.Line
			}
			c.eachLast(g.Block(last), last+1, func(s *body.Statement) {
				if b.Has(s.Own) {
					with = with || s.Own == c.Owner[end] && of(s, r)
					return
				}
				from = true
				only = only && s.Own == b.Parent && c.Owner[last] == b.Parent && g.Insns[last].Kind == flow.Branch && of(s, row)
			})
			return only
		}) && from && with {
			f(g.Blocks[n].First)
		}
	})
}

// testsAlone reports whether a block has instructions of a body alone, ends with a test, and has no statement.
func (c *Rules) testsAlone(i, n int32) bool {
	block := &c.Graph.Blocks[n]
	if c.Graph.Insns[block.Last-1].Kind != flow.Branch || c.lastBefore(n, block.Last) != nil {
		return false
	}
	for at := block.First; at < block.Last; at++ {
		if !c.Bodies[i].Has(c.Owner[at]) {
			return false
		}
	}
	return true
}

// twinAround returns the innermost body around another one, or that itself, that is a twin of a third one which it is not around, or -1.
func (c *Rules) twinAround(t *body.Twins, own, of int32) int32 {
	for ; own >= 0; own = c.Bodies[own].Parent {
		if c.TwinsOf(own) == t {
			break
		}
	}
	if own >= 0 && c.Bodies[own].Has(of) {
		return -1
	}
	return own
}

// repeats reports whether a block with which a body goes on has, or leads to, a test or a statement which a twin of the body has had on each path to an instruction.
func (c *Rules) repeats(i, twin, block, last int32) bool {
	g, b := c.Graph, &c.Bodies[i]
	end := g.Blocks[block].Last - 1
	if !c.testsAlone(i, block) || !c.comesAlone(twin, last) {
		return false
	}
	if r := c.RowAt(end); r != nil && c.hadBefore(i, twin, end, last, c.PlaceOf(r, end), true) {
		return true
	}
	for _, to := range g.Blocks[block].Succs {
		first := g.Blocks[to].First
		k := sort.Search(len(c.Statements), func(k int) bool { return c.Statements[k].Past >= first })
		for ; k < len(c.Statements) && c.Statements[k].Past == first; k++ {
			if r := &c.Statements[k]; b.Has(r.Own) && c.hadBefore(i, twin, first, last, body.Place{File: r.Place.File, Line: r.Place.Line, Column: r.Place.Column, Own: r.Own}, false) {
				return true
			}
		}
	}
	return false
}

// comesAlone reports whether all code of a body through which execution comes to one of its instructions is entered from what is of no other instance of its function: there is no equal end of both.
func (c *Rules) comesAlone(i, n int32) bool {
	b, t := &c.Bodies[i], c.TwinsOf(i)
	settle := func(n int32) (said, such bool) {
		if !b.Has(c.Owner[n]) {
			return true, c.twinAround(t, c.Owner[n], i) < 0
		}
		return c.Graph.Insns[n].Addr == b.Start, true
	}
	said, such := settle(n)
	return said && such || !said && c.Graph.AlwaysBehind(n, settle)
}

// hadBefore reports whether a test, or a statement, of a body is one that a twin of it has had on each path to an instruction, and neither has it twice or in a loop.
func (c *Rules) hadBefore(i, twin, at, last int32, place body.Place, test bool) bool {
	g := c.Graph
	like := func(of, own int32, file, line, column uint32) bool {
		return file == place.File && line == place.Line && column == place.Column && c.sameIn(of, own, i, place.Own)
	}
	is := func(of, n int32) (found bool) {
		if own := c.Owner[n]; test && g.Insns[n].Kind == flow.Branch && c.Bodies[of].Has(own) {
			r := c.RowAt(n)
			return r != nil && like(of, own, r.File, r.Line, r.Column)
		}
		if !test {
			k := sort.Search(len(c.Statements), func(k int) bool { return c.Statements[k].Past >= n })
			for ; k < len(c.Statements) && c.Statements[k].Past == n; k++ {
				r := &c.Statements[k]
				found = found || c.Bodies[of].Has(r.Own) && like(of, r.Own, r.Place.File, r.Place.Line, r.Place.Column)
			}
		}
		return found
	}
	begins := func(n int32) bool {
		return slices.ContainsFunc(body.StatementsAt(c.Statements, g.Insns[n].Addr), func(r body.Statement) bool {
			return !c.Bodies[twin].Has(r.Own) || r.Own == twin && c.Declared(&r)
		}) || g.Insns[n].Addr == c.Bodies[twin].Start
	}
	settle := func(n int32) (said, such bool) {
		if is(twin, n) {
			return true, true
		}
		return begins(n), false
	}
	said, such := settle(last)
	return (such || !said && g.AlwaysBehind(last, settle)) && c.once(i, at, is) && c.once(twin, -1, is)
}

// once reports whether one instruction of a body, that at if it is not negative, is such, and execution does not come back to it in the body.
func (c *Rules) once(i, at int32, is func(of, n int32) bool) bool {
	g, b := c.Graph, &c.Bodies[i]
	several := c.HasSuch(i, func(n int32) bool {
		if !is(i, n) {
			return false
		}
		if at < 0 {
			at = n
		}
		return n != at
	})
	if several || at < 0 {
		return false
	}
	own := g.Block(at)
	seen := make(map[int32]bool)
	for work := []int32{own}; len(work) > 0; {
		n := work[len(work)-1]
		work = work[:len(work)-1]
		for _, to := range g.Blocks[n].Succs {
			if to == own {
				return false
			}
			if b.Has(c.Owner[g.Blocks[to].First]) && !seen[to] {
				seen[to] = true
				work = append(work, to)
			}
		}
	}
	return true
}

// sameIn reports whether a body in one, or that one, is by the same calls in it what another body is in another one.
func (c *Rules) sameIn(of, own, other, x int32) bool {
	for own != of && x != other && own >= 0 && x >= 0 {
		if c.FunctionOf(own) != c.FunctionOf(x) || c.Bodies[own].Call != c.Bodies[x].Call {
			return false
		}
		own, x = c.Bodies[own].Parent, c.Bodies[x].Parent
	}
	return own == of && x == other
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
