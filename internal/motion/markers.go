package motion

import (
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/flow"
	"github.com/bpfprologue/bpfprologue/internal/radix"
)

// Lost reports whether link-time optimization has left a body without any marker: then only the positions of its instructions say where its runs begin.
// A body that has no instructions but those of what is inlined into it is as that is.
func (c *Rules) Lost(i int32) bool {
	b := &c.Bodies[i]
	switch {
	case c.Unit.Whole():
		return false
	case c.unmarked(i):
		return true
	case b.Viewed || slices.Contains(c.Owner, i) || slices.ContainsFunc(c.Statements, func(r body.Statement) bool { return r.Own == i }):
		return false
	}
	some := false
	for k := i + 1; k < b.End; k++ {
		if slices.Contains(c.Owner, k) {
			if !c.unmarked(k) {
				return false
			}
			some = true
		}
	}
	return some
}

// Link-time optimization inlines some bodies without their markers of statements into functions with markers. Of such a body only its instructions say
// where it is, as where a compiler writes no markers at all; and its entry, where that is marked.

// Bare reports whether link-time optimization may have left a body, whose entry is marked, without markers of its statements.
func (c *Rules) Bare(i int32) bool {
	b := &c.Bodies[i]
	return !c.Unit.Whole() && b.Live && b.Viewed
}

// unmarked reports whether an inlined body has instructions of its own text, and neither its entry nor any of its statements has a marker. The line that
// declares it is that of its entry.
func (c *Rules) unmarked(i int32) bool {
	if c.Bodies[i].Viewed {
		return false
	}
	if c.bares == nil {
		c.bares = make([]bool, len(c.Bodies))
		marked := make([]bool, len(c.Bodies))
		for k := range c.Statements {
			if r := &c.Statements[k]; r.Own >= 0 && !c.Declared(r) {
				marked[r.Own] = true
			}
		}
		for n, own := range c.Owner {
			if own <= 0 || marked[own] || c.bares[own] {
				continue
			}
			t := &c.Bodies[own].Text
			if r := c.RowAt(int32(n)); r != nil && r.Line != 0 && (r.Line != t.Line || r.Column != t.Column) {
				c.bares[own] = true
			}
		}
	}
	return c.bares[i]
}

// unmarkedPart reports whether all that is left of an inlined body is a part that its function was split into, and that has no marker.
func (c *Rules) unmarkedPart(i int32) bool {
	b := &c.Bodies[i]
	if b.Viewed || slices.Contains(c.Owner, i) {
		return false
	}
	for k := i + 1; k < b.End; k++ {
		if c.Bodies[k].Parent == i && c.unmarked(k) {
			part, err := c.ContinuesParent(k)
			return err == nil && part
		}
	}
	return false
}

// WithCopied adds marks to those of such a body where its beginning was copied for one path: a block of its instructions alone to which others' lead, and that goes on
// in the body behind its entry. A run that has begun before goes on there.
func (c *Rules) WithCopied(i int32, marks []flow.Mark) []flow.Mark {
	g, b := c.Graph, &c.Bodies[i]
	n, ok := g.At(b.Start)
	if !ok {
		return marks
	}
	entry := c.Past(int32(n))
	owned := func(block int32) (all bool) {
		for at := g.Blocks[block].First; at < g.Blocks[block].Last; at++ {
			if k := g.Insns[at].Kind; at == entry || k != flow.Nop && k != flow.Jump && !b.Has(c.Owner[at]) {
				return false
			}
		}
		return true
	}
	out := marks
	for block := range g.Blocks {
		x := &g.Blocks[block]
		if len(x.Succs) == 0 || !b.Has(c.Owner[x.First]) || !owned(int32(block)) || c.jumpedTo(int32(block)) {
			continue
		}
		goesOn, outside := true, false
		for _, to := range x.Succs {
			first := g.Blocks[to].First
			goesOn = goesOn && first != entry && b.Has(c.Owner[first])
		}
		g.OnlyBehind(int32(block), func(last int32) bool {
			outside = outside || !b.Has(c.Owner[last])
			return true
		})
		if goesOn && outside {
			out = append(slices.Clip(out), flow.Mark{Insn: c.Past(x.First), Kind: flow.MarkInside})
		}
	}
	if len(out) > len(marks) {
		SortMarks(out)
	}
	return out
}

// SortMarks sorts marks by their instructions, where they are.
func SortMarks(marks []flow.Mark) {
	radix.Sort(marks, func(m *flow.Mark) uint64 { return uint64(m.Insn) })
}
