package eval

import (
	"math/bits"

	"github.com/bpfprologue/bpfprologue/internal/bin"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/loc"
)

// Builder builds expressions. It folds constants and adds up offsets. It reuses its memory
// after Reset, so that walking the sites of a whole image allocates little. The zero value
// is ready to use, by one goroutine.
type Builder struct {
	// BigEndian is the byte order of the machine that runs the expressions.
	BigEndian bool
	// RegisterBytes is the size of a general register in bytes; 0 means 8.
	RegisterBytes int
	// Simplify reduces expressions to the fewest operations and moves constant operands to
	// the right. Without it, an expression keeps the operations in the debug information,
	// which users compare with other tools.
	Simplify bool

	chunks [][]loc.Expr // nodes, reused for the next site
	chunk  int          // the chunk that nodes are taken from
	used   int          // nodes taken from it
}

// Reset invalidates all expressions that were built, and reuses their memory.
func (b *Builder) Reset() { b.chunk, b.used = 0, 0 }

func (b *Builder) node(e loc.Expr) *loc.Expr {
	if b.chunk < len(b.chunks) && b.used == len(b.chunks[b.chunk]) {
		b.chunk, b.used = b.chunk+1, 0
	}
	if b.chunk == len(b.chunks) {
		// Most sites need two or three nodes, some need hundreds.
		n := 4
		if b.chunk > 0 {
			n = min(2*len(b.chunks[b.chunk-1]), 256)
		}
		b.chunks = append(b.chunks, make([]loc.Expr, n))
	}
	n := &b.chunks[b.chunk][b.used]
	b.used++
	*n = e
	return n
}

// Const returns the constant v.
func (b *Builder) Const(v uint64) *loc.Expr { return b.node(loc.Expr{Op: ops.Const, K: v}) }

// Register returns the register with DWARF number n, plus an offset.
func (b *Builder) Register(n uint64, off int64) *loc.Expr {
	r := b.node(loc.Expr{Op: ops.Reg, K: n})
	if off == 0 {
		return r
	}
	return b.node(loc.Expr{Op: ops.Add, A: r, B: b.Const(uint64(off))})
}

// Addr returns a link-time address in the image.
func (b *Builder) Addr(addr uint64) *loc.Expr { return b.node(loc.Expr{Op: ops.Addr, K: addr}) }

// Deref returns the size bytes in memory at address a, zero-extended.
func (b *Builder) Deref(a *loc.Expr, size int) *loc.Expr {
	return b.node(loc.Expr{Op: ops.Deref, Size: uint8(size), A: a})
}

// Task returns a number of the current task.
func (b *Builder) Task(t ops.TaskNumber) *loc.Expr {
	return b.node(loc.Expr{Op: ops.Task, K: uint64(t)})
}

// Text returns the first 8 bytes of the string at address a.
func (b *Builder) Text(a *loc.Expr) *loc.Expr { return b.node(loc.Expr{Op: ops.Text, A: a}) }

// Unary returns ops.Neg, ops.Not or ops.Clz of a.
func (b *Builder) Unary(op loc.Op, a *loc.Expr) *loc.Expr {
	if a.Op == ops.Const {
		switch op {
		case ops.Neg:
			return b.Const(-a.K)
		case ops.Clz:
			return b.Const(uint64(bits.LeadingZeros64(a.K)))
		}
		return b.Const(^a.K)
	}
	return b.node(loc.Expr{Op: op, A: a})
}

// Select returns yes if cond is not 0, or else no.
func (b *Builder) Select(cond, yes, no *loc.Expr) *loc.Expr {
	if cond.Op == ops.Const {
		if cond.K != 0 {
			return yes
		}
		return no
	}
	return b.node(loc.Expr{Op: ops.Select, A: cond, B: yes, C: no})
}

// Passed is what a caller passed: the call returns to a link-time address.
type Passed struct {
	Return uint64
	Value  *loc.Expr
}

// Caller returns what the caller passed to which an expression is the return address. The callers are sorted by address, and are near
// each other: see ops.MaxApart. size is how many bytes of the address count.
func (b *Builder) Caller(address *loc.Expr, size int, callers []Passed) *loc.Expr {
	base := callers[0].Return
	e := b.node(loc.Expr{Op: ops.Caller, A: b.Extend(b.Binary(ops.Sub, address, b.Addr(base)), size, false)})
	last := &e.B
	for _, c := range callers {
		*last = b.node(loc.Expr{Op: ops.Arm, K: c.Return - base, A: c.Value})
		last = &(*last).B
	}
	return e
}

// Extend returns the low size bytes of a value, zero-extended or sign-extended.
func (b *Builder) Extend(e *loc.Expr, size int, signed bool) *loc.Expr {
	if size >= 8 {
		return e
	}
	op := ops.ZExt
	if signed {
		op = ops.SExt
	}
	switch {
	case e.Op == ops.Const && signed:
		return b.Const(uint64(bin.SignExtend(e.K, size)))
	case e.Op == ops.Const:
		return b.Const(bin.ZeroExtend(e.K, size))
	case e.Op == ops.Deref && int(e.Size) <= size && (!signed || int(e.Size) < size):
		return e // zero-extended from fewer bytes already
	case e.Op == op && int(e.Size) <= size:
		return e
	case b.Simplify:
		if s := b.simplifyExtend(op, e, size); s != nil {
			return s
		}
	}
	return b.node(loc.Expr{Op: op, Size: uint8(size), A: e})
}

// Binary returns an operation with two operands.
func (b *Builder) Binary(op loc.Op, x, y *loc.Expr) *loc.Expr {
	if x.Op == ops.Const && y.Op == ops.Const {
		if v, ok := Fold(op, x.K, y.K); ok {
			return b.Const(v)
		}
	}
	if b.Simplify && x.Op == ops.Const && swapped[op] != 0 {
		op, x, y = swapped[op], y, x
	}
	switch {
	case op == ops.Sub && y.Op == ops.Const:
		return b.Binary(ops.Add, x, b.Const(-y.K))
	case op == ops.Add && x.Op == ops.Const:
		return b.Binary(ops.Add, y, x)
	case op == ops.Add && y.Op == ops.Const:
		if y.K == 0 {
			return x
		}
		switch {
		case x.Op == ops.Add && x.B.Op == ops.Const:
			return b.Binary(ops.Add, x.A, b.Const(x.B.K+y.K))
		case x.Op == ops.Addr:
			return b.Addr(x.K + y.K)
		}
	case b.Simplify && y.Op == ops.Const:
		if s := b.simplifyConst(op, x, y.K); s != nil {
			return s
		}
	}
	return b.node(loc.Expr{Op: op, A: x, B: y})
}
