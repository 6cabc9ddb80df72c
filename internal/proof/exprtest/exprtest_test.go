package exprtest_test

import (
	"math"
	"math/big"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/eval"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/proof/exprtest"
	"github.com/bpfprologue/bpfprologue/loc"
)

// Operands at which sign, width and overflow show.
var operands = []uint64{
	0, 1, 2, 7, 63, 64, 65, 1 << 31, 1<<31 - 1, 1<<32 - 1, 1 << 32, math.MaxInt64, 1 << 63,
	1<<64 - 1, 1<<64 - 7, 1<<64 - 1<<31, 1<<64 - 1<<31 - 1, 0x1234567890abcdef,
}

// exact computes an operation with integers of unlimited size. It returns nil for a
// division by zero.
func exact(op loc.Op, a, b uint64) *big.Int {
	ua, ub := new(big.Int).SetUint64(a), new(big.Int).SetUint64(b)
	sa, sb := big.NewInt(int64(a)), big.NewInt(int64(b))
	shift := uint(min(b, 64))
	truth := func(v bool) *big.Int {
		if v {
			return big.NewInt(1)
		}
		return new(big.Int)
	}
	z := new(big.Int)
	switch op {
	case ops.Div, ops.UDiv, ops.Mod, ops.UMod:
		if b == 0 {
			return nil
		}
	}
	switch op {
	case ops.Add:
		return z.Add(ua, ub)
	case ops.Sub:
		return z.Sub(ua, ub)
	case ops.Mul:
		return z.Mul(ua, ub)
	case ops.Div:
		return z.Quo(sa, sb)
	case ops.UDiv:
		return z.Quo(ua, ub)
	case ops.Mod:
		return z.Rem(sa, sb)
	case ops.UMod:
		return z.Rem(ua, ub)
	case ops.And:
		return z.And(ua, ub)
	case ops.Or:
		return z.Or(ua, ub)
	case ops.Xor:
		return z.Xor(ua, ub)
	case ops.Shl:
		return z.Lsh(ua, shift)
	case ops.Shr:
		return z.Rsh(ua, shift)
	case ops.Shra:
		return z.Rsh(sa, shift)
	case ops.Eq:
		return truth(ua.Cmp(ub) == 0)
	case ops.Ne:
		return truth(ua.Cmp(ub) != 0)
	case ops.Lt:
		return truth(sa.Cmp(sb) < 0)
	case ops.Le:
		return truth(sa.Cmp(sb) <= 0)
	case ops.Gt:
		return truth(sa.Cmp(sb) > 0)
	case ops.Ge:
		return truth(sa.Cmp(sb) >= 0)
	case ops.ULt:
		return truth(ua.Cmp(ub) < 0)
	case ops.ULe:
		return truth(ua.Cmp(ub) <= 0)
	case ops.UGt:
		return truth(ua.Cmp(ub) > 0)
	case ops.UGe:
		return truth(ua.Cmp(ub) >= 0)
	}
	panic(op)
}

// TestOperate compares Operate, and the folding of constants, with exact arithmetic
// modulo 2^64.
func TestOperate(t *testing.T) {
	modulus := new(big.Int).Lsh(big.NewInt(1), 64)
	for op := ops.Add; op < ops.Select; op++ {
		for _, a := range operands {
			for _, b := range operands {
				var want uint64
				e := exact(op, a, b)
				if e != nil {
					want = e.Mod(e, modulus).Uint64()
				}
				if v, ok := exprtest.Operate(op, a, b); v != want || ok != (e != nil) {
					t.Errorf("operation %d: Operate(%#x, %#x) = %#x, %v, want %#x", op, a, b, v, ok, want)
				}
				if v, ok := eval.Fold(op, a, b); v != want || ok != (e != nil) {
					t.Errorf("operation %d: Fold(%#x, %#x) = %#x, %v, want %#x", op, a, b, v, ok, want)
				}
			}
		}
	}
}

func TestExtend(t *testing.T) {
	for _, v := range operands {
		for _, tt := range []struct {
			size          int
			zeros, signed uint64
		}{
			{1, uint64(uint8(v)), uint64(int8(v))},
			{2, uint64(uint16(v)), uint64(int16(v))},
			{4, uint64(uint32(v)), uint64(int32(v))},
			{8, v, v},
		} {
			if got := exprtest.Extend(v, tt.size, false); got != tt.zeros {
				t.Errorf("Extend(%#x, %d, false) = %#x, want %#x", v, tt.size, got, tt.zeros)
			}
			if got := exprtest.Extend(v, tt.size, true); got != tt.signed {
				t.Errorf("Extend(%#x, %d, true) = %#x, want %#x", v, tt.size, got, tt.signed)
			}
		}
	}
}
