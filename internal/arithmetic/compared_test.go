package arithmetic

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/eval"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/types"
)

// TestCompared: "(_Bool)(c % 3)", with a byte c that is in a register with other bits above.
func TestCompared(t *testing.T) {
	num := func(n uint64) *loc.Expr { return &loc.Expr{Op: ops.Const, K: n} }
	rest := &loc.Expr{Op: ops.And, A: &loc.Expr{Op: ops.UMod, A: &loc.Expr{Op: ops.Reg}, B: num(3)}, B: num(0xff)}
	for bits, want := range map[uint64]Width{8: AsWritten, 32: Unclear} {
		n := Note{
			// breg0 0; lit3; mod; const1u 0xff; and; lit0; ne; stack_value
			Expr: []byte{0x70, 0, 0x33, 0x1d, 8, 0xff, 0x1a, 0x30, 0x2e, 0x9f}, Encoding: eval.Encoding{AddressSize: 8, OffsetSize: 4},
			WordSize: 8, Registers: known{bits: bits},
		}
		l := loc.Location{Kind: loc.KindValue, Expr: &loc.Expr{Op: ops.Ne, A: rest, B: num(0)}}
		if got := n.Narrow(&l, &types.Type{Kind: types.Int, Size: 1}); got != want {
			t.Errorf("a register with %d bits: %d, want %d", bits, got, want)
		}
	}
}
