package body

import "math/bits"

// Slot returns where memory at a register plus an offset is in the function's frame, in bytes from the stack pointer where the function begins, before the first instruction that begins
// at a link-time address or behind it: what its caller passed is above 0, and what is its own below. ok is false if that is not known.
func (c *Code) Slot(at uint64, m Slot) (off int64, ok bool) {
	if c.Graph == nil || c.Why != "" || m.Base >= Followed {
		return 0, false
	}
	n, _ := c.Graph.At(at)
	if n == len(c.Graph.Insns) {
		return 0, false
	}
	base := c.distanceAt(int32(n), m.Base)
	return m.Off + base.bytes, base.known
}

// HasOnly reports whether so many bytes of the frame, at an offset that Slot returned, have what they had where the function begins, or what a register had there: no instruction stores anything
// else to them, and none may store anywhere in the frame or takes their address. was is that register, or nil.
func (c *Code) HasOnly(off, size int64, was *uint64) bool {
	f := c.framed()
	if f == nil {
		return false
	}
	for _, x := range f.takes {
		if off <= x.off && x.off < off+size {
			return false
		}
	}
	stored := false
	for _, x := range f.stores {
		switch {
		case x.anywhere:
			return false
		case x.off >= off+size || x.off+x.size <= off:
			continue
		case was == nil || x.off != off || x.size < size:
			return false
		}
		register, at, ok := c.storedBy(x.insn)
		if !ok || !c.Held().Keeps(register, *was, uint8(8*size), at, at+1) {
			return false
		}
		stored = true
	}
	return stored || was == nil
}

// StoredFrom calls f with the register that each instruction stores, and its link-time address, of those that store so much memory of the frame as it is at a link-time address, and from which execution
// comes there. ok is false if something else may be stored to it.
func (c *Code) StoredFrom(at uint64, m Slot, f func(register, at uint64)) (ok bool) {
	frame, site, off, ok := c.objectAt(at, m)
	if !ok {
		return false
	}
	earlier := c.comesTo(site)
	for _, x := range frame.stores {
		if x.anywhere || x.off >= off+m.Size || x.off+x.size <= off || !earlier(x.insn) {
			continue
		}
		register, at, ok := c.storedBy(x.insn)
		if !ok || x.off != off || x.size < m.Size {
			return false
		}
		f(register, at)
	}
	return true
}

// storedBy returns the register that an instruction stores, and the instruction's link-time address.
func (c *Code) storedBy(insn int32) (register, at uint64, ok bool) {
	code := c.Graph.Bytes(insn)
	reads, _, known := c.Arch.Accesses(code)
	of := c.spilled(code, reads)
	return uint64(bits.TrailingZeros64(uint64(of))), c.Graph.Insns[insn].Addr, known && of != 0
}
