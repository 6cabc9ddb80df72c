package body

import (
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/flow"
	"github.com/bpfprologue/bpfprologue/internal/insn"
)

// acts reports whether an instruction calls, writes memory where others may see it, or jumps: what compilers move leaves no jump.
func (c *Code) acts(at int32) bool {
	code := c.graph.Bytes(at)
	if in, ok := c.arch.Next(code); ok && in.Call {
		return true
	}
	w, ok := c.arch.Writes(code)
	return !ok || w.Memory && !c.arch.Spills(code) && !c.inFrame(at)
}

// shape returns what instructions that do the same have in common.
func (c *Code) shape(n int32) uint64 { return c.arch.Shape(c.graph.Bytes(n)) }

// global returns the address of the memory that an instruction accesses, if it contains that
// address, and else 0.
func (c *Code) global(n int32) uint64 {
	if c.arch.Global == nil {
		return 0
	}
	at, _ := c.arch.Global(c.graph.Bytes(n), c.graph.Insns[n].Addr)
	return at
}

// hasSuch reports whether one of the instructions in the ranges of a body is such.
func (c *Code) hasSuch(i int32, such func(n int32) bool) bool {
	insns := c.graph.Insns
	for _, r := range c.bodies[i].ranges {
		for n, ok := c.graph.From(r.Lo); ok && n < int32(len(insns)) && insns[n].Addr < r.Hi; n++ {
			if such(n) {
				return true
			}
		}
	}
	return false
}

// actsAtAll reports whether an instruction of a body calls, or writes memory where others may see it.
func (c *Code) actsAtAll(i int32) bool {
	return c.hasSuch(i, func(n int32) bool { return c.bodies[i].has(c.owner[n]) && c.acts(n) })
}

// owns reports whether a block has an instruction of a body's own text.
func (c *Code) owns(i int32, block *flow.Block) bool {
	return slices.Contains(c.owner[block.First:block.Last], i)
}

// TestedBefore reports whether a branch, from which execution comes to a link-time address in straight code, depends on a comparison that reads a register.
func (c *Code) TestedBefore(addr, register uint64) bool {
	if c.graph == nil {
		return false
	}
	n, ok := c.graph.At(addr)
	if !ok {
		return false
	}
	const far = 4 // instructions from a comparison to its branch
	found := false
	b := c.graph.Block(int32(n))
	for range far {
		single := c.graph.Paths(b) == 1 // and no branch
		next := b
		c.graph.OnlyBehind(b, func(last int32) bool {
			block := &c.graph.Blocks[c.graph.Block(last)]
			for at := last; at >= block.First && at > last-far; at-- {
				reads, w, known := c.arch.Accesses(c.graph.Bytes(at))
				found = found || known && w == (insn.Writes{}) && reads.Has(register)
			}
			next = c.graph.Block(last)
			single = single && c.graph.Insns[last].Kind != flow.Branch
			return true
		})
		if found || !single || next == b {
			break
		}
		b = next
	}
	return found
}

// StoredNarrow reports whether the code stores fewer bytes to a slot, and never as many as it has.
func (c *Code) StoredNarrow(m Slot) bool {
	if c.graph == nil {
		return false
	}
	if c.stored == nil {
		c.stored = make(map[Slot]int64)
		for n := range c.graph.Insns {
			if at, stores, ok := c.arch.Operand(c.graph.Bytes(int32(n))); ok && stores {
				key := Slot{Base: at.Base, Off: at.Off}
				c.stored[key] = max(c.stored[key], at.Size)
			}
		}
	}
	most, stored := c.stored[Slot{Base: m.Base, Off: m.Off}]
	return stored && most < m.Size
}
