package body

import (
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/flow"
	"github.com/bpfprologue/bpfprologue/internal/insn"
)

// MovedOut reports whether a loop around a link-time address changes a register and has no instruction in some ranges, those of a body, but uses, right behind the address, what is made in
// front of the loop of what one of them has left, and nothing changes: the body was moved out of it. read is set if one of them has read what the register had, which they have not made, and
// none is come to again.
func (c *Code) MovedOut(ranges []dw.Range, register, at uint64) (out, read bool) {
	if c.Why != "" || register >= 64 {
		return false, false
	}
	n, ok := c.Graph.At(at)
	if !ok {
		return false, false
	}
	site := int32(n)
	turns := c.turnsWithout(ranges, c.Graph.Block(site))
	if turns == nil {
		return false, false
	}
	m := &made{c: c, ranges: ranges, sp: uint64(c.Unit.Image.Arch().SP)}
	var changed things
	for b, is := range turns {
		if is {
			for i := c.Graph.Blocks[b].First; i < c.Graph.Blocks[b].Last; i++ {
				_, writes := m.accesses(i)
				changed = changed.with(writes)
			}
		}
	}
	if !changed.registers.Has(register) {
		return false, false
	}
	m.of = register
	before := m.reaching()
	for i := site; i < c.Graph.Blocks[c.Graph.Block(site)].Last; i++ {
		reads, _ := m.accesses(i)
		if reads.without(changed).meets(before[c.Graph.Block(site)]) {
			again, left := c.Graph.Ahead(c.Graph.Block(site), func(b int32) bool { return c.within(ranges, b) })
			return true, m.read && left && !again
		}
	}
	return false, false
}

// ReadsIn reports whether an instruction in some ranges, and in another one, may read a register.
func (c *Code) ReadsIn(ranges []dw.Range, in dw.Range, register uint64) bool {
	first, _ := c.Graph.At(in.Lo)
	for n := first; n < len(c.Graph.Insns) && c.Graph.Insns[n].Addr < in.Hi; n++ {
		if dw.Covers(ranges, c.Graph.Insns[n].Addr) {
			if reads, _, known := c.Arch.Accesses(c.Graph.Bytes(int32(n))); !known || reads.Has(register) {
				return true
			}
		}
	}
	return false
}

// MayRead reports whether an instruction in some ranges may read a register. The function is not followed for that.
func (img *Image) MayRead(ranges []dw.Range, register uint64) bool {
	arch := insn.For(img.Instructions())
	for _, r := range ranges {
		code, err := img.Bytes(r.Lo, r.Hi-r.Lo)
		if err != nil || arch == nil {
			return true
		}
		for len(code) > 0 {
			in, ok := arch.Next(code)
			if !ok || in.Size <= 0 || in.Size > len(code) {
				return true
			}
			if reads, _, known := arch.Accesses(code); !known || reads.Has(register) {
				return true
			}
			code = code[in.Size:]
		}
	}
	return false
}

// within reports whether a block has an instruction in some ranges.
func (c *Code) within(ranges []dw.Range, block int32) bool {
	b := &c.Graph.Blocks[block]
	return slices.ContainsFunc(c.Graph.Insns[b.First:b.Last], func(x flow.Insn) bool { return dw.Covers(ranges, x.Addr) })
}

// turnsWithout returns the blocks of the loop around one that has no instruction in some ranges, or nil if none leads back to it.
func (c *Code) turnsWithout(ranges []dw.Range, site int32) []bool {
	blocks := c.Graph.Blocks
	ahead, back := make([]bool, len(blocks)), make([]bool, len(blocks))
	for work := []int32{site}; len(work) > 0; {
		b := work[len(work)-1]
		work = work[:len(work)-1]
		for _, to := range blocks[b].Succs {
			if !ahead[to] && !c.within(ranges, to) {
				ahead[to] = true
				work = append(work, to)
			}
		}
	}
	if !ahead[site] {
		return nil
	}
	back[site] = true
	for more := true; more; {
		more = false
		for b := range blocks {
			if ahead[b] && !back[b] && slices.ContainsFunc(blocks[b].Succs, func(to int32) bool { return back[to] }) {
				back[b], more = true, true
			}
		}
	}
	return back
}

// things are registers, and slots at the stack pointer by their numbers.
type things struct{ registers, slots insn.Registers }

func (t things) with(o things) things { return things{t.registers | o.registers, t.slots | o.slots} }
func (t things) without(o things) things {
	return things{t.registers &^ o.registers, t.slots &^ o.slots}
}
func (t things) meets(o things) bool { return t.registers&o.registers != 0 || t.slots&o.slots != 0 }

// made follows what the instructions in ranges make, and what others make of that.
type made struct {
	c      *Code
	ranges []dw.Range
	sp     uint64
	slots  []Slot
	of     uint64 // a register, and whether an instruction in ranges has read what others have left there
	read   bool
}

// accesses returns what an instruction reads and writes. The stack pointer is neither.
func (m *made) accesses(i int32) (reads, writes things) {
	code := m.c.Graph.Bytes(i)
	switch next, ok := m.c.Arch.Next(code); {
	case ok && next.Call:
		return reads, things{registers: ^m.c.Preserved()}
	case ok && (next.Branches || next.Lost):
		return reads, writes
	}
	w, known := m.c.Arch.Writes(code)
	if !known {
		return reads, things{registers: ^insn.Registers(0)}
	}
	keep := ^(insn.Registers(1) << m.sp)
	writes.registers = w.Registers & keep
	if r, _, known := m.c.Arch.Accesses(code); known {
		reads.registers = r & keep
	}
	if x, stores, ok := m.c.Arch.Operand(code); ok && x.Base == m.sp {
		if stores {
			writes.slots = m.numbersOf(x)
		} else {
			reads.slots = m.numbersOf(x)
		}
	}
	return reads, writes
}

// numbersOf returns the numbers of the slots that one overlaps. Of those past the first 64 nothing is known.
func (m *made) numbersOf(x Slot) (numbers insn.Registers) {
	if !slices.Contains(m.slots, x) && len(m.slots) < 64 {
		m.slots = append(m.slots, x)
	}
	for n, its := range m.slots {
		if its.Overlaps(x) {
			numbers |= 1 << n
		}
	}
	return numbers
}

// reaching returns what of it there may be where each block begins.
func (m *made) reaching() []things {
	g := m.c.Graph
	before := make([]things, len(g.Blocks))
	var work []int32
	for b := range g.Blocks {
		work = append(work, int32(b))
	}
	for len(work) > 0 {
		b := work[len(work)-1]
		work = work[:len(work)-1]
		now := before[b]
		for i := g.Blocks[b].First; i < g.Blocks[b].Last; i++ {
			reads, writes := m.accesses(i)
			if of := dw.Covers(m.ranges, g.Insns[i].Addr); of || reads.meets(now) {
				m.read = m.read || of && reads.registers.Has(m.of) && !now.registers.Has(m.of)
				now = now.with(writes)
			} else {
				now = now.without(writes)
			}
		}
		for _, to := range g.Blocks[b].Succs {
			if all := before[to].with(now); all != before[to] {
				before[to] = all
				work = append(work, to)
			}
		}
	}
	return before
}
