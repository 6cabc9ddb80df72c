package resolve

import (
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/symbolic"
	"github.com/bpfprologue/bpfprologue/loc"
)

// symbol returns an expression over what registers and memory hold in terms of a trace that is there.
func symbol(t *symbolic.Trace, e *loc.Expr) (v symbolic.Value, ok bool) {
	switch e.Op {
	case ops.Const, ops.Addr:
		return symbolic.Constant(e.K), true
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
			return t.Plus(symbolic.Constant(0), a, b.Const), b.IsConstant()
		}
		return t.Plus(symbolic.Constant(0), a, 1<<b.Const), b.IsConstant() && b.Const < 64
	case ops.ZExt:
		a, ok := symbol(t, e.A)
		return t.Low(a, e.Size*8), ok
	case ops.SExt:
		a, ok := symbol(t, e.A)
		return t.LowSigned(a, e.Size*8), ok
	}
	return v, false
}

func symbolOf(t *symbolic.Trace, l *loc.Location) (v symbolic.Value, ok bool) {
	switch l.Kind {
	case loc.KindRegister, loc.KindValue, loc.KindConstant:
		return symbol(t, l.Expr)
	case loc.KindMemory:
		at, ok := symbol(t, l.Expr)
		return t.Load(at, 64), ok
	}
	return v, false
}

// expression is the reverse of symbol. ok is false for what the spot does not have: what is loaded after a store, and what is computed otherwise.
func (ev *Evaluator) expression(t *symbolic.Trace, v symbolic.Value) (e *loc.Expr, ok bool) {
	for _, x := range v.Terms {
		if x.Symbol == 0 {
			continue
		}
		part, ok := ev.expressionOf(t, &t.Symbols[x.Symbol])
		if !ok {
			return nil, false
		}
		if x.Scale != 1 {
			part = ev.Binary(ops.Mul, part, ev.Const(x.Scale))
		}
		if e == nil {
			e = part
		} else {
			e = ev.Binary(ops.Add, e, part)
		}
	}
	switch {
	case v.Const == 0 && e != nil:
		return e, true
	case int64(v.Const) < 0 && ev.u.Img.File.SectionAt(v.Const) != nil:
		a := ev.Addr(v.Const)
		if e == nil {
			return a, true
		}
		return ev.Binary(ops.Add, e, a), true
	case e == nil:
		return nil, false // a number, or an address of an image that is linked to low ones
	}
	return ev.Binary(ops.Add, e, ev.Const(v.Const)), true
}

func (ev *Evaluator) expressionOf(t *symbolic.Trace, s *symbolic.Symbol) (e *loc.Expr, ok bool) {
	switch s.Kind {
	case symbolic.InputRegister:
		return ev.Register(uint64(s.Which), 0), true
	case symbolic.Loaded:
		if s.Which != 0 {
			return nil, false
		}
		at, ok := ev.expression(t, s.Of)
		if !ok {
			return nil, false
		}
		return ev.Deref(at, int(s.Bits/8)), true
	case symbolic.ZeroExtended, symbolic.SignExtended:
		if s.Bits%8 != 0 {
			return nil, false
		}
		of, ok := ev.expression(t, s.Of)
		if !ok {
			return nil, false
		}
		return ev.Extend(of, int(s.Bits/8), s.Kind == symbolic.SignExtended), true
	}
	return nil, false
}
