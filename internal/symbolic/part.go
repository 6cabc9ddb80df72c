package symbolic

// Part is what a number is of another one, or of memory: so many lower bits, of whole bytes.
type Part struct {
	Bits uint8
	// Loaded is set if that is all that was loaded, from At.
	Loaded bool
	At     Value
	// Whole is set if an instruction on the path has read or written more bits there, or has loaded more of which it has cut these.
	Whole bool
}

// Part returns of which part of another number, or of memory, a number is made. ok is false if it is made otherwise.
func (s *State) Part(a Value) (p Part, ok bool) {
	k := &s.t.Symbols[a.Single()]
	switch k.Kind {
	case Loaded:
		p = Part{Bits: k.Bits, Loaded: true, At: k.Of}
	case ZeroExtended, SignExtended:
		p.Bits = k.Bits
		if of := &s.t.Symbols[k.Of.Single()]; of.Kind == Loaded {
			p.Bits, p.Loaded, p.At, p.Whole = min(of.Bits, k.Bits), of.Bits <= k.Bits, of.Of, of.Bits > k.Bits
		}
	default:
		return p, false
	}
	if p.Bits >= s.t.bits || p.Bits%8 != 0 {
		return p, false
	}
	p.Whole = p.Whole || p.Loaded && s.t.accesses(p.At, p.Bits)
	return p, true
}

// LoadedFrom returns where in memory a number was, or one of which it is a part. ok is false if it was in none.
func (s *State) LoadedFrom(a Value) (at Value, ok bool) {
	for {
		k := &s.t.Symbols[a.Single()]
		switch k.Kind {
		case Loaded:
			return k.Of, true
		case ZeroExtended, SignExtended, Partly:
			a = k.Of
		default:
			return at, false
		}
	}
}

// Alike reports whether two numbers are equal if stores in between have not changed what they were loaded from.
func (s *State) Alike(a, b Value) bool {
	if a.Const != b.Const {
		return false
	}
	for i, x := range a.Terms {
		y := b.Terms[i]
		if x == y {
			continue
		}
		m, n := &s.t.Symbols[x.Symbol], &s.t.Symbols[y.Symbol]
		extended := m.Kind == ZeroExtended || m.Kind == SignExtended
		if x.Scale != y.Scale || m.Kind != n.Kind || m.Bits != n.Bits || m.Kind != Loaded && !extended || !s.Alike(m.Of, n.Of) {
			return false
		}
	}
	return true
}

// accesses reports whether more than so many bits were read or written at an address.
func (t *Trace) accesses(at Value, bits uint8) bool {
	for i := range t.Symbols {
		if k := &t.Symbols[i]; k.Kind == Loaded && k.Of == at && k.Bits > bits {
			return true
		}
	}
	for _, w := range t.written {
		if w.addr == at && w.bits > bits {
			return true
		}
	}
	return false
}

// LoadsBehind calls f for what was loaded from behind an address, by the distance, until it returns true.
func (s *State) LoadsBehind(at Value, f func(off uint64, bits uint8) bool) bool {
	for i := range s.t.Symbols {
		k := &s.t.Symbols[i]
		of, is := k.Of, at
		of.Const, is.Const = 0, 0
		if off := k.Of.Const - at.Const; k.Kind == Loaded && of == is && int64(off) > 0 && f(off, k.Bits) {
			return true
		}
	}
	return false
}

// IsPart returns how many lower bits of a number an instruction has set, if the others are those of what was in the register before.
func (s *State) IsPart(a Value) (bits uint8, ok bool) {
	k := &s.t.Symbols[a.Single()]
	return k.Bits, k.Kind == Partly
}

// Symbol returns what a symbol is.
func (s *State) Symbol(id int32) Symbol { return s.t.Symbols[id] }
