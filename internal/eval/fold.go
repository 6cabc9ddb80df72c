package eval

import (
	"github.com/bpfprologue/bpfprologue/loc"
)

// Comparison reports whether an operation compares: its value is 1 or 0.
func Comparison(op loc.Op) bool { return op >= loc.OpEq && op <= loc.OpUGe }

// inverse are the comparisons that hold where others do not.
var inverse = [...]loc.Op{
	loc.OpEq: loc.OpNe, loc.OpNe: loc.OpEq, loc.OpLt: loc.OpGe, loc.OpGe: loc.OpLt, loc.OpLe: loc.OpGt, loc.OpGt: loc.OpLe,
	loc.OpULt: loc.OpUGe, loc.OpUGe: loc.OpULt, loc.OpULe: loc.OpUGt, loc.OpUGt: loc.OpULe,
}

// Inverse returns the comparison that holds where another one does not.
func Inverse(op loc.Op) loc.Op { return inverse[op] }

// Fold computes a binary operation on constants. ok is false for other operations, and
// for a division by zero, which must stay in the expression because it is a fault.
func Fold(op loc.Op, x, y uint64) (v uint64, ok bool) {
	truth := func(b bool) (uint64, bool) {
		if b {
			return 1, true
		}
		return 0, true
	}
	sx, sy := int64(x), int64(y)
	switch op {
	case loc.OpAdd:
		return x + y, true
	case loc.OpSub:
		return x - y, true
	case loc.OpMul:
		return x * y, true
	case loc.OpDiv:
		if y == 0 {
			return 0, false
		}
		return uint64(sx / sy), true
	case loc.OpUDiv:
		if y == 0 {
			return 0, false
		}
		return x / y, true
	case loc.OpMod:
		if y == 0 {
			return 0, false
		}
		return uint64(sx % sy), true
	case loc.OpUMod:
		if y == 0 {
			return 0, false
		}
		return x % y, true
	case loc.OpAnd:
		return x & y, true
	case loc.OpOr:
		return x | y, true
	case loc.OpXor:
		return x ^ y, true
	case loc.OpShl:
		return x << y, true
	case loc.OpShr:
		return x >> y, true
	case loc.OpShra:
		return uint64(sx >> y), true
	case loc.OpEq:
		return truth(x == y)
	case loc.OpNe:
		return truth(x != y)
	case loc.OpLt:
		return truth(sx < sy)
	case loc.OpLe:
		return truth(sx <= sy)
	case loc.OpGt:
		return truth(sx > sy)
	case loc.OpGe:
		return truth(sx >= sy)
	case loc.OpULt:
		return truth(x < y)
	case loc.OpULe:
		return truth(x <= y)
	case loc.OpUGt:
		return truth(x > y)
	case loc.OpUGe:
		return truth(x >= y)
	}
	return 0, false
}
