package body

import (
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/flow"
)

// maxHoisted is how many instructions before a body are looked at: those of a few blocks.
const maxHoisted = 64

// Hoisted reports whether the instruction that wrote a register last before a link-time address is in some ranges, those of a body, and changes what the register had:
// "add $0x100, %r8d" in front of a branch of the caller's, both sides of which begin with that sum. Only what comes there on one path is looked at, or on
// the one that leads forward into a loop.
func (c *Code) Hoisted(ranges []dw.Range, register, at uint64) bool {
	if c.Why != "" {
		return false
	}
	n, ok := c.graph.At(at)
	if !ok {
		return false
	}
	before, ok := c.graph.Forward(int32(n))
	if !ok {
		return false
	}
	for range maxHoisted {
		insn := &c.graph.Insns[before]
		switch insn.Kind {
		case flow.Plain:
			reads, w, known := c.arch.Accesses(c.graph.Bytes(before))
			if !known || w.Registers.Has(register) {
				return known && reads.Has(register) && dw.Covers(ranges, insn.Addr)
			}
		case flow.Branch, flow.Jump, flow.Nop:
		default:
			return false
		}
		if before, ok = c.graph.OnlyBefore(before); !ok {
			return false
		}
	}
	return false
}
