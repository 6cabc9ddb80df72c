package prologue

import (
	"github.com/bpfprologue/bpfprologue/dwarfloc"
)

// node is a dwarfloc.Expr with what code generation asks about. Nodes are made by
// the functions below, which compute what is constant and bring what is left to
// the form that has an immediate operand.
type node struct {
	op      dwarfloc.ExprOp
	size    uint8
	k       uint64
	a, b, c *node

	needs   int32 // registers that computing it takes, without spilling
	calls   int32 // helper calls on the longest path
	divides bool  // may fault without a helper call
	narrow  bool  // reads fewer than 8 bytes at a time
}

// nodes is where nodes are made: in blocks that are used again for the next
// prologue.
type nodes struct {
	blocks [][]node
	block  int // the one in use
	used   int // nodes of it
}

// nodesPerBlock is enough for nearly all prologues.
const nodesPerBlock = 16

func (p *nodes) reset() { p.block, p.used = 0, 0 }

// next returns memory for a node, which still holds another one.
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

func (p *nodes) leaf(op dwarfloc.ExprOp, k uint64) *node {
	n := p.next()
	*n = node{op: op, k: k, needs: 1}
	return n
}

// pure reports whether a node neither calls a helper nor faults: it can be
// computed late, or not at all.
func (n *node) pure() bool { return n.calls == 0 && !n.divides }

// leaf reports whether a node is computed in its destination alone.
func (n *node) leaf() bool {
	switch n.op {
	case dwarfloc.OpConst, dwarfloc.OpReg, dwarfloc.OpAddr:
		return true
	case dwarfloc.OpZExt, dwarfloc.OpSExt, dwarfloc.OpNeg, dwarfloc.OpNot:
		return n.a.leaf()
	}
	return false
}

func (n *node) isConst() bool { return n.op == dwarfloc.OpConst }

// immediate reports whether a binary operation can take its second operand as an
// immediate.
func immediate(op dwarfloc.ExprOp, b *node) bool {
	if !b.isConst() || !fitsImm(b.k) {
		return false
	}
	switch op {
	case dwarfloc.OpDiv, dwarfloc.OpMod:
		// Signed division divides magnitudes, and that of -2^31 does not fit.
		return b.k != 0 && int64(b.k) != -1<<31
	case dwarfloc.OpUDiv, dwarfloc.OpUMod:
		return b.k != 0
	case dwarfloc.OpShl, dwarfloc.OpShr, dwarfloc.OpShra:
		return b.k < 64
	}
	return true
}

// divides reports whether an operation is a division whose divisor may be 0.
func divides(op dwarfloc.ExprOp, b *node) bool {
	switch op {
	case dwarfloc.OpDiv, dwarfloc.OpUDiv, dwarfloc.OpMod, dwarfloc.OpUMod:
		return !b.isConst() || b.k == 0
	}
	return false
}

func (p *nodes) constant(k uint64) *node { return p.leaf(dwarfloc.OpConst, k) }

func (p *nodes) register(dwarf uint64) *node { return p.leaf(dwarfloc.OpReg, dwarf) }

func (p *nodes) imageAddr(addr uint64) *node { return p.leaf(dwarfloc.OpAddr, addr) }

// deref reads size bytes at an address.
func (p *nodes) deref(a *node, size int) *node {
	n := p.next()
	*n = node{
		op: dwarfloc.OpDeref, size: uint8(size), a: a,
		needs: a.needs, calls: a.calls + 1, divides: a.divides, narrow: a.narrow || size < 8,
	}
	return n
}

// unary makes an OpNeg or OpNot.
func (p *nodes) unaryOp(op dwarfloc.ExprOp, a *node) *node {
	if a.isConst() {
		if op == dwarfloc.OpNeg {
			return p.constant(-a.k)
		}
		return p.constant(^a.k)
	}
	n := p.next()
	*n = node{op: op, a: a, needs: a.needs, calls: a.calls, divides: a.divides, narrow: a.narrow}
	return n
}

// extend makes a value as wide as size bytes: op is OpZExt or OpSExt.
func (p *nodes) extend(op dwarfloc.ExprOp, a *node, size int) *node {
	if size >= 8 {
		return a
	}
	signed := op == dwarfloc.OpSExt
	switch a.op {
	case dwarfloc.OpConst:
		shift := 64 - 8*size
		if signed {
			return p.constant(uint64(int64(a.k<<shift) >> shift))
		}
		return p.constant(a.k << shift >> shift)
	case dwarfloc.OpZExt, dwarfloc.OpDeref:
		if int(a.size) < size || int(a.size) == size && !signed {
			return a // zeros above already
		}
	case dwarfloc.OpSExt:
		if int(a.size) <= size && signed {
			return a
		}
	case dwarfloc.OpAnd:
		// A mask of fewer bits, the sign's not among them.
		bits := 8 * size
		if signed {
			bits--
		}
		if a.b.isConst() && a.b.k>>bits == 0 {
			return a
		}
	}
	if (a.op == dwarfloc.OpZExt || a.op == dwarfloc.OpSExt) && int(a.size) >= size {
		return p.extend(op, a.a, size)
	}
	n := p.next()
	*n = node{op: op, size: uint8(size), a: a, needs: a.needs, calls: a.calls, divides: a.divides, narrow: a.narrow}
	return n
}

