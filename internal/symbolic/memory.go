package symbolic

// place is memory: an address, and a number of bits.
type place struct {
	addr Value
	bits uint8
}

// overlaps reports whether two places, whose addresses differ by a constant, have a byte in common.
func (p place) overlaps(q place) bool {
	d := int64(p.addr.Const - q.addr.Const)
	return d < int64(q.bits/8) && -d < int64(p.bits/8)
}

// mostMemory is how many places are kept in mind.
const mostMemory = 256

// Load returns what is in memory.
func (t *Trace) Load(addr Value, bits uint8) Value {
	at := place{addr, bits}
	v, ok := t.memory[at]
	if !ok {
		v = t.Symbol(Symbol{Kind: Loaded, Of: addr, Bits: bits, Which: t.stores})
		t.memory[at] = v
	}
	return v
}

// IsFrom reports whether a value is made of what is in memory at an address, or was before a store.
func (t *Trace) IsFrom(v, addr Value) bool {
	for _, x := range v.Terms {
		if x.Symbol == 0 {
			continue
		}
		switch s := &t.Symbols[x.Symbol]; s.Kind {
		case Loaded:
			if s.Of == addr || t.IsFrom(s.Of, addr) {
				return true
			}
		case ZeroExtended, SignExtended, Partly:
			if t.IsFrom(s.Of, addr) {
				return true
			}
		}
	}
	return false
}

// Store writes to memory. What is known about memory stays only if it has the same address but
// for a constant and does not overlap.
func (t *Trace) Store(addr Value, bits uint8, v Value) {
	t.stores++
	t.written = append(t.written, place{addr, bits})
	if len(t.memory) > mostMemory {
		clear(t.memory)
	}
	for p := range t.memory {
		if p.addr.Terms != addr.Terms || p.overlaps(place{addr, bits}) {
			delete(t.memory, p)
		}
	}
	t.memory[place{addr, bits}] = t.Low(v, bits)
	if !t.inFrame(addr) {
		return
	}
	for a := range t.spills {
		d := int64(a.Const - addr.Const)
		if a.Terms == addr.Terms && d < int64(bits/8) && -d < 8 {
			delete(t.spills, a)
		}
	}
	if bits == 64 {
		t.spills[addr] = v
	}
}

// Forget is a write to memory that may be anywhere.
func (t *Trace) Forget() {
	t.stores++
	t.written, t.lost = t.written[:0], t.stores
	clear(t.memory)
}

// inFrame reports whether an address is a constant from what a register of the frame held where
// the path begins.
func (t *Trace) inFrame(addr Value) bool {
	s := t.Symbols[addr.Terms[0].Symbol]
	return s.Kind == InputRegister && addr.Terms[0].Scale == 1 && addr.Terms[1].Symbol == 0 && t.frame.Has(uint64(s.Which))
}

// Slot returns the address that a symbol was loaded from, if it is 64 bits of the frame. What
// compilers spill there is changed by nothing else.
func (t *Trace) Slot(id int32) (addr Value, ok bool) {
	s := t.Symbols[id]
	return s.Of, s.Kind == Loaded && s.Bits == 64 && t.inFrame(s.Of)
}

// Holder is where a value is at the beginning of a block: in a register, or in a slot of the frame
// at a distance from what a register holds.
type Holder struct {
	reg    int32
	inSlot bool
	off    uint64
}

// Holder returns where the value of a symbol was at the beginning of the path.
func (t *Trace) Holder(id int32) (h Holder, ok bool) {
	if addr, ok := t.Slot(id); ok {
		return Holder{t.Symbols[addr.Terms[0].Symbol].Which, true, addr.Const}, true
	}
	s := t.Symbols[id]
	return Holder{reg: s.Which}, s.Kind == InputRegister
}

// Held returns the value that a holder has after a path.
func (t *Trace) Held(h Holder) (Value, bool) {
	if !h.inSlot {
		return t.Regs[h.reg], true
	}
	addr, _ := sum(t.Regs[h.reg], Constant(h.off), 1)
	if v, ok := t.spills[addr]; ok {
		return v, true
	}
	return t.Symbol(Symbol{Kind: Loaded, Of: addr, Bits: 64}), t.inFrame(addr)
}
