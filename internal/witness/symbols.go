package witness

import (
	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/eval"
	"github.com/bpfprologue/bpfprologue/internal/image"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/loc"
)

// symbol returns an expression over what registers and memory hold in terms of a trace that is there.
func symbol(t *body.Trace, e *loc.Expr) (v body.Value, ok bool) {
	switch e.Op {
	case ops.Const, ops.Addr:
		return body.Fixed(e.K), true
	case ops.Reg:
		if e.K >= uint64(len(t.Regs)) {
			return v, false
		}
		return t.Regs[e.K], true
	case ops.Deref:
		at, ok := symbol(t, e.A)
		return t.Load(at, e.Size*8), ok
	case ops.Add, ops.Sub, ops.Mul, ops.Shl:
		a, ok := symbol(t, e.A)
		b, ok2 := symbol(t, e.B)
		if !ok || !ok2 {
			return v, false
		}
		switch e.Op {
		case ops.Add:
			return t.Plus(a, b, 1), true
		case ops.Sub:
			return t.Plus(a, b, ^uint64(0)), true
		case ops.Mul:
			return t.Plus(body.Fixed(0), a, b.Const), b.IsConstant()
		}
		return t.Plus(body.Fixed(0), a, 1<<b.Const), b.IsConstant() && b.Const < 64
	case ops.ZExt:
		a, ok := symbol(t, e.A)
		return t.Low(a, e.Size*8), ok
	case ops.SExt:
		a, ok := symbol(t, e.A)
		return t.LowSigned(a, e.Size*8), ok
	}
	return v, false
}

func symbolOf(t *body.Trace, l *loc.Location) (v body.Value, ok bool) {
	switch l.Kind {
	case loc.KindRegister, loc.KindValue, loc.KindConstant:
		return symbol(t, l.Expr)
	case loc.KindMemory:
		at, ok := symbol(t, l.Expr)
		return t.Load(at, 64), ok
	}
	return v, false
}

// writer writes expressions for a spot.
type writer struct {
	*eval.Builder
	file *image.File
}

// expression is the reverse of symbol. ok is false for what the spot does not have: what is loaded after a store, and what is computed otherwise.
func (w writer) expression(t *body.Trace, v body.Value) (e *loc.Expr, ok bool) {
	for _, x := range v.Terms {
		if x.Symbol == 0 {
			continue
		}
		part, ok := w.expressionOf(t, &t.Symbols[x.Symbol])
		if !ok {
			return nil, false
		}
		if x.Scale != 1 {
			part = w.Binary(ops.Mul, part, w.Const(x.Scale))
		}
		if e == nil {
			e = part
		} else {
			e = w.Binary(ops.Add, e, part)
		}
	}
	if v.Const == 0 && e != nil {
		return e, true
	}
	constant, ok := w.inCode(v.Const)
	if !ok || e == nil {
		return constant, ok && constant.Op == ops.Addr // a number alone is no address
	}
	return w.Binary(ops.Add, e, constant), true
}

// maxDistance is how far a number in an address may be from 0, in bytes, that is the distance of a member, or of an element.
const maxDistance = 1 << 20

// inCode returns a constant of the code: an address of the image, which moves with it, or a number. ok is false if it may be either.
func (w writer) inCode(c uint64) (e *loc.Expr, ok bool) {
	f := w.file
	s := f.SectionAt(c)
	switch {
	case s == nil, s.Name == percpu:
		return w.Const(c), int64(c) < maxDistance && int64(c) > -maxDistance
	case int64(c) < 0, !f.IsPositionIndependent() && !f.IsRelocatable():
		return w.Addr(c), true
	}
	return nil, false
}

// percpu is a section of kernels at the address 0, in which variables have distances from each processor's.
const percpu = ".data..percpu"

func (w writer) expressionOf(t *body.Trace, s *body.Symbol) (e *loc.Expr, ok bool) {
	switch s.Kind {
	case body.FromRegister:
		return w.Register(uint64(s.Which), 0), true
	case body.FromMemory:
		if s.Which != 0 {
			return nil, false
		}
		at, ok := w.expression(t, s.Of)
		if !ok {
			return nil, false
		}
		return w.Deref(at, int(s.Bits/8)), true
	case body.ZeroExtended, body.SignExtended:
		if s.Bits%8 != 0 {
			return nil, false
		}
		of, ok := w.expression(t, s.Of)
		if !ok {
			return nil, false
		}
		return w.Extend(of, int(s.Bits/8), s.Kind == body.SignExtended), true
	}
	return nil, false
}
