package guest_test

import (
	"encoding/hex"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/proof/guest"
	"github.com/bpfprologue/bpfprologue/internal/proof/harm"
)

// TestEndsEmulator: of all encodings those that were seen to end the emulator are left out, and no neighbours.
func TestEndsEmulator(t *testing.T) {
	for code, want := range map[string]bool{
		"c4e3fd0bd608":   true,                      // vroundsd with L
		"c4e3f90bd608":   false,                     // without
		"c4e37d0ac608":   true,                      // vroundss
		"c4e37d08c608":   false,                     // vroundps
		"c4e1fcc4c608":   true,                      // vpinsrw without 66
		"c5b4c4444d0808": true, "c5f9c4c608": false, // and with it
		"f00fa3f6": true, "f00fabf6": true, "f00fbbfe": true, "f00fbafe08": true, // locked, of a register
		"0f380c23": true, "3e0f380c644d08": true, "660f380c23": false, "c4e2790cc6": false, "c4e2fc0ce6": true, // vpermilps
		"f00fab33": false, "0fabf6": false, "f00fb1f6": false, "f00fbac608": false,
	} {
		b, err := hex.DecodeString(code)
		if err != nil {
			t.Fatal(err)
		}
		if got := guest.EndsEmulator(b); got != want {
			t.Errorf("%s: %v, want %v", code, got, want)
		}
	}
	n := 0
	for _, code := range harm.Encodings(0, 1) {
		if guest.EndsEmulator(code) {
			n++
		}
	}
	if n != 756 {
		t.Errorf("%d encodings end the emulator, want 756", n)
	}
}
