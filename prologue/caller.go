package prologue

import (
	"github.com/cilium/ebpf/asm"

	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/loc"
)

// What a caller passed: the return address is compared with those of the callers that are known, by a balanced tree of jumps, and the
// value of the one that it is is computed. With another address the value is missing, as after a fault.

// caller rewrites the arms of a caller.
func (l *lowering) caller(address, arms *loc.Expr) (*loc.Expr, error) {
	out := &loc.Expr{Op: ops.Caller, A: address}
	last := &out.B
	least := uint64(0)
	for arm := arms; arm != nil; arm = arm.B {
		if arm.Op != ops.Arm || arm.K < least || arm.K > ops.MaxApart {
			return nil, refuse(reasons.Unsupported, "callers that are not sorted, or far from each other")
		}
		least = arm.K + 1
		if l.left -= 2; l.left < 0 { // to compare the address
			return nil, refuse(reasons.Unsupported, "an expression of more than %d operations", maxNodes)
		}
		v, err := l.expr(arm.A)
		if err != nil {
			return nil, err
		}
		*last = &loc.Expr{Op: ops.Arm, K: arm.K, A: v}
		last = &(*last).B
	}
	if out.B == nil {
		return nil, refuse(reasons.Unsupported, "a value of callers without a caller")
	}
	return out, nil
}

// armsPerLeaf is how many addresses are compared one after the other.
const armsPerLeaf = 3

// caller sets dst to what the caller passed.
func (c *computer) caller(n *node, dst asm.Register, free regSet) {
	var arms []*node
	var values []*node // the different ones
	var of []int       // for each arm
	for arm := n.b; arm != nil; arm = arm.b {
		at := 0
		for at < len(values) && !same(values[at], arm.a) {
			at++
		}
		if at == len(values) {
			values = append(values, arm.a)
		}
		arms, of = append(arms, arm), append(of, at)
	}
	labels := make([]label, len(values))
	c.compute(n.a, dst, free)
	c.find(arms, of, labels, dst)
	var end label
	for i, v := range values {
		c.bind(&labels[i])
		c.compute(v, dst, free)
		if i < len(values)-1 {
			c.jump(&end)
		}
	}
	c.bind(&end)
}

// find goes to the label of the arm whose number a register holds, or to where reads go that fault.
func (c *computer) find(arms []*node, of []int, labels []label, key asm.Register) {
	if len(arms) > armsPerLeaf {
		var above label
		half := len(arms) / 2
		c.jumpImm(asm.JGE, key, int32(arms[half].k), &above)
		c.find(arms[:half], of[:half], labels, key)
		c.bind(&above)
		c.find(arms[half:], of[half:], labels, key)
		return
	}
	for i, arm := range arms {
		c.jumpImm(asm.JEq, key, int32(arm.k), &labels[of[i]])
	}
	c.jump(c.fault)
}
