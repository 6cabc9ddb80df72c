package prologue

import (
	"github.com/cilium/ebpf/asm"

	"github.com/bpfprologue/bpfprologue/internal/eval"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/loc"
)

// aluOps are the operations that take one instruction.
var aluOps = [...]asm.ALUOp{
	ops.Add: asm.Add, ops.Sub: asm.Sub, ops.Mul: asm.Mul,
	ops.And: asm.And, ops.Or: asm.Or, ops.Xor: asm.Xor,
	ops.Shl: asm.LSh, ops.Shr: asm.RSh, ops.Shra: asm.ArSh,
	ops.UDiv: asm.Div, ops.UMod: asm.Mod,
}

// unlessOps are the comparisons, each with the jump that is taken if it does not hold.
var unlessOps = [...]asm.JumpOp{
	ops.Eq: asm.JNE, ops.Ne: asm.JEq,
	ops.Lt: asm.JSGE, ops.Ge: asm.JSLT,
	ops.Le: asm.JSGT, ops.Gt: asm.JSLE,
	ops.ULt: asm.JGE, ops.UGe: asm.JLT,
	ops.ULe: asm.JGT, ops.UGt: asm.JLE,
}

// unless goes to the label if a condition is 0.
func (c *computer) unless(n *node, dst asm.Register, free regSet, l *label) {
	switch {
	case !eval.Comparison(n.op):
		c.compute(n, dst, free)
		c.jumpImm(asm.JEq, dst, 0, l)
	case immediate(n.op, n.b):
		c.compute(n.a, dst, free)
		c.jumpImm(unlessOps[n.op], dst, int32(n.b.k), l)
	default:
		a, b, _ := c.operands(n.a, n.b, dst, free)
		c.jumpReg(unlessOps[n.op], a, b, l)
	}
}

// arithmetic computes a binary operation that is not a comparison.
func (c *computer) arithmetic(n *node, dst asm.Register, free regSet) {
	if immediate(n.op, n.b) {
		c.compute(n.a, dst, free)
		switch n.op {
		case ops.Div, ops.Mod:
			c.signedConst(n.op, dst, int32(n.b.k), free.pick())
		default:
			c.imm(aluOps[n.op], dst, int32(n.b.k))
		}
		return
	}
	a, b, left := c.operands(n.a, n.b, dst, free)
	if divides(n.op, n.b) {
		c.jumpImm(asm.JEq, b, 0, c.fault)
	}
	switch n.op {
	case ops.Div, ops.Mod:
		c.signed(n.op, a, b, left.pick())
	case ops.Shl, ops.Shr, ops.Shra:
		c.shift(n.op, a, b)
	default:
		if commutes(n.op) && b == dst {
			a, b = b, a
		}
		c.reg(aluOps[n.op], a, b)
	}
	c.move(dst, a)
}

// commutes reports whether the operands of an operation can be swapped.
func commutes(op loc.Op) bool {
	switch op {
	case ops.Add, ops.Mul, ops.And, ops.Or, ops.Xor:
		return true
	}
	return false
}

// shift shifts a by b. The instruction set does not define shifts by 64 bits or more
// (Documentation/bpf/standardization), so they are computed in another way.
func (c *computer) shift(op loc.Op, a, b asm.Register) {
	var far, end label
	if op == ops.Shra {
		c.jumpImm(asm.JLT, b, 64, &end)
		c.imm(asm.Mov, b, 63) // all bits become the sign
		c.bind(&end)
		c.reg(asm.ArSh, a, b)
		return
	}
	c.jumpImm(asm.JGT, b, 63, &far)
	c.reg(aluOps[op], a, b)
	c.jump(&end)
	c.bind(&far)
	c.imm(asm.Mov, a, 0)
	c.bind(&end)
}

// signed divides a by b, which is not 0, with a temporary register. Linux before 6.6 has no
// instruction for it, so magnitudes are divided and the sign is corrected. The magnitude of
// -2^63 is 2^63 without a sign, so -2^63 / -1 wraps to -2^63 and -2^63 mod -1 is 0, as in
// Go.
func (c *computer) signed(op loc.Op, a, b, sign asm.Register) {
	c.reg(asm.Mov, sign, a)
	if op == ops.Div {
		c.reg(asm.Xor, sign, b)
	}
	c.magnitude(b)
	c.magnitude(a)
	if op == ops.Div {
		c.reg(asm.Div, a, b)
	} else {
		c.reg(asm.Mod, a, b)
	}
	c.negateIf(asm.JSGE, sign, a)
}

// signedConst divides a by a constant that is neither 0 nor -2^31.
func (c *computer) signedConst(op loc.Op, a asm.Register, k int32, sign asm.Register) {
	c.reg(asm.Mov, sign, a)
	c.magnitude(a)
	if op == ops.Mod {
		c.imm(asm.Mod, a, max(k, -k))
		c.negateIf(asm.JSGE, sign, a)
		return
	}
	c.imm(asm.Div, a, max(k, -k))
	if k > 0 {
		c.negateIf(asm.JSGE, sign, a)
	} else {
		c.negateIf(asm.JSLT, sign, a)
	}
}

// magnitude makes a register's signed value positive.
func (c *computer) magnitude(r asm.Register) { c.negateIf(asm.JSGE, r, r) }

// negateIf negates a register unless the jump from a comparison of sign with 0
// is taken.
func (c *computer) negateIf(unless asm.JumpOp, sign, r asm.Register) {
	var end label
	c.jumpImm(unless, sign, 0, &end)
	c.imm(asm.Neg, r, 0)
	c.bind(&end)
}
