package body

import (
	"math/bits"
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/flow"
	"github.com/bpfprologue/bpfprologue/internal/insn"
)

// Link-time optimization inlines some bodies without their markers of statements into functions with markers. Of such a body only its instructions say
// where it is, as where a compiler writes no markers at all; and its entry, where that is marked.

// bare reports whether link-time optimization may have left a body, whose entry is marked, without markers of its statements.
func (c *Code) bare(i int32) bool {
	b := &c.bodies[i]
	return !c.u.Whole() && b.live && b.viewed
}

// lost reports whether link-time optimization has left a body without any marker: then only the positions of its instructions say where its runs begin.
// A body that has no instructions but those of what is inlined into it is as that is.
func (c *Code) lost(i int32) bool {
	b := &c.bodies[i]
	switch {
	case c.u.Whole():
		return false
	case c.unmarked(i):
		return true
	case b.viewed || slices.Contains(c.owner, i) || slices.ContainsFunc(c.statementRows, func(r statement) bool { return r.own == i }):
		return false
	}
	some := false
	for k := i + 1; k < b.end; k++ {
		if slices.Contains(c.owner, k) {
			if !c.unmarked(k) {
				return false
			}
			some = true
		}
	}
	return some
}

// converted reports whether a run of a body need not be one at a way in: GCC has made one of both sides of a test (if-conversion), drops the markers that were in the branch,
// the entry's too, and has an instruction choose between what the body's instructions compute and another value. Of a body that link-time optimization has left without
// markers the choice may also be one behind a run.
func (c *Code) converted(i int32, w *flow.Way) bool {
	b := &c.bodies[i]
	if c.u.Whole() && !c.u.Views() || !c.unmarked(i) && !c.unmarkedPart(i) {
		return false
	}
	var computed insn.Registers
	for at := w.Insn; at < c.graph.Blocks[c.graph.Block(w.Insn)].Last; at++ {
		code := c.graph.Bytes(at)
		reads, writes, known := c.arch.Accesses(code)
		if !known {
			return false
		}
		for r := range uint64(followed) {
			if writes.Registers.Has(r) && reads&^(1<<r)&computed != 0 && c.arch.Chooses(code, r) {
				return true
			}
		}
		if computed &^= writes.Registers; b.has(c.owner[at]) {
			computed |= writes.Registers
		}
	}
	return false
}

// joinedTests reports whether the test with which a way into a body ends may be one of the caller's too: GCC joins two tests behind which code goes on alike into one
// (-ftree-ifcombine), at the position of the second, with the markers in front of both. There are then two branches at that position, where no other body of the function has
// more than one, and the first needs what the caller has loaded, and the second does not.
func (c *Code) joinedTests(i int32, w *flow.Way) bool {
	g, b := c.graph, &c.bodies[i]
	first := g.Block(w.Insn)
	second, out, ok := g.FollowingTest(first)
	x, y := g.Blocks[first].Last-1, g.Blocks[second].Last-1
	r, again := c.rowAt(x), c.rowAt(y)
	if !ok || r == nil || again == nil || c.placeOf(r, x) != c.placeOf(again, y) || !b.has(c.owner[x]) || !b.has(c.owner[y]) || c.entersAny(i, []int32{out}) {
		return false
	}
	only := g.Needs(c.arch, w.Insn, x+1) &^ g.Needs(c.arch, g.Blocks[second].First, y+1)
	loads := func(n int32) bool {
		_, stores, ok := c.arch.Operand(g.Bytes(n))
		return ok && !stores && !b.has(c.owner[n])
	}
	for ; only != 0 && !g.WrittenBy(c.arch, w.Insn, uint16(bits.TrailingZeros64(only)), false, loads); only &= only - 1 {
	}
	one := false
	return only != 0 && c.others(b.rec, func(ranges []dw.Range) bool {
		n := c.u.branchesAt(ranges, r)
		one = one || n == 1
		return n < 2
	}) && one
}

// branchesAt returns how many branches at the place of a row of the line table are in some ranges.
func (u *Unit) branchesAt(ranges []dw.Range, row *dw.Row) (n int) {
	rows, err := u.Rows()
	for _, r := range ranges {
		_, _ = u.Image.each(r, func(at uint64, in insn.Insn, _ []byte) bool {
			if in.Branches && in.Onward && !in.Call {
				if x := dw.RowAt(rows, at); x != nil && x.File == row.File && x.Line == row.Line && x.Column == row.Column {
					n++
				}
			}
			return err == nil
		})
	}
	return n
}

// unmarkedPart reports whether all that is left of an inlined body is a part that its function was split into, and that has no marker.
func (c *Code) unmarkedPart(i int32) bool {
	b := &c.bodies[i]
	if b.viewed || slices.Contains(c.owner, i) {
		return false
	}
	for k := i + 1; k < b.end; k++ {
		if c.bodies[k].parent == i && c.unmarked(k) {
			part, err := c.isPart(k)
			return err == nil && part
		}
	}
	return false
}

// unmarked reports whether an inlined body has instructions of its own text, and neither its entry nor any of its statements has a marker. The line that
// declares it is that of its entry.
func (c *Code) unmarked(i int32) bool {
	if c.bodies[i].viewed {
		return false
	}
	if c.bares == nil {
		c.bares = make([]bool, len(c.bodies))
		marked := make([]bool, len(c.bodies))
		for k := range c.statementRows {
			if r := &c.statementRows[k]; r.own >= 0 && !c.declared(r) {
				marked[r.own] = true
			}
		}
		for n, own := range c.owner {
			if own <= 0 || marked[own] || c.bares[own] {
				continue
			}
			t := &c.bodies[own].text
			if r := c.rowAt(int32(n)); r != nil && r.Line != 0 && (r.Line != t.line || r.Column != t.column) {
				c.bares[own] = true
			}
		}
	}
	return c.bares[i]
}

// withCopied adds marks to those of such a body where its beginning was copied for one path: a block of its instructions alone to which others' lead, and that goes on
// in the body behind its entry. A run that has begun before goes on there.
func (c *Code) withCopied(i int32, marks []flow.Mark) []flow.Mark {
	g, b := c.graph, &c.bodies[i]
	n, ok := g.At(b.start)
	if !ok {
		return marks
	}
	entry := c.past(int32(n))
	owned := func(block int32) (all bool) {
		for at := g.Blocks[block].First; at < g.Blocks[block].Last; at++ {
			if k := g.Insns[at].Kind; at == entry || k != flow.Nop && k != flow.Jump && !b.has(c.owner[at]) {
				return false
			}
		}
		return true
	}
	out := marks
	for block := range g.Blocks {
		x := &g.Blocks[block]
		if len(x.Succs) == 0 || !b.has(c.owner[x.First]) || !owned(int32(block)) {
			continue
		}
		goesOn, outside := true, false
		for _, to := range x.Succs {
			first := g.Blocks[to].First
			goesOn = goesOn && first != entry && b.has(c.owner[first])
		}
		g.OnlyBehind(int32(block), func(last int32) bool {
			outside = outside || !b.has(c.owner[last])
			return true
		})
		if goesOn && outside {
			out = append(slices.Clip(out), flow.Mark{Insn: c.past(x.First), Kind: flow.MarkInside})
		}
	}
	if len(out) > len(marks) {
		slices.SortStableFunc(out, compareMarks)
	}
	return out
}
