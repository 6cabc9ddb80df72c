package body

import (
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/flow"
	"github.com/bpfprologue/bpfprologue/internal/insn"
)

// member is memory at a distance from a register, at an instruction.
type member struct {
	*Code
	Slot
	at     int32
	was    uint64 // the register in which its address was passed
	passed bool
}

// StoresAhead reports whether the code from a link-time address on may store to memory at a distance from a register before it reads it, by the path on which no branch is taken, from a register
// that is not set in between: what else is asked of such a store needs all of the function's code.
func (img *Image) StoresAhead(from uint64, m Slot) bool {
	sec, arch := img.SectionAt(from), insn.For(img.Instructions())
	if sec == nil || arch == nil {
		return false
	}
	may, set := true, Registers(0)
	_, _ = img.each(dw.Range{Lo: from, Hi: min(from+maxFirst, sec.Addr+sec.Size)}, func(_ uint64, in insn.Insn, code []byte) bool {
		if x, stores, is := arch.Operand(code); is && x.Overlaps(m) {
			reads, _, known := arch.Accesses(code)
			stored := reads &^ (1 << m.Base)
			may = stores && x == m && known && !arch.Numbered(code) && (stored == 0 || stored&^set != 0)
			return false
		}
		if in.Branches || in.Nop || in.Trap {
			return in.Onward && !in.Call // behind a jump and a trap nothing is known here
		}
		reads, w, known := arch.Accesses(code)
		set |= w.Registers &^ reads
		may = known && goesOn(&in) && !w.Registers.Has(m.Base)
		return may
	})
	return may
}

// KeptBack reports whether memory at a distance from a register lacks, at a link-time address where a body begins, a number that the function has stored to it by its source: the code
// behind the address stores a register there before any instruction reads the memory, that register had what is there, an instruction that is not the body's has changed it since, on
// some path to the address, and none stores it to the memory in between. A compiler that keeps a member in a register stores it where it has the last of its numbers.
func (c *Code) KeptBack(i int, at uint64, m Slot) bool {
	if c.Graph == nil || c.Why != "" || m.Base >= Followed {
		return false
	}
	n, ok := c.Graph.At(at)
	if !ok {
		return false
	}
	x := member{Code: c, Slot: m, at: int32(n)}
	registers := x.storesFirst()
	if len(registers) == 0 {
		return false // most: what registers hold is not asked for
	}
	x.was, x.passed = c.Held().Was(m.Base, at)
	return slices.ContainsFunc(registers, func(register uint64) bool {
		return x.carries(register) && x.changed(i, register, x.at, maxMoves)
	})
}

// storesFirst returns the registers that instructions behind store to the memory, if on all paths one does before any reads it or what a call reads.
func (m *member) storesFirst() (registers []uint64) {
	from, g := m.at, m.Graph
	if !g.AllPaths(g.Block(from), func(b int32) (settled, ok bool) {
		at := max(from, g.Blocks[b].First)
		for from = 0; at < g.Blocks[b].Last; at++ { // a path that comes back begins with the block
			w, goesOn := m.passes(at)
			if !goesOn || g.Insns[at].Kind == flow.Leave || g.Insns[at].Kind == flow.Quit {
				return true, false
			}
			if x, stores, is := m.Arch.Operand(g.Bytes(at)); is && x.Overlaps(m.Slot) {
				r, _, is := m.storedBy(at)
				if !stores || x != m.Slot || !is {
					return true, false
				}
				if !slices.Contains(registers, r) {
					registers = append(registers, r)
				}
				return true, true
			}
			if w.Registers.Has(m.Base) {
				return true, false
			}
		}
		return false, true
	}) {
		return nil
	}
	return registers
}

