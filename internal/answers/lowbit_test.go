package answers_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/answers"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/types"
)

// TestLowBit: a truth value can be an element of an array of numbers.
func TestLowBit(t *testing.T) {
	index := &loc.Expr{Op: ops.Shl, A: &loc.Expr{Op: ops.Reg, K: 2}, B: &loc.Expr{Op: ops.Const, K: 2}}
	l := loc.Location{Kind: loc.KindMemory, Expr: &loc.Expr{Op: ops.Add, A: index, B: &loc.Expr{Op: ops.Reg, K: 10}}}
	for _, tt := range []struct {
		kind types.Kind
		want bool
	}{{types.Bool, true}, {types.Int, false}} {
		if got, err := answers.LowBit(&l, &types.Type{Kind: tt.kind, Size: 1}); err != nil || got != tt.want {
			t.Errorf("%v: %v, %v", tt.kind, got, err)
		}
	}
}
