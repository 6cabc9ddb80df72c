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
	if c.graph == nil {
		return false
	}
	n, ok := c.graph.At(at)
	return ok && n > 0 && c.graph.Insns[n-1].Addr+uint64(c.graph.Insns[n-1].Size) == at && c.arch.Chooses(c.graph.Bytes(int32(n-1)), register)
}

// WritesSince returns the registers that are written from the last instruction in some ranges on, by this one too, before execution comes to a link-time address
// that is not far from there; a call among them may write others.
func (c *Code) WritesSince(ranges []dw.Range, at uint64) (w Registers, call bool) {
	if c.graph == nil {
		return 0, false
	}
	to, ok := c.graph.At(at)
	if !ok {
		return 0, false
	}
	return c.graph.Changed(c.arch, c.graph.Between(func(n int32) bool { return dw.Covers(ranges, c.graph.Insns[n].Addr) }, int32(to)))
}
