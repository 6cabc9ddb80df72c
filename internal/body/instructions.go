package body

import (
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/flow"
)

// acts reports whether an instruction calls, or writes memory where others may see it.
func (c *Code) acts(at int32) bool {
	code := c.graph.Bytes(at)
	if in, ok := c.arch.Next(code); ok && in.Call {
		return true
	}
	w, ok := c.arch.Writes(code)
	return !ok || w.Memory && !c.arch.Spills(code)
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

// owns reports whether a block has an instruction of a body's own text.
func (c *Code) owns(i int32, block *flow.Block) bool {
	return slices.Contains(c.owner[block.First:block.Last], i)
}
