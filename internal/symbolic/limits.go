package symbolic

import "math"

// Limits are the least and the greatest number that a symbol can be. Implied means that only
// an operation such as AND, or the width of a load, says so, and not a comparison.
type Limits struct {
	Lo, Hi  uint64
	Implied bool
}

// Count returns how many numbers that are; 0 for all 2^64.
func (l Limits) Count() uint64 { return l.Hi - l.Lo + 1 }

// limits returns what is known about a value.
func (t *Trace) limits(v Value) Limits {
	x := v.Terms[0]
	switch {
	case x.Symbol == 0:
		return Limits{Lo: v.Const, Hi: v.Const}
	case v.Terms[1].Symbol != 0:
		return Limits{Hi: math.MaxUint64}
	}
	l := t.SymbolLimits(x.Symbol)
	if x.Scale == 1 && v.Const == 0 {
		return l
	}
	if x.Scale == 0 || x.Scale > 1<<32 || l.Hi >= 1<<31 {
		return Limits{Hi: math.MaxUint64}
	}
	lo, hi := l.Lo*x.Scale+v.Const, l.Hi*x.Scale+v.Const
	if lo > hi {
		return Limits{Hi: math.MaxUint64} // it is less than 0 for some
	}
	return Limits{lo, hi, l.Implied}
}

// SymbolLimits returns what is known about a symbol.
func (t *Trace) SymbolLimits(id int32) Limits {
	s := &t.Symbols[id]
	l := Limits{Hi: math.MaxUint64, Implied: true}
	switch s.Kind {
	case Loaded:
		l = t.asSigned(Value{Terms: [2]Term{{id, 1}}}, s.Bits)
		if k, ok := t.before(s); ok && l.Implied && k.Hi <= l.Hi {
			l = k
		}
	case ZeroExtended:
		l = t.asSigned(s.Of, s.Bits)
		if of := t.limits(s.Of); of.Hi <= l.Hi {
			l = of
		}
	case SignExtended:
		// If the sign bit is clear, both extensions are the same.
		zero, ok := t.index[Symbol{Kind: ZeroExtended, Of: s.Of, Bits: s.Bits}]
		if of := t.limits(s.Of); of.Hi <= Mask(s.Bits-1) {
			l = of
		} else if ok {
			if z := t.SymbolLimits(zero); z.Hi <= Mask(s.Bits-1) {
				l = z
			}
		}
	}
	_, spilled := t.Slot(id)
	if l.Implied && s.Bits != 8 && (s.Kind == ZeroExtended || s.Kind == InputRegister || spilled) {
		l = t.narrow(id, l)
	}
	if k, ok := t.known[id]; ok {
		if k.Hi < l.Hi || k.Hi == l.Hi && !k.Implied {
			l.Hi, l.Implied = k.Hi, k.Implied
		}
		l.Lo = max(l.Lo, k.Lo)
	}
	return l
}

// before returns the limits that a comparison has set to what was loaded from the same memory, if there were only stores since that seemed to be elsewhere. Compilers compare a
// number in memory and load it again as an index, behind stores of which they know that they do not change it: they read nothing twice that may have changed.
func (t *Trace) before(s *Symbol) (Limits, bool) {
	if len(t.known) == 0 {
		return Limits{}, false
	}
	x := *s
	for x.Which--; x.Which >= t.lost; x.Which-- {
		w := t.written[x.Which-t.lost] // the store between
		if w.addr.Terms == s.Of.Terms && w.overlaps(place{s.Of, s.Bits}) {
			break
		}
		if id, ok := t.index[x]; ok {
			k, known := t.known[id]
			return k, known
		}
	}
	return Limits{}, false
}

// asSigned returns the limits that the lower bits of a value have by comparisons of their sign-extension: GCC compares an
// unsigned number of 32 bits in that form on machines that keep such numbers in it, and loads it again, zero-extended, as an
// index (loong64).
func (t *Trace) asSigned(of Value, bits uint8) Limits {
	if len(t.known) == 0 {
		return Limits{Hi: Mask(bits), Implied: true}
	}
	if id, ok := t.index[Symbol{Kind: SignExtended, Of: of, Bits: bits}]; ok && bits > 1 {
		if k, ok := t.known[id]; ok && k.Hi <= Mask(bits-1) {
			return k
		}
	}
	return Limits{Hi: Mask(bits), Implied: true}
}

// narrow returns the limits of a number, perhaps of one that was spilled, whose lower bits were compared. Compilers then know that
// the rest is zero: clang 14 compares %dil of an unsigned char that is passed, and uses %rdi.
func (t *Trace) narrow(id int32, l Limits) Limits {
	if len(t.known) == 0 {
		return l
	}
	s := t.Symbols[id]
	of := s.Of
	whole := s.Kind != ZeroExtended
	if whole {
		of = Value{Terms: [2]Term{{id, 1}}}
	}
	for _, bits := range [...]uint8{8, 16, 32} {
		part, ok := t.index[Symbol{Kind: ZeroExtended, Of: of, Bits: bits}]
		if ok && (whole || bits < s.Bits) {
			if k, ok := t.known[part]; ok && !k.Implied && k.Hi < l.Hi {
				return k
			}
		}
	}
	return l
}

// limit says that a value is between two numbers.
func (t *Trace) limit(v Value, lo, hi uint64) {
	x := v.Terms[0]
	if x.Scale != 1 || v.Terms[1].Symbol != 0 {
		return
	}
	// n + 5 <= 9 is n <= 4, or n >= 2^64 - 5; such ranges that go around are left out.
	if lo, hi = lo-v.Const, hi-v.Const; lo > hi {
		return
	}
	k, ok := t.known[x.Symbol]
	if !ok {
		k = Limits{Hi: math.MaxUint64, Implied: true}
	}
	if hi <= k.Hi && hi < math.MaxUint64 {
		k.Hi, k.Implied = hi, false
	}
	k.Lo = max(k.Lo, lo)
	t.known[x.Symbol] = k
}
