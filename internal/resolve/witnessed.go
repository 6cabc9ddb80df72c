package resolve

import (
	"fmt"
	"slices"

	"github.com/go-delve/delve/pkg/dwarf/op"

	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/index"
	"github.com/bpfprologue/bpfprologue/internal/rule"
	"github.com/bpfprologue/bpfprologue/loc"
)

// witnessing is memory of witnessed.
type witnessing struct {
	params Params
	seen   observed
	done   bool // seen is of the spot
	any    bool // there is a witness
}

// observed observes the body at the spot, once. ok is false if no witness can speak.
func (w *witnessing) observed(s *Spot) (ok bool, err error) {
	if w.done {
		return w.any, nil
	}
	w.done, w.any = true, false
	k, err := w.seen.facts.function(s.U, s.Rec)
	if err != nil {
		return false, err
	}
	about, known := s.U.Img.learnedOf(k)
	if known && about == nil {
		return false, nil
	}
	w.seen.about = about
	w.seen.hands = about == nil || about.anyInner
	w.any, err = w.params.observe(s, &w.seen)
	return w.any, err
}

// witnessed returns the value of a pointer that the debug information has lost and an instruction of the body says: it accesses what the
// pointer points to, or passes the pointer on. The controls say which instruction does, and at which distance. witness is "" if none does.
func (ev *Evaluator) witnessed(x *Var) (l loc.Location, witness string, err error) {
	s := ev.spot
	if ev.Arch.WordSize != 8 {
		return l, "", nil
	}
	if ev.witnessing == nil {
		ev.witnessing = &witnessing{seen: observed{facts: &ev.memory().facts}}
	}
	if ok, err := ev.witnessing.observed(s); !ok || err != nil {
		return l, "", err
	}
	o := &ev.witnessing.seen
	name, err := x.Text()
	if err != nil {
		return l, "", err
	}
	i := slices.IndexFunc(o.params, func(p parameter) bool { return p.name == name })
	if i < 0 {
		return l, "", nil
	}
	if len(o.handed) > 0 {
		if l, witness, err = ev.handedOn(o, i); witness != "" || err != nil {
			return l, witness, err
		}
	}
	if !o.params[i].pointer {
		return l, "", nil
	}
	var e *loc.Expr
	known := func(w *body.Witness, distance uint64) (ok bool) {
		if w.Target {
			e = ev.Addr(w.Value.Const)
			return distance == 0
		}
		e, ok = ev.expression(o.straight.Trace, o.straight.Trace.Plus(w.Value, body.Fixed(-distance), 1))
		return ok
	}
	if !slices.ContainsFunc(o.first, func(n int) bool { return known(&o.straight.Found[n], 0) }) {
		return l, "", nil
	}
	g, err := o.groupsAt(s)
	if g == nil || err != nil {
		return l, "", err
	}
	n, controls, distance := g.says(o, i, known)
	if n < 0 {
		if with := o.withHanded(g); with != nil {
			n, controls, distance = g.says(with, i, known)
		}
	}
	if n < 0 {
		return l, "", nil
	}
	w := &o.straight.Found[n]
	if w.Call {
		if says, err := s.U.saysOfCall(w); !says || err != nil {
			return l, "", err
		}
	}
	l = ev.Value(e)
	if l.Rule = rule.Operand; w.Call {
		l.Rule = rule.Call
	}
	code, err := s.U.Img.Code.Bytes(w.Addr, uint64(w.Size))
	what := "it accesses what is here"
	switch {
	case w.Target:
		what = "it calls it"
	case w.Call:
		what = "it passes it in " + ev.Arch.RegisterName(uint64(w.Register))
	}
	if distance != 0 {
		what += fmt.Sprintf(", %+d bytes", distance)
	}
	return l, fmt.Sprintf("%#x: % x: %s, as in %d bodies where it is known", w.Addr, code, what, controls), err
}

// groupsAt returns the groups of the function at a spot, or nil if none of them speaks.
func (o *observed) groupsAt(s *Spot) (*groups, error) {
	function, err := o.facts.function(s.U, s.Rec)
	if err != nil {
		return nil, err
	}
	return s.U.Img.groupsOf(function)
}

