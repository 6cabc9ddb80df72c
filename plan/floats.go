package plan

import (
	"encoding/binary"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// float decodes a floating-point number: to a float64 if that holds it, else to the
// shortest decimal number that stands for no other value of the type. ok is false for a
// format that is not known.
func float(name string, b []byte) (x any, ok bool) {
	switch len(b) {
	case 2:
		u := uint16(number(b))
		if strings.Contains(name, "bf16") || strings.Contains(name, "bfloat16") {
			return plain(float64(math.Float32frombits(uint32(u)<<16)), 32), true
		}
		return plain(half(u), 64), true
	case 4:
		return plain(float64(math.Float32frombits(uint32(number(b)))), 32), true
	case 8:
		return plain(math.Float64frombits(number(b)), 64), true
	case 12, 16:
		if strings.Contains(name, "128") || strings.Contains(name, "quad") {
			return quad(b)
		}
		return extendedFloat(b)
	}
	return nil, false
}

// plain returns a number, or the text of what JSON cannot express. For a float32 it is the
// float64 with the same decimal digits.
func plain(f float64, bits int) any {
	text := strconv.FormatFloat(f, 'g', -1, bits)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return literal(text)
	}
	if same, err := strconv.ParseFloat(text, 64); err == nil {
		return same
	}
	return f
}

// half returns a number of IEEE 754's binary16.
func half(u uint16) float64 {
	sign, exp, frac := 1.0, int(u>>10&0x1f), float64(u&0x3ff)
	if u>>15 != 0 {
		sign = -1
	}
	switch exp {
	case 0:
		return sign * math.Ldexp(frac, -24)
	case 0x1f:
		if frac != 0 {
			return math.NaN()
		}
		return math.Inf(int(sign))
	}
	return sign * math.Ldexp(1024+frac, exp-25)
}

// extendedFloat decodes the 80 bits of x87's long double, in 12 or 16 bytes.
func extendedFloat(b []byte) (any, bool) {
	if !littleEndian() {
		return nil, false
	}
	mantissa, top := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint16(b[8:])
	return wide(new(big.Int).SetUint64(mantissa), 64, top, mantissa<<1 != 0), true
}

// quad decodes IEEE 754's binary128.
func quad(b []byte) (any, bool) {
	if !littleEndian() {
		return nil, false
	}
	top := binary.LittleEndian.Uint16(b[14:])
	mantissa := new(big.Int).SetUint64(binary.LittleEndian.Uint64(b[8:]) & (1<<48 - 1))
	mantissa.Lsh(mantissa, 64).Or(mantissa, new(big.Int).SetUint64(binary.LittleEndian.Uint64(b)))
	fraction := mantissa.Sign() != 0
	if top&0x7fff != 0 {
		mantissa.SetBit(mantissa, 112, 1)
	}
	return wide(mantissa, 113, top, fraction), true
}

// wide returns a number with a sign and an exponent of 15 bits.
func wide(mantissa *big.Int, precision uint, top uint16, fraction bool) literal {
	sign := ""
	if top>>15 != 0 {
		sign = "-"
	}
	exp := int(top & 0x7fff)
	if exp == 0x7fff {
		if fraction {
			return "NaN"
		}
		return literal(map[string]string{"": "+Inf", "-": "-Inf"}[sign])
	}
	f := new(big.Float).SetPrec(max(1, min(precision, uint(mantissa.BitLen())))).SetInt(mantissa)
	f.SetMantExp(f, max(exp, 1)-16383-int(precision)+1)
	return literal(sign + f.Text('g', -1))
}

// complexNumber decodes a complex number: its real and its imaginary part.
func complexNumber(name string, b []byte) (literal, bool) {
	re, ok := float(name, b[:len(b)/2])
	im, ok2 := float(name, b[len(b)/2:])
	if !ok || !ok2 {
		return "", false
	}
	imaginary := show(im)
	if imaginary[0] != '-' && imaginary[0] != '+' {
		imaginary = "+" + imaginary
	}
	return literal(show(re) + imaginary + "i"), true
}

// wideInteger decodes an integer of more than 8 bytes.
func wideInteger(b []byte, signed bool) literal {
	n := new(big.Int)
	for i := range b {
		k := len(b) - 1 - i // from the most significant byte on
		if !littleEndian() {
			k = i
		}
		n.Lsh(n, 8).Or(n, big.NewInt(int64(b[k])))
	}
	if signed && n.Bit(8*len(b)-1) == 1 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	return literal(n.String())
}
