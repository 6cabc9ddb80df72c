package body

import (
	"math/bits"
	"slices"
	"sort"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/flow"
	"github.com/bpfprologue/bpfprologue/internal/insn"
)

// maxHoisted is how many instructions before a body are looked at: those of a few blocks.
const maxHoisted = 64

// Hoisted reports whether the instruction that wrote a register last before a link-time address is in some ranges, those of a body, and changes what the register had:
// "add $0x100, %r8d" in front of a branch of the caller's, both sides of which begin with that sum. With a slot it is the register that an instruction in the ranges has stored
// there last: what a loop around the body need not compute in each turn. Only what comes there on one path is looked at, or on those that lead forward into loops.
func (c *Code) Hoisted(ranges []dw.Range, register uint64, slot *Slot, at uint64) bool {
	if c.Why != "" {
		return false
	}
	n, ok := c.graph.At(at)
	if !ok {
		return false
	}
	before := int32(n)
	for range maxHoisted {
		if before, ok = c.graph.Forward(before); !ok {
			return false
		}
		insn := &c.graph.Insns[before]
		switch insn.Kind {
		case flow.Plain:
			code := c.graph.Bytes(before)
			reads, w, known := c.arch.Accesses(code)
			switch {
			case !known, slot != nil && w.Registers.Has(slot.Base):
				return false
			case slot != nil:
				m, stores, ok := c.arch.Operand(code)
				if !ok || !w.Memory || m.Base != slot.Base || m.Off >= slot.Off+slot.Size || slot.Off >= m.Off+m.Size {
					continue
				}
				from := uint64(reads &^ (1 << m.Base))
				if !stores || m != *slot || bits.OnesCount64(from) != 1 || !dw.Covers(ranges, insn.Addr) {
					return false
				}
				register, slot = uint64(bits.TrailingZeros64(from)), nil
			case w.Registers.Has(register):
				return reads.Has(register) && dw.Covers(ranges, insn.Addr)
			}
		case flow.Branch, flow.Jump, flow.Nop:
		default:
			return false
		}
	}
	return false
}

// StoresEarly reports whether an instruction in some ranges, those of a body, stores memory that is not in the frame in the straight code before a link-time address, and
// no statement with its row begins there: that comes later.
func (u *Unit) StoresEarly(ranges []dw.Range, at uint64) (bool, error) {
	rows, err := u.Rows()
	if err != nil {
		return false, err
	}
	from, ok := u.Image.straightBefore(rows, at, maxFirst/2)
	if !ok {
		return false, nil
	}
	type place struct{ file, line uint32 }
	var begun []place
	early := false
	i := sort.Search(len(rows), func(i int) bool { return rows[i].Addr >= from })
	u.Image.straight(from, at, func(arch *insn.Arch, addr uint64, code []byte) bool {
		for ; i < len(rows) && rows[i].Addr <= addr; i++ {
			if rows[i].Stmt {
				begun = append(begun, place{rows[i].File, rows[i].Line})
			}
		}
		if w, known := arch.Writes(code); !dw.Covers(ranges, addr) || known && !w.Memory || arch.Spills(code) {
			return true
		}
		row := dw.RowAt(rows, addr)
		early = row != nil && row.Line != 0 && !slices.Contains(begun, place{row.File, row.Line})
		return !early
	})
	return early, nil
}

// ChoosesBefore reports whether the instruction before a link-time address has chosen between what a register had and another value.
func (c *Code) ChoosesBefore(register, at uint64) bool {
	code := c.endsAt(at)
	return code != nil && c.arch.Chooses(code, register)
}

// WritesSince returns the registers that instructions write between the last one in some ranges, this one too, and a link-time address to which execution
// comes from there in straight code; a call among them may write others. There are none if it comes by jumps alone.
func (c *Code) WritesSince(ranges []dw.Range, at uint64) (w Registers, call bool) {
	for code := c.endsAt(at); code != nil; code = c.endsAt(at) {
		n, _ := c.graph.At(at)
		at -= uint64(len(code))
		if own := dw.Covers(ranges, at); c.graph.Blocks[c.graph.Block(int32(n))].First == int32(n) && !own {
			break
		}
		in, known := c.arch.Next(code)
		x, ok := c.arch.Writes(code)
		if !known || !ok && !in.Call {
			return ^Registers(0), false
		}
		if w, call = w|x.Registers, call || in.Call; dw.Covers(ranges, at) {
			break
		}
	}
	return w, call
}

// endsAt returns the instruction that ends at a link-time address, unless it is one that only jumps elsewhere.
func (c *Code) endsAt(at uint64) []byte {
	if c.graph == nil {
		return nil
	}
	n, ok := c.graph.At(at)
	if !ok || n == 0 || c.graph.Insns[n-1].Addr+uint64(c.graph.Insns[n-1].Size) != at || c.graph.Insns[n-1].Kind == flow.Jump {
		return nil
	}
	return c.graph.Bytes(int32(n - 1))
}
