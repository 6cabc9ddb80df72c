package coverage

import (
	"slices"
	"testing"
)

// TestAddresses: all are there once, in order, whatever order they came in.
func TestAddresses(t *testing.T) {
	of := make([]addresses, 2)
	for i, addr := range []uint64{7, 7, 1<<64 - 1, 0, 0x1000, 7} {
		of[i%2].add(addr)
	}
	if got, want := distinct(of), []uint64{0, 7, 0x1000, 1<<64 - 1}; !slices.Equal(got, want) {
		t.Errorf("%#x, want %#x", got, want)
	}
}
