package eval

import (
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/loc"
)

// swapped has, for each operation whose operands can be swapped, what it becomes then;
// others are 0.
var swapped = [ops.Select + 1]loc.Op{
	ops.Add: ops.Add, ops.Mul: ops.Mul, ops.And: ops.And, ops.Or: ops.Or, ops.Xor: ops.Xor,
	ops.Eq: ops.Eq, ops.Ne: ops.Ne,
	ops.Lt: ops.Gt, ops.Le: ops.Ge, ops.Gt: ops.Lt, ops.Ge: ops.Le,
	ops.ULt: ops.UGt, ops.ULe: ops.UGe, ops.UGt: ops.ULt, ops.UGe: ops.ULe,
}

// simplifyConst simplifies an operation with a constant, or returns nil. It removes only
// what cannot fault.
func (b *Builder) simplifyConst(op loc.Op, x *loc.Expr, k uint64) *loc.Expr {
	switch op {
	case ops.Or, ops.Xor:
		if k == 0 {
			return x
		}
	case ops.Mul, ops.Div, ops.UDiv:
		if k == 1 {
			return x
		}
	case ops.And:
		switch {
		case k == 0 && !faults(x):
			return b.Const(0)
		case k == 1<<64-1:
			return x
		case k == 1<<8-1, k == 1<<16-1, k == 1<<32-1:
			size := 1
			for k>>(8*size) != 0 {
				size *= 2
			}
			return b.Extend(x, size, false)
		}
	case ops.Shl, ops.Shr:
		switch {
		case k == 0:
			return x
		case k >= 64:
			return b.Binary(ops.And, x, b.Const(0))
		}
	case ops.Shra:
		switch {
		case k == 0:
			return x
		case k >= 64:
			return b.Binary(ops.Shra, x, b.Const(63))
		}
	}
	return nil
}

// simplifyExtend simplifies an extension to size bytes, or returns nil.
func (b *Builder) simplifyExtend(op loc.Op, x *loc.Expr, size int) *loc.Expr {
	signed := op == ops.SExt
	switch x.Op {
	case ops.ZExt:
		if int(x.Size) < size {
			return x // already zero-extended
		}
	case ops.And:
		// The mask has fewer bits, and not the sign bit.
		bits := 8 * size
		if signed {
			bits--
		}
		if x.B.Op == ops.Const && x.B.K>>bits == 0 {
			return x
		}
	}
	if (x.Op == ops.ZExt || x.Op == ops.SExt) && int(x.Size) >= size {
		return b.Extend(x.A, size, signed)
	}
	return nil
}

// faults reports whether computing an expression may fault: whether it reads memory, asks for the caller, or
// divides by something that may be 0.
func faults(e *loc.Expr) bool {
	bad := false
	e.Walk(func(n *loc.Expr) {
		switch n.Op {
		case ops.Deref, ops.Text, ops.Glob, ops.Caller:
			bad = true
		case ops.Div, ops.UDiv, ops.Mod, ops.UMod:
			bad = bad || n.B.Op != ops.Const || n.B.K == 0
		}
	})
	return bad
}
