package compute

import (
	"math"
	"math/big"
	"strconv"

	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/syntax"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/types"
)

// Comparisons of floating point numbers. Programs in the kernel cannot compute with them, but their bits have an order: without the sign
// bit those of a larger number are a larger number (IEEE 754-2019, 3.4). So they are compared as integers of which those with the sign
// bit are negative; 0 and -0 are the same one then, and infinities the largest. What is beyond them is no number, and compares as in C.

// floating is an operand of a comparison of floating point numbers.
type floating struct {
	constant bool
	value    float64
	size     int       // bytes of the type
	bits     *loc.Expr // nil if there is a reason
	reason   loc.Reason
}

// constantReal returns the number that an operand is, if it is one.
func (c *computation) constantReal(e *syntax.Expr) (v float64, is bool, err error) {
	switch {
	case len(e.Path) > 0:
	case e.Kind == syntax.KindWide:
		v, _ := new(big.Float).SetString(e.Name) // the parser has read it
		f, _ := v.Float64()
		return f, true, nil
	case e.Kind == syntax.KindFloat:
		v, err := strconv.ParseFloat(e.Name, 64)
		if err != nil {
			return 0, false, wrongAt(e, "%s is no number of type double", e.Name)
		}
		return v, true, nil
	case e.Kind == syntax.KindNumber:
		return float64(e.Number), true, nil
	case e.Kind == syntax.KindUnary && e.Name == "-":
		v, is, err := c.constantReal(e.A)
		return -v, is, err
	case e.Kind == syntax.KindVariable:
		k, found, err := inside.Enumerator(c.s, e.Name)
		if !found && err == nil {
			k, found = c.word(e)
		}
		return float64(k), found, err
	}
	return 0, false, nil
}

// realOf returns an operand that is a variable with a floating point number. ok is false for other variables.
func (c *computation) realOf(e *syntax.Expr) (r floating, ok bool, err error) {
	switch e.Kind {
	case syntax.KindBinary, syntax.KindSizeof, syntax.KindTask, syntax.KindString, syntax.KindCast:
		return r, false, nil
	case syntax.KindUnary:
		if e.Name != "*" {
			return r, false, nil
		}
	}
	v, err := c.resolve(e)
	if err != nil {
		return r, false, err
	}
	t, err := v.Type.Resolve()
	if err != nil || t.Kind != types.Float {
		return r, false, err
	}
	if t.Size != 4 && t.Size != 8 {
		return r, false, wrongAt(e, "%v has %d bytes: floating point numbers of 4 and 8 bytes can be compared", v.Type, t.Size)
	}
	r = floating{size: int(t.Size), reason: v.Reason}
	if r.reason.Code == reasons.None {
		r.bits, r.reason = c.ev.Bits(&v.Loc, 0, 8*uint64(t.Size))
	}
	return r, true, nil
}

// compareReals computes a comparison of which an operand is a floating point number: a variable, if integers is the error of taking it for an
// integer, or else a constant.
func (c *computation) compareReals(e *syntax.Expr, integers error) (n number, err error) {
	var sides [2]floating
	found := false
	for i, of := range []*syntax.Expr{e.A, e.B} {
		s := &sides[i]
		if s.value, s.constant, err = c.constantReal(of); err != nil {
			return n, err
		}
		if s.constant {
			continue
		}
		known, is, err := c.realOf(of)
		switch {
		case integers != nil && !found && (err != nil || !is):
			return n, integers
		case err != nil:
			return n, err
		case !is:
			return n, wrongAt(of, "what is compared with a floating point number must be of type float or double")
		}
		*s, found = known, true
	}
	if !found {
		return n, wrongAt(e, "two constants are compared")
	}
	a, b, which := &sides[0], &sides[1], operators[e.Name].signed
	if a.constant {
		a, b, which = b, a, mirrored[which]
	}
	if of := e.B; b.constant && a.size == 4 {
		if b == &sides[0] {
			of = e.A
		}
		if !isReal(of) {
			b.value = float64(float32(b.value)) // an integer becomes a float (ISO C11 6.3.1.8)
		}
	}
	n = number{size: 4, signed: true}
	if !b.constant && a.size != b.size {
		return n, wrongAt(e, "numbers of %d and of %d bytes cannot be compared", a.size, b.size)
	}
	for _, s := range []*floating{a, b} {
		if s.reason.Code != reasons.None {
			n.reason = s.reason
			return n, nil
		}
	}
	n.e = c.compareBits(which, a, b)
	return n, nil
}

// isReal reports whether an operand is a number with a point.
func isReal(e *syntax.Expr) bool {
	return e.Kind == syntax.KindFloat || e.Kind == syntax.KindUnary && e.Name == "-" && isReal(e.A)
}

// mirrored are the comparisons with the operands exchanged.
var mirrored = map[loc.Op]loc.Op{ops.Eq: ops.Eq, ops.Ne: ops.Ne, ops.Lt: ops.Gt, ops.Le: ops.Ge, ops.Gt: ops.Lt, ops.Ge: ops.Le}

// compareBits compares a number with another one or a constant.
func (c *computation) compareBits(which loc.Op, a, b *floating) *loc.Expr {
	x, number := c.ordered(a)
	var y *loc.Expr
	if b.constant {
		k, exact := orderOf(b.value, a.size)
		if !exact {
			// k is the largest that is below the constant, which a float cannot have.
			switch which {
			case ops.Eq:
				return c.ev.Const(0)
			case ops.Ne:
				return c.ev.Const(1)
			case ops.Ge:
				which = ops.Gt
			case ops.Lt:
				which = ops.Le
			}
		}
		y = c.ev.Const(uint64(k))
	} else {
		var other *loc.Expr
		y, other = c.ordered(b)
		number = c.ev.Select(number, other, c.ev.Const(0))
	}
	compared := c.ev.Binary(which, x, y)
	if which == ops.Ne {
		return c.ev.Select(number, compared, c.ev.Const(1))
	}
	return c.ev.Select(number, compared, c.ev.Const(0))
}

// ordered returns an integer that is larger for a larger number, and whether it is a number.
func (c *computation) ordered(r *floating) (key, number *loc.Expr) {
	width := uint(8 * r.size)
	signed := c.ev.Extend(r.bits, r.size, true)
	without := c.ev.Binary(ops.And, signed, c.ev.Const(1<<(width-1)-1))
	key = c.ev.Select(c.ev.Binary(ops.Lt, signed, c.ev.Const(0)), c.ev.Unary(ops.Neg, without), without)
	infinity := uint64(math.Float32bits(float32(math.Inf(1))))
	if r.size == 8 {
		infinity = math.Float64bits(math.Inf(1))
	}
	return key, c.ev.Binary(ops.ULe, without, c.ev.Const(infinity))
}

// orderOf returns the integer of a constant, or if no number of the size has its value of the largest one below it.
func orderOf(v float64, size int) (key int64, exact bool) {
	if size == 8 {
		return signedOrder(math.Float64bits(v), 64), true
	}
	f := float32(v)
	if exact = float64(f) == v; !exact && float64(f) > v {
		f = math.Nextafter32(f, float32(math.Inf(-1)))
	}
	return signedOrder(uint64(math.Float32bits(f)), 32), exact
}

func signedOrder(bits uint64, width uint) int64 {
	sign := uint64(1) << (width - 1)
	if bits&sign != 0 {
		return -int64(bits &^ sign)
	}
	return int64(bits)
}
