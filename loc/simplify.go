package loc

// swapped are the operations whose operands can change sides, and what they
// become then; others are 0.
var swapped = [OpSelect + 1]Op{
	OpAdd: OpAdd, OpMul: OpMul, OpAnd: OpAnd, OpOr: OpOr, OpXor: OpXor,
	OpEq: OpEq, OpNe: OpNe,
	OpLt: OpGt, OpLe: OpGe, OpGt: OpLt, OpGe: OpLe,
	OpULt: OpUGt, OpULe: OpUGe, OpUGt: OpULt, OpUGe: OpULe,
}

// simplifyConst simplifies an operation with a constant, or returns nil. It never
// loses a fault: what is left out cannot fault.
func (b *Builder) simplifyConst(op Op, x *Expr, k uint64) *Expr {
	switch op {
	case OpOr, OpXor:
		if k == 0 {
			return x
		}
	case OpMul, OpDiv, OpUDiv:
		if k == 1 {
			return x
		}
	case OpAnd:
		switch {
		case k == 0 && !x.faults():
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
	case OpShl, OpShr:
		switch {
		case k == 0:
			return x
		case k >= 64:
			return b.Binary(OpAnd, x, b.Const(0))
		}
	case OpShra:
		switch {
		case k == 0:
			return x
		case k >= 64:
			return b.Binary(OpShra, x, b.Const(63))
		}
	}
	return nil
}

// simplifyExtend simplifies an extension to size bytes, or returns nil.
func (b *Builder) simplifyExtend(op Op, x *Expr, size int) *Expr {
	signed := op == OpSExt
	switch x.Op {
	case OpZExt:
		if int(x.Size) < size {
			return x // zeros above already
		}
	case OpAnd:
		// A mask of fewer bits, the sign's not among them.
		bits := 8 * size
		if signed {
			bits--
		}
		if x.B.Op == OpConst && x.B.K>>bits == 0 {
			return x
		}
	}
	if (x.Op == OpZExt || x.Op == OpSExt) && int(x.Size) >= size {
		return b.Extend(x.A, size, signed)
	}
	return nil
}

// faults reports whether computing an expression may fault: it reads memory, or divides by
// what may be 0.
func (e *Expr) faults() bool {
	bad := false
	e.Walk(func(n *Expr) {
		switch n.Op {
		case OpDeref:
			bad = true
		case OpDiv, OpUDiv, OpMod, OpUMod:
			bad = bad || n.B.Op != OpConst || n.B.K == 0
		}
	})
	return bad
}