// handedOn returns a lost parameter's value that is known of a parameter of an inner body.
func (ev *Evaluator) handedOn(o *observed, parameter int) (l loc.Location, witness string, err error) {
	s := ev.spot
	g, err := o.groupsAt(s)
	if g == nil || err != nil {
		return l, "", err
	}
	n, controls := g.handsOn(o, parameter)
	if n < 0 {
		return l, "", nil
	}
	h := &o.handed[n]
	e, ok := ev.expression(o.straight.Trace, h.of.value)
	if h.of.form != pointer && h.of.value.IsConstant() {
		e, ok = ev.Const(h.of.value.Const), true
	}
	if !ok {
		return l, "", nil
	}
	l = ev.Value(e)
	l.Rule = rule.Call
	inner, err := s.U.functionOf(h.rec)
	return l, fmt.Sprintf("%#x: it passes it to %s as %s, as in %d bodies where it is known", s.Addr, inner.name, h.name, controls), err
}

// saysOfCall reports whether the debug information says of a call what makes it a witness: that it is of the function that is its target, or that
// it passes something in the register. Others have what was left there. It says the latter also by the declaration of what is called, if other
// units may call that too: then it takes its parameters as they are declared.
func (u *Unit) saysOfCall(w *body.Witness) (bool, error) {
	calls, err := u.readCalls()
	if err != nil || w.Register > uint16(op.DW_OP_reg31-op.DW_OP_reg0) {
		return false, err
	}
	c, ok, err := calls.At(w.Addr + uint64(w.Size))
	if !ok || err != nil {
		return false, err
	}
	if w.Target {
		e, ok, err := c.Callee()
		if !ok || err != nil {
			return false, err
		}
		return u.isAt(e, w.Value.Const)
	}
	if passes, err := c.Passes([]byte{uint8(op.DW_OP_reg0) + uint8(w.Register)}); passes || err != nil {
		return passes, err
	}
	if !u.Body.GNU() || !dw.IsC(u.Lang) && !dw.IsCPlusPlus(u.Lang) {
		return false, nil // LLVM passes nothing that a function of its unit does not use (DeadArgumentElimination)
	}
	e, ok, err := c.Callee()
	if !ok || err != nil {
		return false, err
	}
	if is, err := u.callsAsDeclared(e, w.Shape); !is || err != nil {
		return false, err
	}
	passes := false
	_, err = u.assign(e, func(f func(d *Var) (bool, error)) error { return u.Img.EachParam(e, f) },
		func(_ *Var, l *loc.Location, _ loc.Reason) (bool, error) {
			passes = l.Kind == loc.KindRegister && l.Expr.K == uint64(w.Register)
			return !passes, nil
		})
	return passes, err
}

// callsAsDeclared reports whether what is called is the function of an entry, and not a clone of it, and other units can call it.
func (u *Unit) callsAsDeclared(e dw.Entry, target uint64) (bool, error) {
	nocall, external, err := u.Callable(e)
	if err != nil || nocall || !external {
		return false, err
	}
	return u.isAt(e, target)
}

// isAt reports whether the symbol at an address is that of the function of an entry.
func (u *Unit) isAt(e dw.Entry, addr uint64) (bool, error) {
	name, err := symbolName(e)
	if err != nil || name == "" {
		return false, err
	}
	s := u.Img.File.SymbolAt(addr, name)
	return s != nil && s.Addr == addr && s.Name == name, nil
}

// symbolName returns the name of a function's symbol.
func symbolName(e dw.Entry) (string, error) {
	var name, linkage dw.Value
	last, err := index.EachOrigin(e, func(a dw.Attr, v dw.Value) {
		switch a {
		case dw.AttrName:
			name = v
		case dw.AttrLinkageName:
			linkage = v
		}
	}, func() bool { return linkage.Form == 0 && name.Form == 0 })
	if err != nil {
		return "", err
	}
	if linkage.Form != 0 {
		name = linkage
	}
	if name.Form == 0 {
		return "", nil
	}
	return last.Unit.Text(name), nil
}
