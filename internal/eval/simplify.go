package eval

import (
	"github.com/bpfprologue/bpfprologue/loc"
)

// swapped has, for each operation whose operands can be swapped, what it becomes then;
// others are 0.
var swapped = [loc.OpSelect + 1]loc.Op{
	loc.OpAdd: loc.OpAdd, loc.OpMul: loc.OpMul, loc.OpAnd: loc.OpAnd, loc.OpOr: loc.OpOr, loc.OpXor: loc.OpXor,
	loc.OpEq: loc.OpEq, loc.OpNe: loc.OpNe,
	loc.OpLt: loc.OpGt, loc.OpLe: loc.OpGe, loc.OpGt: loc.OpLt, loc.OpGe: loc.OpLe,
	loc.OpULt: loc.OpUGt, loc.OpULe: loc.OpUGe, loc.OpUGt: loc.OpULt, loc.OpUGe: loc.OpULe,
}

// simplifyConst simplifies an operation with a constant, or returns nil. It removes only
// what cannot fault.
func (b *Builder) simplifyConst(op loc.Op, x *loc.Expr, k uint64) *loc.Expr {
	switch op {
	case loc.OpOr, loc.OpXor:
		if k == 0 {
			return x
		}
	case loc.OpMul, loc.OpDiv, loc.OpUDiv:
		if k == 1 {
			return x
		}
	case loc.OpAnd:
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
	case loc.OpShl, loc.OpShr:
		switch {
		case k == 0:
			return x
		case k >= 64:
			return b.Binary(loc.OpAnd, x, b.Const(0))
		}
	case loc.OpShra:
		switch {
		case k == 0:
			return x
		case k >= 64:
			return b.Binary(loc.OpShra, x, b.Const(63))
		}
	}
	return nil
}

// simplifyExtend simplifies an extension to size bytes, or returns nil.
func (b *Builder) simplifyExtend(op loc.Op, x *loc.Expr, size int) *loc.Expr {
	signed := op == loc.OpSExt
	switch x.Op {
	case loc.OpZExt:
		if int(x.Size) < size {
			return x // already zero-extended
		}
	case loc.OpAnd:
		// The mask has fewer bits, and not the sign bit.
		bits := 8 * size
		if signed {
			bits--
		}
		if x.B.Op == loc.OpConst && x.B.K>>bits == 0 {
			return x
		}
	}
	if (x.Op == loc.OpZExt || x.Op == loc.OpSExt) && int(x.Size) >= size {
		return b.Extend(x.A, size, signed)
	}
	return nil
}

// faults reports whether computing an expression may fault: whether it reads memory, or
// divides by something that may be 0.
func faults(e *loc.Expr) bool {
	bad := false
	e.Walk(func(n *loc.Expr) {
		switch n.Op {
		case loc.OpDeref, loc.OpText, loc.OpGlob:
			bad = true
		case loc.OpDiv, loc.OpUDiv, loc.OpMod, loc.OpUMod:
			bad = bad || n.B.Op != loc.OpConst || n.B.K == 0
		}
	})
	return bad
}
