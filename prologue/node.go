package prologue

import (
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/loc"
)

// node is a loc.Expr with properties that code generation needs.
type node struct {
	op      loc.Op
	size    uint8
	k       uint64
	a, b, c *node
	glob    *loc.Expr // of a glob

	needs   int32 // registers that computing it takes, without spilling
	calls   int32 // helper calls on the longest path
	divides bool  // may fault without a helper call
	narrow  bool  // reads fewer than 8 bytes at a time
}

// nodes allocates nodes in blocks, which are reused for the next prologue.
type nodes struct {
	blocks [][]node
	block  int // the one in use
	used   int // nodes of it
}

// nodesPerBlock is enough for nearly all prologues.
const nodesPerBlock = 16

func (p *nodes) reset() { p.block, p.used = 0, 0 }

// next returns memory for a node. It holds an old one.
func (p *nodes) next() *node {
	if p.used == nodesPerBlock {
		p.block, p.used = p.block+1, 0
	}
	if p.block == len(p.blocks) {
		p.blocks = append(p.blocks, make([]node, nodesPerBlock))
	}
	n := &p.blocks[p.block][p.used]
	p.used++
	return n
}

// pure reports whether a node neither calls a helper nor faults: it can be
// computed late, or left out.
func (n *node) pure() bool { return n.calls == 0 && !n.divides }

// leaf reports whether a node is computed in its destination alone.
func (n *node) leaf() bool {
	switch n.op {
	case ops.Const, ops.Reg, ops.Addr:
		return true
	case ops.ZExt, ops.SExt, ops.Neg, ops.Not:
		return n.a.leaf()
	}
	return false
}

func (n *node) isConst() bool { return n.op == ops.Const }

// immediate reports whether a binary operation can take its second operand as an
// immediate.
func immediate(op loc.Op, b *node) bool {
	if !b.isConst() || !fitsImm(b.k) {
		return false
	}
	switch op {
	case ops.Div, ops.Mod:
		// Signed division divides magnitudes, and that of -2^31 does not fit.
		return b.k != 0 && int64(b.k) != -1<<31
	case ops.UDiv, ops.UMod:
		return b.k != 0
	case ops.Shl, ops.Shr, ops.Shra:
		return b.k < 64
	}
	return true
}

// divides reports whether an operation is a division whose divisor may be 0.
func divides(op loc.Op, b *node) bool {
	switch op {
	case ops.Div, ops.UDiv, ops.Mod, ops.UMod:
		return !b.isConst() || b.k == 0
	}
	return false
}

// of returns the node of an expression.
func (p *nodes) of(e *loc.Expr) *node {
	n := p.next()
	*n = node{op: e.Op, size: e.Size, k: e.K}
	switch {
	case e.Op == ops.Const || e.Op == ops.Reg || e.Op == ops.Addr:
		n.needs = 1
	case e.Op == ops.Task:
		n.needs, n.calls = 1, 1
	case e.Op == ops.Glob:
		n.needs, n.calls, n.glob = 1, 1, e
		if e.A != nil {
			n.a = p.of(e.A)
			n.needs, n.calls, n.divides, n.narrow = n.a.needs, n.a.calls+1, n.a.divides, n.a.narrow
		}
	case e.Op == ops.Caller || e.Op == ops.Arm:
		a := p.of(e.A)
		n.a, n.needs, n.calls, n.divides, n.narrow = a, max(a.needs, 2), a.calls, a.divides || e.Op == ops.Caller, a.narrow
		if e.B == nil {
			break
		}
		b := p.of(e.B)
		n.b, n.needs, n.divides, n.narrow = b, max(n.needs, b.needs), n.divides || b.divides, n.narrow || b.narrow
		if e.Op == ops.Caller {
			n.calls += b.calls
		} else {
			n.calls = max(n.calls, b.calls) // one arm is computed
		}
	case e.Op == ops.Select:
		cond, yes, no := p.of(e.A), p.of(e.B), p.of(e.C)
		n.a, n.b, n.c = cond, yes, no
		n.needs = max(cond.needs, yes.needs, no.needs)
		n.calls = cond.calls + max(yes.calls, no.calls)
		n.divides = cond.divides || yes.divides || no.divides
		n.narrow = cond.narrow || yes.narrow || no.narrow
	case isBinary(e.Op):
		a, b := p.of(e.A), p.of(e.B)
		n.a, n.b = a, b
		n.calls, n.narrow = a.calls+b.calls, a.narrow || b.narrow
		n.divides = a.divides || b.divides || divides(e.Op, b)
		switch {
		case immediate(e.Op, b):
			n.needs = a.needs
		case a.needs == b.needs:
			n.needs = a.needs + 1
		default:
			n.needs = max(a.needs, b.needs)
		}
	default:
		a := p.of(e.A)
		n.a, n.needs, n.calls, n.divides, n.narrow = a, a.needs, a.calls, a.divides, a.narrow
		switch e.Op {
		case ops.Clz:
			n.needs = max(n.needs, 3) // the number, how many bits, and some of them
		case ops.Text:
			n.calls++
		}
		if e.Op == ops.Deref {
			n.calls++
			n.narrow = n.narrow || e.Size < 8
		}
	}
	return n
}

// isBinary reports whether an operation has two operands, A and B.
func isBinary(op loc.Op) bool { return op >= ops.Add && op < ops.Select }
