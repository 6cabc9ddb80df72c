// Package symbolic follows what registers and memory hold on one path through code, without knowing the numbers: constants, multiples of
// what a register held where the path begins, what was loaded, and what comparisons say of these. Package insn says what each instruction
// does to it.
package symbolic

import (
	"math"
	mathbits "math/bits"
)

// Value is what a register holds on one path through the code: a constant plus multiples of
// symbols, modulo 2^64.
type Value struct {
	Const uint64
	Terms [2]Term // in order of their symbols; unused ones are zero
}

// Term is a multiple of a symbol.
type Term struct {
	Symbol int32 // index of a symbol; 0 is none
	Scale  uint64
}

// Constant returns a number as a value.
func Constant(c uint64) Value { return Value{Const: c} }

// IsConstant reports whether a value has no symbols.
func (v Value) IsConstant() bool { return v.Terms[0].Symbol == 0 }

// Single returns the symbol that a value is, or 0.
func (v Value) Single() int32 {
	if v.Const == 0 && v.Terms[0].Scale == 1 && v.Terms[1].Symbol == 0 {
		return v.Terms[0].Symbol
	}
	return 0
}

// shares reports whether two values have a symbol in common.
func (v Value) shares(b Value) bool {
	for _, x := range v.Terms {
		if x.Symbol != 0 && (x.Symbol == b.Terms[0].Symbol || x.Symbol == b.Terms[1].Symbol) {
			return true
		}
	}
	return false
}

// sum returns a + b*scale. ok is false if that has more than two terms.
func sum(a, b Value, scale uint64) (s Value, ok bool) {
	out := Value{Const: a.Const + b.Const*scale}
	var terms [4]Term
	n := 0
	add := func(x Term) {
		for i := range terms[:n] {
			if terms[i].Symbol == x.Symbol {
				terms[i].Scale += x.Scale
				return
			}
		}
		terms[n] = x
		n++
	}
	for _, x := range a.Terms {
		add(x)
	}
	for _, x := range b.Terms {
		add(Term{x.Symbol, x.Scale * scale})
	}
	k := 0
	for _, x := range terms[:n] {
		if x.Symbol == 0 || x.Scale == 0 {
			continue
		}
		if k == len(out.Terms) {
			return Value{}, false
		}
		out.Terms[k] = x
		k++
	}
	if k == 2 && out.Terms[0].Symbol > out.Terms[1].Symbol {
		out.Terms[0], out.Terms[1] = out.Terms[1], out.Terms[0]
	}
	return out, true
}

// Mask returns a number of which so many of the lowest bits are set.
func Mask(bits uint8) uint64 {
	if bits >= 64 {
		return math.MaxUint64
	}
	return 1<<bits - 1
}

// Signed returns the lower bits of a number, sign-extended.
func Signed(v uint64, bits uint8) uint64 {
	return uint64(int64(v<<(64-bits)) >> (64 - bits))
}

// LowZeros returns how many of a number's lowest bits are 0, whatever its symbols are, or 0 for a number without any.
func (v Value) LowZeros() uint8 {
	if v.IsConstant() {
		return 0
	}
	bits := v.Const
	for _, x := range v.Terms {
		bits |= x.Scale
	}
	return uint8(mathbits.TrailingZeros64(bits))
}
