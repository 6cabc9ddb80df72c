package symbolic

import "math"

// Condition is what the flags say of the values that were compared last.
type Condition uint8

// The conditions. Below to Above are of unsigned numbers, Less to Greater of signed ones.
const (
	Always Condition = iota // or nothing that matters
	Below
	AtLeast
	AtMost
	Above
	Equal
	Different
	Less
	NotLess
	NotGreater
	Greater
)

// Opposite returns the condition that holds where c does not.
func (c Condition) Opposite() Condition {
	return [...]Condition{Always: Always, Below: AtLeast, AtLeast: Below, AtMost: Above, Above: AtMost, Equal: Different,
		Different: Equal, Less: NotLess, NotLess: Less, NotGreater: Greater, Greater: NotGreater}[c]
}

// swapped returns the condition of b and a that is c of a and b.
func (c Condition) swapped() Condition {
	return [...]Condition{Always: Always, Below: Above, AtLeast: AtMost, AtMost: AtLeast, Above: Below, Equal: Equal,
		Different: Different, Less: Greater, NotLess: NotGreater, NotGreater: NotLess, Greater: Less}[c]
}

// unsigned are the conditions of signed numbers, as conditions of numbers that are not negative.
var unsigned = map[Condition]Condition{Less: Below, NotLess: AtLeast, NotGreater: AtMost, Greater: Above}

// UnsignedOf returns the condition of unsigned numbers for one of signed numbers.
func (c Condition) UnsignedOf() Condition {
	if u, ok := unsigned[c]; ok {
		return u
	}
	return c
}

// Comparison is what the flags are from.
type Comparison struct {
	A, B  Value // that were compared
	Bits  uint8
	Valid bool
	// Unsigned is set if the comparison was one of unsigned numbers, on processors where it says so.
	Unsigned bool
}

// Decision is what makes a number 1, and not 0.
type Decision struct {
	Comparison
	Holds Condition
}

// Compared returns the comparison of the lower bits of two values.
func (t *Trace) Compared(a, b Value, bits uint8, unsigned bool) Comparison {
	return Comparison{A: t.Low(a, bits), B: t.Low(b, bits), Bits: bits, Valid: true, Unsigned: unsigned}
}

// Assume says that a condition of the last branch holds.
func (t *Trace) Assume(c Condition) {
	if !t.Branch.Valid {
		return
	}
	a, b := t.Branch.A, t.Branch.B
	if a.IsConstant() {
		a, b, c = b, a, c.swapped()
	}
	if a.IsConstant() || !b.IsConstant() {
		return
	}
	n := b.Const
	if u, ok := unsigned[c]; ok {
		if half := Mask(t.Branch.Bits - 1); t.limits(a).Hi > half || n > half {
			return
		}
		c = u
	}
	switch {
	case c == Below && n > 0:
		t.limit(a, 0, n-1)
	case c == AtMost:
		t.limit(a, 0, n)
	case c == Equal:
		t.limit(a, n, n)
	case c == AtLeast:
		t.limit(a, n, math.MaxUint64)
	case c == Above && n < math.MaxUint64:
		t.limit(a, n+1, math.MaxUint64)
	}
}
