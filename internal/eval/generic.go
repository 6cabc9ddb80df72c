package eval

import (
	"github.com/bpfprologue/bpfprologue/internal/bin"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/loc"
)

// The generic type has the size of an address (DWARF 5 section 2.5.1), and its arithmetic is modulo
// that. Expressions compute with 64 bits. On machines with addresses of 4 bytes a value of the
// generic type is therefore what the low half of its expression is: adding, multiplying and most other operations
// do not depend on the high half. Those that do get their operands extended first, so that few
// expressions have extensions which the debug information does not have.

// narrow reports whether the generic type has fewer than 64 bits.
func (ev *Evaluator) narrow() bool { return ev.Encoding.AddressSize < 8 }

// unsigned returns the value of an operand without a sign.
func (ev *Evaluator) unsigned(o operand) *loc.Expr {
	if o.typ != nil || !ev.narrow() || ev.within(o.e) {
		return o.e
	}
	return ev.Extend(o.e, ev.Encoding.AddressSize, false)
}

// signed returns the value of an operand with a sign.
func (ev *Evaluator) signed(o operand) *loc.Expr {
	if o.typ != nil || !ev.narrow() {
		return o.e
	}
	return ev.Extend(o.e, ev.Encoding.AddressSize, true)
}

// operands returns the values of two operands of the generic type, as an operation needs them.
func (ev *Evaluator) operands(op loc.Op, a, b operand) (x, y *loc.Expr) {
	switch op {
	case ops.UMod, ops.Eq, ops.Ne:
		return ev.unsigned(a), ev.unsigned(b)
	case ops.Div, ops.Lt, ops.Le, ops.Gt, ops.Ge:
		return ev.signed(a), ev.signed(b)
	case ops.Shr:
		return ev.unsigned(a), b.e
	case ops.Shra:
		return ev.signed(a), b.e
	case ops.Add, ops.Sub:
		// So that a negative offset is printed as one.
		if y = b.e; y.Op == ops.Const && b.typ == nil && ev.narrow() {
			y = ev.Const(uint64(bin.SignExtend(y.K, ev.Encoding.AddressSize)))
		}
		return a.e, y
	}
	return a.e, b.e
}

// folded returns a result of the generic type. Constants in it are reduced to its size.
func (ev *Evaluator) folded(e *loc.Expr) *loc.Expr {
	size := ev.Encoding.AddressSize
	switch {
	case !ev.narrow():
	case e.Op == ops.Const && int64(e.K) != bin.SignExtend(e.K, size):
		return ev.Const(bin.ZeroExtend(e.K, size))
	case e.Op == ops.Add && e.B.Op == ops.Const && int64(e.B.K) != bin.SignExtend(e.B.K, size):
		return ev.Binary(ops.Add, e.A, ev.Const(uint64(bin.SignExtend(e.B.K, size))))
	}
	return e
}

// within reports whether an expression's value is certain to have no more bits than an address.
func (ev *Evaluator) within(e *loc.Expr) bool {
	size := ev.Encoding.AddressSize
	switch e.Op {
	case ops.Const:
		return bin.ZeroExtend(e.K, size) == e.K
	case ops.Reg, ops.Addr:
		return true
	case ops.Deref, ops.ZExt:
		return int(e.Size) <= size
	case ops.And:
		return ev.within(e.A) || ev.within(e.B)
	case ops.Or, ops.Xor:
		return ev.within(e.A) && ev.within(e.B)
	case ops.Shr, ops.UDiv, ops.UMod:
		return ev.within(e.A)
	case ops.Select:
		return ev.within(e.B) && ev.within(e.C)
	}
	return Comparison(e.Op)
}
