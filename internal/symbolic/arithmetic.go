package symbolic

import (
	"math"
	mathbits "math/bits"
)

// Plus returns a + b*scale, or an unknown number if that has more than two terms.
func (t *Trace) Plus(a, b Value, scale uint64) Value {
	out, ok := sum(a, b, scale)
	if !ok {
		return t.Unknown()
	}
	return out
}

// modulo drops extensions that do not matter to the lower bits of a value.
func (t *Trace) modulo(v Value, bits uint8) Value {
	for range 4 { // more are not nested
		again := false
		for _, x := range v.Terms {
			s := t.Symbols[x.Symbol]
			if s.Kind != ZeroExtended && s.Kind != SignExtended && s.Kind != Partly || s.Bits < bits {
				continue
			}
			rest, _ := sum(v, Value{Terms: [2]Term{x}}, math.MaxUint64)
			if inner, ok := sum(rest, s.Of, x.Scale); ok {
				v, again = inner, true
				break
			}
		}
		if !again {
			break
		}
	}
	v.Const = Signed(v.Const, bits)
	return v
}

// Low returns the lower bits of a value, zero-extended.
func (t *Trace) Low(v Value, bits uint8) Value {
	if bits >= 64 {
		return v
	}
	if v.IsConstant() {
		return Constant(v.Const & Mask(bits))
	}
	if l := t.limits(v); l.Hi <= Mask(bits) {
		return v
	}
	return t.Symbol(Symbol{Kind: ZeroExtended, Of: t.modulo(v, bits), Bits: bits})
}

// LowSigned returns the lower bits of a value, sign-extended.
func (t *Trace) LowSigned(v Value, bits uint8) Value {
	if bits >= 64 {
		return v
	}
	if v.IsConstant() {
		return Constant(Signed(v.Const, bits))
	}
	if l := t.limits(v); l.Hi <= Mask(bits-1) {
		return v
	}
	return t.Symbol(Symbol{Kind: SignExtended, Of: t.modulo(v, bits), Bits: bits})
}

// Partly returns a number of which only the lower bits are known to be those of v.
func (t *Trace) Partly(v Value, bits uint8) Value {
	if bits >= 64 {
		return v
	}
	return t.Symbol(Symbol{Kind: Partly, Of: t.modulo(v, bits), Bits: bits, Which: int32(len(t.Symbols))})
}

// ShiftRight returns the lower bits of v, shifted.
func (t *Trace) ShiftRight(v Value, by, bits uint8) Value {
	v = t.Low(v, bits)
	if v.IsConstant() {
		return Constant(v.Const >> by)
	}
	// What was shifted to the left before loses its upper bits: so compilers extend an index.
	if x := v.Terms[0]; bits == 64 && v.Const == 0 && v.Terms[1].Symbol == 0 && x.Scale != 0 && x.Scale&(x.Scale-1) == 0 {
		if left := uint8(mathbits.TrailingZeros64(x.Scale)); left >= by && left > 0 {
			inner := t.Low(Value{Terms: [2]Term{{x.Symbol, 1}}}, 64-left)
			return t.Plus(Constant(0), inner, 1<<(left-by))
		}
	}
	return t.UpTo(Mask(bits - by))
}

// Xor returns what a number turns another one into. Of a number of so many bits it makes every other one of them, as compilers
// count the cases of a switch.
func (t *Trace) Xor(a, b Value) Value {
	if a.IsConstant() {
		a, b = b, a
	}
	l := t.limits(a)
	switch {
	case a.IsConstant():
		return Constant(a.Const ^ b.Const)
	case !b.IsConstant() || l.Lo != 0 || l.Hi&(l.Hi+1) != 0 || b.Const > l.Hi:
		return t.Unknown()
	}
	return t.UpTo(l.Hi)
}

// And returns what a mask leaves of a value: its lower bits, or none that it has.
func (t *Trace) And(a, b Value) Value {
	if a.IsConstant() {
		a, b = b, a
	}
	if !b.IsConstant() || b.Const == 0 || b.Const&(b.Const+1) != 0 {
		return t.Unknown() // which of the numbers up to the mask have an entry is not known
	}
	return t.Low(a, uint8(mathbits.OnesCount64(b.Const)))
}
