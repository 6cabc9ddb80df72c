package exprtest_test

import (
	"math"
	"math/big"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/eval"
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
	case loc.OpDiv, loc.OpUDiv, loc.OpMod, loc.OpUMod:
		if b == 0 {
			return nil
		}
	}
	switch op {
	case loc.OpAdd:
		return z.Add(ua, ub)
	case loc.OpSub:
		return z.Sub(ua, ub)
	case loc.OpMul:
		return z.Mul(ua, ub)
	case loc.OpDiv:
		return z.Quo(sa, sb)
	case loc.OpUDiv:
		return z.Quo(ua, ub)
	case loc.OpMod:
		return z.Rem(sa, sb)
	case loc.OpUMod:
		return z.Rem(ua, ub)
	case loc.OpAnd:
		return z.And(ua, ub)
	case loc.OpOr:
		return z.Or(ua, ub)
	case loc.OpXor:
		return z.Xor(ua, ub)
	case loc.OpShl:
		return z.Lsh(ua, shift)
	case loc.OpShr:
		return z.Rsh(ua, shift)
	case loc.OpShra:
		return z.Rsh(sa, shift)
	case loc.OpEq:
		return truth(ua.Cmp(ub) == 0)
	case loc.OpNe:
		return truth(ua.Cmp(ub) != 0)
	case loc.OpLt:
		return truth(sa.Cmp(sb) < 0)
	case loc.OpLe:
		return truth(sa.Cmp(sb) <= 0)
	case loc.OpGt:
		return truth(sa.Cmp(sb) > 0)
	case loc.OpGe:
		return truth(sa.Cmp(sb) >= 0)
	case loc.OpULt:
		return truth(ua.Cmp(ub) < 0)
	case loc.OpULe:
		return truth(ua.Cmp(ub) <= 0)
	case loc.OpUGt:
		return truth(ua.Cmp(ub) > 0)
	case loc.OpUGe:
		return truth(ua.Cmp(ub) >= 0)
	}
	panic(op)
}

// TestOperate compares Operate, and the folding of constants, with exact arithmetic
// modulo 2^64.
func TestOperate(t *testing.T) {
	modulus := new(big.Int).Lsh(big.NewInt(1), 64)
	for op := loc.OpAdd; op < loc.OpSelect; op++ {
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
