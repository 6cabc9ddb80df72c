package loc

// Fold computes a binary operation on constants. ok is false for a division by zero,
// which stays in the expression as the fault that it is, and for other operations.
func Fold(op Op, x, y uint64) (v uint64, ok bool) {
	truth := func(b bool) (uint64, bool) {
		if b {
			return 1, true
		}
		return 0, true
	}
	sx, sy := int64(x), int64(y)
	switch op {
	case OpAdd:
		return x + y, true
	case OpSub:
		return x - y, true
	case OpMul:
		return x * y, true
	case OpDiv:
		if y == 0 {
			return 0, false
		}
		return uint64(sx / sy), true
	case OpUDiv:
		if y == 0 {
			return 0, false
		}
		return x / y, true
	case OpMod:
		if y == 0 {
			return 0, false
		}
		return uint64(sx % sy), true
	case OpUMod:
		if y == 0 {
			return 0, false
		}
		return x % y, true
	case OpAnd:
		return x & y, true
	case OpOr:
		return x | y, true
	case OpXor:
		return x ^ y, true
	case OpShl:
		return x << y, true
	case OpShr:
		return x >> y, true
	case OpShra:
		return uint64(sx >> y), true
	case OpEq:
		return truth(x == y)
	case OpNe:
		return truth(x != y)
	case OpLt:
		return truth(sx < sy)
	case OpLe:
		return truth(sx <= sy)
	case OpGt:
		return truth(sx > sy)
	case OpGe:
		return truth(sx >= sy)
	case OpULt:
		return truth(x < y)
	case OpULe:
		return truth(x <= y)
	case OpUGt:
		return truth(x > y)
	case OpUGe:
		return truth(x >= y)
	}
	return 0, false
}
