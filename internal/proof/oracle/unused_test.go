package oracle_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/proof/oracle"
)

// TestUnused: memory that cannot be read does not matter to an expression that leaves it aside:
// compilers compute both ways of a choice first.
func TestUnused(t *testing.T) {
	const good, bad, there = 0x1000, 0x2000, 77
	// The values of two registers' memory; that of register 2 decides: bra +1, swap, drop.
	choose := []byte{0x72, 0, 0x28, 1, 0, 0x16, 0x13, 0x9f}
	first := append([]byte{0x70, 0, 0x06, 0x71, 0, 0x06}, choose...)
	// deref_size 4, plus_uconst 1, neg, lit8, mul: all of what could not be read.
	second := append([]byte{0x71, 0, 0x94, 4, 0x23, 1, 0x1f, 0x38, 0x1e, 0x70, 0, 0x06}, choose...)
	for _, tt := range []struct {
		name string
		expr []byte
		cond uint64
		ok   bool
	}{
		{"the first", first, 1, true},
		{"the second", first, 0, false},
		{"arithmetic, the first", second, 1, false},
		{"arithmetic, the second", second, 0, true},
		{"a division by zero", []byte{0x31, 0x30, 0x1b, 0x70, 0, 0x06, 0x16, 0x13, 0x9f}, 0, true},
		{"a comparison", []byte{0x71, 0, 0x06, 0x30, 0x29, 0x70, 0, 0x06, 0x16, 0x13, 0x9f}, 0, true},
		{"memory at what could not be read", []byte{0x71, 0, 0x06, 0x06}, 0, false},
		{"a branch on what could not be read", []byte{0x70, 0, 0x06, 0x71, 0, 0x06, 0x28, 0, 0, 0x9f}, 0, false},
	} {
		got, ok, err := oracle.Expect(oracle.Input{
			Expr: tt.expr, Size: 8,
			Reg: func(n uint64) (uint64, bool) { return []uint64{good, bad, tt.cond}[n], true },
			Mem: func(addr uint64, p []byte) bool { p[0] = there; return addr == good },
		})
		if ok != tt.ok || ok && got != there || err != nil {
			t.Errorf("%s: %d, %v, %v, want %v", tt.name, got, ok, err, tt.ok)
		}
	}
}
