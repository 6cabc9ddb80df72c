package eval

import (
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/loc"
)

// Comparison reports whether an operation compares: its value is 1 or 0.
func Comparison(op loc.Op) bool { return op >= ops.Eq && op <= ops.UGe }

// inverse are the comparisons that hold where others do not.
var inverse = [...]loc.Op{
	ops.Eq: ops.Ne, ops.Ne: ops.Eq, ops.Lt: ops.Ge, ops.Ge: ops.Lt, ops.Le: ops.Gt, ops.Gt: ops.Le,
	ops.ULt: ops.UGe, ops.UGe: ops.ULt, ops.ULe: ops.UGt, ops.UGt: ops.ULe,
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
	case ops.Add:
		return x + y, true
	case ops.Sub:
		return x - y, true
	case ops.Mul:
		return x * y, true
	case ops.Div:
		if y == 0 {
			return 0, false
		}
		return uint64(sx / sy), true
	case ops.UDiv:
		if y == 0 {
			return 0, false
		}
		return x / y, true
	case ops.Mod:
		if y == 0 {
			return 0, false
		}
		return uint64(sx % sy), true
	case ops.UMod:
		if y == 0 {
			return 0, false
		}
		return x % y, true
	case ops.And:
		return x & y, true
	case ops.Or:
		return x | y, true
	case ops.Xor:
		return x ^ y, true
	case ops.Shl:
		return x << y, true
	case ops.Shr:
		return x >> y, true
	case ops.Shra:
		return uint64(sx >> y), true
	case ops.Eq:
		return truth(x == y)
	case ops.Ne:
		return truth(x != y)
	case ops.Lt:
		return truth(sx < sy)
	case ops.Le:
		return truth(sx <= sy)
	case ops.Gt:
		return truth(sx > sy)
	case ops.Ge:
		return truth(sx >= sy)
	case ops.ULt:
		return truth(x < y)
	case ops.ULe:
		return truth(x <= y)
	case ops.UGt:
		return truth(x > y)
	case ops.UGe:
		return truth(x >= y)
	}
	return 0, false
}
