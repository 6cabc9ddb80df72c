package body

import (
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/flow"
	"github.com/bpfprologue/bpfprologue/internal/image"
	"github.com/bpfprologue/bpfprologue/internal/insn"
)

// Acts reports whether an instruction calls, writes memory where others may see it, or jumps: what compilers move leaves no jump.
func (c *Code) Acts(at int32) bool {
	code := c.Graph.Bytes(at)
	if in, ok := c.Arch.Next(code); ok && in.Call {
		return true
	}
	w, ok := c.Arch.Writes(code)
	return !ok || w.Memory && !c.Arch.Spills(code) && !c.inFrame(at)
}

// Shape returns what instructions that do the same have in common.
func (c *Code) Shape(n int32) uint64 { return c.Arch.Shape(c.Graph.Bytes(n)) }

// Global returns the address of the memory that an instruction accesses, if it contains that
// address, and else 0.
func (c *Code) Global(n int32) uint64 {
	if c.Arch.Global == nil {
		return 0
	}
	at, _ := c.Arch.Global(c.Graph.Bytes(n), c.Graph.Insns[n].Addr)
	return at
}

// HasSuch reports whether one of the instructions in the ranges of a body is such.
func (c *Code) HasSuch(i int32, such func(n int32) bool) bool {
	insns := c.Graph.Insns
	for _, r := range c.Bodies[i].Ranges {
		for n, ok := c.Graph.From(r.Lo); ok && n < int32(len(insns)) && insns[n].Addr < r.Hi; n++ {
			if such(n) {
				return true
			}
		}
	}
	return false
}

// Owns reports whether a block has an instruction of a body's own text.
func (c *Code) Owns(i int32, block *flow.Block) bool {
	return slices.Contains(c.Owner[block.First:block.Last], i)
}

// Decodes reports whether the image's instructions are decoded.
func (img *Image) Decodes() bool { return insn.For(img.Instructions()) != nil }

// longest is the size in bytes of the longest instruction, and one more.
const longest = 16

// Instruction returns the bytes of the instruction at an address, and some after it; nil if the file has none there.
func (img *Image) Instruction(addr uint64) ([]byte, error) { return instruction(img.File, addr) }

func instruction(f *image.File, addr uint64) ([]byte, error) {
	sec := f.SectionAt(addr)
	if sec == nil {
		return nil, nil
	}
	return f.Bytes(addr, min(longest, sec.Addr+sec.Size-addr))
}

// Keeps reports whether an instruction goes on at the next one and leaves what reads has. A NOP of a kernel may become a jump.
func (c *Code) Keeps(at int32, reads Reads) bool {
	text := c.Graph.Bytes(at)
	in, ok := c.Arch.Next(text)
	if !ok || in.Branches || in.Call || !in.Onward {
		return false
	}
	if in.Nop || c.Graph.Insns[at].Kind != flow.Plain {
		return in.Nop && !c.mayPatch
	}
	w, known := c.Arch.Writes(text)
	return known && !w.Touches(reads) || reads == Reads{}
}

// Keeps reports whether an instruction, which code begins with, leaves what reads has, wherever it leads.
func Keeps(architecture string, code []byte, reads Reads) bool {
	arch := insn.For(architecture)
	if arch == nil {
		return false
	}
	in, ok := arch.Next(code)
	w, known := arch.Writes(code)
	return ok && (in.Branches || in.Nop) || known && !w.Touches(reads)
}
