package body

import (
	"math/bits"
	"slices"
	"sort"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/flow"
	"github.com/bpfprologue/bpfprologue/internal/insn"
)

// Changes returns what the function's instructions change, those apart that leave it.
func (c *Code) Changes() Changes {
	if c.changes.read {
		return c.changes.Changes
	}
	c.changes.read = true
	out := &c.changes.Changes
	if out.Known = c.Why == ""; !out.Known {
		return *out
	}
	for i := range c.Graph.Insns {
		if c.Graph.Insns[i].Kind == flow.Leave {
			continue // what follows is not the function any more
		}
		code := c.Graph.Bytes(int32(i))
		in, ok := c.Arch.Next(code)
		if ok && !in.Call && (in.Branches || in.Trap || in.Nop || in.Lost) {
			continue // it only goes on elsewhere
		}
		w, known := c.Arch.Writes(code)
		out.Known = out.Known && ok && (known || in.Call)
		out.Calls = out.Calls || in.Call
		out.Registers |= w.Registers
	}
	return *out
}

// Spares reports whether no instruction of the function writes a register. What the function calls may.
func (c *Code) Spares(register uint64) bool {
	w := c.Changes()
	return w.Known && !c.mayPatch && register < Followed && !w.Registers.Has(register)
}

// CallsTo returns the link-time addresses of what the function calls. known is false if it also calls what a register or memory says, or if its
// code is not known.
func (c *Code) CallsTo() (to []uint64, known bool) {
	known = c.Changes().Known
	if !known || !c.changes.Calls {
		return nil, known
	}
	for i := range c.Graph.Insns {
		in, ok := c.Arch.Next(c.Graph.Bytes(int32(i)))
		if !ok || in.Call && in.Target == 0 {
			return nil, false
		}
		if in.Call {
			to = append(to, c.Graph.Insns[i].Addr+uint64(in.Target))
		}
	}
	slices.Sort(to)
	return slices.Compact(to), true
}

// WritesSince returns the registers that are written from the last instruction in some ranges on, by this one too, before execution comes to a link-time address
// that is not far from there; a call among them may write others.
func (c *Code) WritesSince(ranges []dw.Range, at uint64) (w Registers, call bool) {
	if c.Graph == nil {
		return 0, false
	}
	to, ok := c.Graph.At(at)
	if !ok {
		return 0, false
	}
	return c.Graph.Changed(c.Arch, c.Graph.Between(func(n int32) bool { return dw.Covers(ranges, c.Graph.Insns[n].Addr) }, int32(to)))
}

// maxHoisted is how many instructions before a body are looked at: those of a few blocks.
const maxHoisted = 64

// Hoisted reports whether the instruction that wrote a register last before a link-time address is in some ranges, those of a body, and changes what the register had:
// "add $0x100, %r8d" in front of a branch of the caller's, both sides of which begin with that sum. With a slot it is the register that an instruction in the ranges has stored
// there last: what a loop around the body need not compute in each turn. What leaves the lowest bits is no change. Only what comes there on one path is looked at, or on those that lead forward into loops.
func (c *Code) Hoisted(ranges []dw.Range, register uint64, slot *Slot, at uint64, size uint8) (by uint64, is bool) {
	if c.Why != "" {
		return 0, false
	}
	n, ok := c.Graph.At(at)
	if !ok {
		return 0, false
	}
	before := int32(n)
	for range maxHoisted {
		if before, ok = c.Graph.Forward(before); !ok {
			return 0, false
		}
		insn := &c.Graph.Insns[before]
		switch insn.Kind {
		case flow.Plain:
			code := c.Graph.Bytes(before)
			reads, w, known := c.Arch.Accesses(code)
			switch {
			case !known, slot != nil && w.Registers.Has(slot.Base):
				return 0, false
			case slot != nil:
				m, stores, ok := c.Arch.Operand(code)
				if !ok || !w.Memory || m.Base != slot.Base || m.Off >= slot.Off+slot.Size || slot.Off >= m.Off+m.Size {
					continue
				}
				from := uint64(reads &^ (1 << m.Base))
				if !stores || m != *slot || bits.OnesCount64(from) != 1 || !dw.Covers(ranges, insn.Addr) {
					return 0, false
				}
				register, slot = uint64(bits.TrailingZeros64(from)), nil
			case w.Registers.Has(register):
				if reads.Has(register) && c.leaves(code, insn.Addr, register, size) {
					continue
				}
				return insn.Addr, reads.Has(register) && dw.Covers(ranges, insn.Addr)
			}
		case flow.Branch, flow.Jump, flow.Nop:
		default:
			return 0, false
		}
	}
	return 0, false
}

// leaves reports whether an instruction leaves the lowest bits of a register as they are.
func (c *Code) leaves(code []byte, addr, register uint64, bits uint8) bool {
	s := c.Arch.State()
	was, known := s.Register(register)
	s.Step(code, addr)
	is, ok := s.Register(register)
	return known && ok && s.Low(was, bits) == s.Low(is, bits)
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
	if c.Graph == nil {
		return false
	}
	n, ok := c.Graph.At(at)
	return ok && n > 0 && c.Graph.Insns[n-1].Addr+uint64(c.Graph.Insns[n-1].Size) == at && c.Arch.Chooses(c.Graph.Bytes(int32(n-1)), register)
}

// TestedBefore reports whether a branch, from which execution comes to a link-time address in straight code, depends on a comparison that reads a register.
func (c *Code) TestedBefore(addr, register uint64) bool {
	if c.Graph == nil {
		return false
	}
	n, ok := c.Graph.At(addr)
	if !ok {
		return false
	}
	const far = 4 // instructions from a comparison to its branch
	found := false
	b := c.Graph.Block(int32(n))
	for range far {
		single := c.Graph.Paths(b) == 1 // and no branch
		next := b
		c.Graph.OnlyBehind(b, func(last int32) bool {
			block := &c.Graph.Blocks[c.Graph.Block(last)]
			for at := last; at >= block.First && at > last-far; at-- {
				reads, w, known := c.Arch.Accesses(c.Graph.Bytes(at))
				found = found || known && w == (insn.Writes{}) && reads.Has(register)
			}
			next = c.Graph.Block(last)
			single = single && c.Graph.Insns[last].Kind != flow.Branch
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
	most, stored := c.mostStored(m)
	return stored && most < m.Size
}

// StoredWide reports whether the code stores more bytes to a slot than it has.
func (c *Code) StoredWide(m Slot) bool {
	most, stored := c.mostStored(m)
	return stored && most > m.Size
}

// mostStored returns how many bytes the code stores at most where a slot begins.
func (c *Code) mostStored(m Slot) (most int64, stored bool) {
	if c.Graph == nil {
		return 0, false
	}
	if c.stored == nil {
		c.stored = make(map[Slot]int64)
		for n := range c.Graph.Insns {
			if at, stores, ok := c.Arch.Operand(c.Graph.Bytes(int32(n))); ok && stores {
				key := Slot{Base: at.Base, Off: at.Off}
				c.stored[key] = max(c.stored[key], at.Size)
			}
		}
	}
	most, stored = c.stored[Slot{Base: m.Base, Off: m.Off}]
	return most, stored
}
