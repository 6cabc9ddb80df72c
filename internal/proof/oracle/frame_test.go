package oracle

import (
	"encoding/hex"
	"testing"
)

// TestWithoutSigning checks that opcodes become NOPs, and operands of the same value do not.
func TestWithoutSigning(t *testing.T) {
	for in, want := range map[string]string{
		"":                   "",
		"412d0e10":           "41000e10",           // advance_loc 1; negate_ra_state; def_cfa_offset 16
		"0e2d2d":             "0e2d00",             // def_cfa_offset 45
		"9d2dad2d2d":         "9d2dad2d00",         // offset r29 45; offset r45 45
		"0f032d2d2d2d":       "0f032d2d2d00",       // def_cfa_expression of 3 bytes
		"022d032d2d042d2d2d": "022d032d2d042d2d2d", // advance_loc1, 2, and 4 that is cut short
		"3f2d":               "3f2d",               // an unknown opcode ends it
	} {
		b, err := hex.DecodeString(in)
		if err != nil {
			t.Fatal(err)
		}
		if got := hex.EncodeToString(withoutSigning(b)); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
		if hex.EncodeToString(b) != in {
			t.Errorf("%s was changed", in)
		}
	}
}
