package plan

import (
	"encoding/hex"
	"testing"
)

// TestFloats: numbers as GCC writes them to memory.
func TestFloats(t *testing.T) {
	for _, c := range []struct{ name, bytes, want string }{
		{"float", "0000c03f", "1.5"}, {"float", "cdcccc3d", "0.1"}, {"float", "0000807f", "+Inf"}, {"float", "0000c07f", "NaN"}, {"float", "01000000", "1e-45"},
		{"double", "00000000000002c0", "-2.25"}, {"double", "9a9999999999b93f", "0.1"}, {"double", "000000000000f0ff", "-Inf"},
		{"_Float16", "003e", "1.5"}, {"_Float16", "0100", "5.960464477539063e-08"}, {"_Float16", "00fc", "-Inf"}, {"_Float16", "017c", "NaN"}, {"__bf16", "c03f", "1.5"},
		{"long double", "66666666666666c60040000000000000", "3.1"}, {"long double", "00000000000000c0ffbf000000000000", "-1.5"},
		{"long double", "0000000000000080ff7f000000000000", "+Inf"}, {"long double", "00000000000000c0ff7f000000000000", "NaN"}, {"long double", "00000000000000000080000000000000", "-0"},
		{"_Float128", "9a99999999999999999999999999fb3f", "0.1"}, {"_Float128", "0000000000000000000000000000ff7f", "+Inf"},
		{"_Float128", "01000000000000000000000000000000", "6e-4966"},
		{"decimal", "000000", "?"},
	} {
		b, err := hex.DecodeString(c.bytes)
		if err != nil {
			t.Fatal(err)
		}
		got := "?"
		if x, ok := float(c.name, b); ok {
			got = show(x)
		}
		if got != c.want {
			t.Errorf("%s %s: %s, want %s", c.name, c.bytes, got, c.want)
		}
	}
	for _, c := range []struct {
		bytes  string
		signed bool
		want   string
	}{
		{"fbffffffffffffffffffffffffffffff", true, "-5"}, {"fbffffffffffffffffffffffffffffff", false, "340282366920938463463374607431768211451"},
		{"00000000000000000100000000000000", true, "18446744073709551616"},
	} {
		b, _ := hex.DecodeString(c.bytes)
		if got := string(wideInteger(b, c.signed)); got != c.want {
			t.Errorf("%s: %s, want %s", c.bytes, got, c.want)
		}
	}
}