// carries reports whether a register is not set anew behind, up to where it is stored to the memory.
func (m *member) carries(register uint64) bool {
	from, g := m.at, m.Graph
	return g.AllPaths(g.Block(from), func(b int32) (settled, ok bool) {
		at := max(from, g.Blocks[b].First)
		for from = 0; at < g.Blocks[b].Last; at++ {
			code := g.Bytes(at)
			if x, stores, is := m.Arch.Operand(code); is && stores && x == m.Slot {
				return true, true
			}
			if w, _ := m.passes(at); w.Registers.Has(register) {
				if reads, _, known := m.Arch.Accesses(code); !known || !reads.Has(register) {
					return true, false
				}
			}
		}
		return false, true
	})
}

// changed reports whether a register had what the memory has, and was changed in place since, before an instruction, with nothing stored there behind that. Of several changes the last is
// looked for first.
func (m *member) changed(i int, register uint64, before int32, steps int) (found bool) {
	m.Graph.WrittenBy(m.Arch, before, uint16(register), m.Preserved().Has(register), func(at int32) bool {
		reads, _, known := m.Arch.Accesses(m.Graph.Bytes(at))
		if known && reads.Has(register) && !m.Bodies[i].Has(m.Owner[at]) && m.untouched(at+1) {
			found = found || m.mirrors(register, at) || steps > 0 && m.changed(i, register, at, steps-1)
		}
		return !found
	})
	return found
}

// mirrors reports whether a register has what the memory has, on a path to an instruction: it was loaded from there, or stored.
func (m *member) mirrors(register uint64, from int32) (found bool) {
	g, seen := m.Graph, make(map[int32]bool)
	var before func(block, end int32)
	before = func(block, end int32) {
		for at := end - 1; at >= g.Blocks[block].First && !found; at-- {
			code := g.Bytes(at)
			w, goesOn := m.passes(at)
			if x, stores, is := m.Arch.Operand(code); is && x.Off == m.Off && x.Size == m.Size && m.based(x.Base, at) {
				stored, _, all := m.storedBy(at)
				found = stores && all && stored == register || !stores && w.Registers.Has(register) && !m.Arch.Updates(code).Has(register)
			}
			if !goesOn || w.Registers.Has(register) {
				return
			}
		}
		g.OnlyBehind(block, func(last int32) bool {
			if p := g.Block(last); !seen[p] && len(seen) < maxMirrored {
				seen[p] = true
				before(p, last+1)
			}
			return !found
		})
	}
	before(g.Block(from), from)
	return found
}

// maxMirrored bounds how many blocks are looked through for where a member was read.
const maxMirrored = 16

// based reports whether a register has at an instruction what the memory's has where it is asked about.
func (m *member) based(register uint64, at int32) bool {
	if !m.passed {
		return register == m.Base
	}
	was, ok := m.Held().Was(register, m.Graph.Insns[at].Addr)
	return ok && was == m.was
}

// untouched reports whether no instruction from one on stores to the memory, or may, on the way to where it is asked about, or changes the register that it is at a distance from.
func (m *member) untouched(from int32) bool {
	g := m.Graph
	return g.AllPaths(g.Block(from), func(b int32) (settled, ok bool) {
		at := max(from, g.Blocks[b].First)
		for from = 0; at < g.Blocks[b].Last; at++ {
			if at == m.at {
				return true, true
			}
			w, goesOn := m.passes(at)
			if !goesOn || !m.passed && w.Registers.Has(m.Base) {
				return true, false
			}
			if x, stores, is := m.Arch.Operand(g.Bytes(at)); is && (stores || w.Memory) && (Slot{Base: m.Base, Off: x.Off, Size: x.Size}).Overlaps(m.Slot) && m.based(x.Base, at) {
				return true, false
			}
		}
		return len(g.Blocks[b].Succs) == 0, true
	})
}

// passes returns what an instruction writes. goesOn is false if that is not known, or if it is a call.
func (c *Code) passes(at int32) (w insn.Writes, goesOn bool) {
	code := c.Graph.Bytes(at)
	if in, known := c.Arch.Next(code); !known || in.Call {
		return w, false
	}
	if c.Graph.Insns[at].Kind != flow.Plain { // it leads elsewhere, or does nothing
		return w, true
	}
	return c.Arch.Writes(code)
}