// swapped are the operations whose operands can change sides, and what they
// become then; others are 0.
var swapped = [dwarfloc.OpSelect + 1]dwarfloc.ExprOp{
	dwarfloc.OpAdd: dwarfloc.OpAdd, dwarfloc.OpMul: dwarfloc.OpMul,
	dwarfloc.OpAnd: dwarfloc.OpAnd, dwarfloc.OpOr: dwarfloc.OpOr, dwarfloc.OpXor: dwarfloc.OpXor,
	dwarfloc.OpEq: dwarfloc.OpEq, dwarfloc.OpNe: dwarfloc.OpNe,
	dwarfloc.OpLt: dwarfloc.OpGt, dwarfloc.OpLe: dwarfloc.OpGe,
	dwarfloc.OpGt: dwarfloc.OpLt, dwarfloc.OpGe: dwarfloc.OpLe,
	dwarfloc.OpULt: dwarfloc.OpUGt, dwarfloc.OpULe: dwarfloc.OpUGe,
	dwarfloc.OpUGt: dwarfloc.OpULt, dwarfloc.OpUGe: dwarfloc.OpULe,
}

func (p *nodes) binaryOp(op dwarfloc.ExprOp, a, b *node) *node {
	if a.isConst() && b.isConst() {
		if v, ok := dwarfloc.Fold(op, a.k, b.k); ok {
			return p.constant(v)
		}
	}
	if to := swapped[op]; to != 0 && a.isConst() {
		op, a, b = to, b, a
	}
	if b.isConst() {
		if op == dwarfloc.OpSub {
			op, b = dwarfloc.OpAdd, p.constant(-b.k)
		}
		if n := p.simplifyConst(op, a, b.k); n != nil {
			return n
		}
	}
	n := p.next()
	*n = node{
		op: op, a: a, b: b,
		calls: a.calls + b.calls, divides: a.divides || b.divides || divides(op, b), narrow: a.narrow || b.narrow,
	}
	switch {
	case immediate(op, b):
		n.needs = a.needs
	case a.needs == b.needs:
		n.needs = a.needs + 1
	default:
		n.needs = max(a.needs, b.needs)
	}
	return n
}

// simplifyConst simplifies an operation with a constant, or returns nil. It never
// loses a fault: what is left out is pure.
func (p *nodes) simplifyConst(op dwarfloc.ExprOp, a *node, k uint64) *node {
	switch op {
	case dwarfloc.OpAdd:
		switch {
		case k == 0:
			return a
		case a.op == dwarfloc.OpAdd && a.b.isConst():
			return p.binaryOp(dwarfloc.OpAdd, a.a, p.constant(a.b.k+k))
		case a.op == dwarfloc.OpAddr:
			return p.imageAddr(a.k + k)
		}
	case dwarfloc.OpOr, dwarfloc.OpXor:
		if k == 0 {
			return a
		}
	case dwarfloc.OpMul, dwarfloc.OpDiv, dwarfloc.OpUDiv:
		if k == 1 {
			return a
		}
	case dwarfloc.OpAnd:
		switch {
		case k == 0 && a.pure():
			return p.constant(0)
		case k == 1<<64-1:
			return a
		case k == 1<<8-1, k == 1<<16-1, k == 1<<32-1:
			size := 1
			for k>>(8*size) != 0 {
				size *= 2
			}
			return p.extend(dwarfloc.OpZExt, a, size)
		}
	case dwarfloc.OpShl, dwarfloc.OpShr:
		switch {
		case k == 0:
			return a
		case k >= 64:
			return p.binaryOp(dwarfloc.OpAnd, a, p.constant(0))
		}
	case dwarfloc.OpShra:
		switch {
		case k == 0:
			return a
		case k >= 64:
			return p.binaryOp(dwarfloc.OpShra, a, p.constant(63))
		}
	}
	return nil
}

// choose makes an OpSelect.
func (p *nodes) choose(cond, yes, no *node) *node {
	if cond.isConst() {
		if cond.k != 0 {
			return yes
		}
		return no
	}
	n := p.next()
	*n = node{
		op: dwarfloc.OpSelect, a: cond, b: yes, c: no,
		needs:   max(cond.needs, yes.needs, no.needs),
		calls:   cond.calls + max(yes.calls, no.calls),
		divides: cond.divides || yes.divides || no.divides,
		narrow:  cond.narrow || yes.narrow || no.narrow,
	}
	return n
}
