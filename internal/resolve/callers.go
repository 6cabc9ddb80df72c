package resolve

import (
	"slices"

	"github.com/go-delve/delve/pkg/dwarf/op"

	"github.com/bpfprologue/bpfprologue/internal/answers"
	"github.com/bpfprologue/bpfprologue/internal/arithmetic"
	"github.com/bpfprologue/bpfprologue/internal/caller"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/eval"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/passed"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/rule"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/types"
)

// Values of the caller's frame: what an expression was where the function was called (DW_OP_entry_value), and a parameter that a clone lost
// (DW_OP_GNU_parameter_ref). The return address says which call it was, and the entry of that call what it passed, in terms of the
// caller's registers. Where the caller's registers are now, call frame information says.

// maxNested bounds how many frames up a value may be: that of the caller, and that of its caller.
const maxNested = 2

// EntryValue returns what a register, or memory at one, had where the function was called.
func (ev *Evaluator) EntryValue(expr []byte) (*loc.Expr, loc.Reason, error) {
	lost := loc.Reason{Code: reasons.EntryValueOnly}
	place, size := ev.placeOf(expr)
	if place == nil {
		return nil, lost, nil
	}
	if size == 0 {
		if v := ev.heldStill(place); v != nil {
			return v, loc.Reason{}, nil
		}
	}
	v, r, err := ev.passedBy(passed.Wanted{Place: string(place), Data: size > 0}, lost)
	if v != nil && size > 0 && size < ev.Arch.WordSize {
		v = ev.Extend(v, size, false) // what a call passes may have more bits than are loaded
	}
	return v, r, err
}

// heldStill returns a register to which the function's own instructions have moved what one had where it was called, or nil. GCC names such a register itself:
// of 805 of its values in Debian's 6.1 cloud kernel 17 would be found.
func (ev *Evaluator) heldStill(place []byte) *loc.Expr {
	n, ok := eval.RegisterOf(place)
	if !ok || ev.spot.U.Body.GNU() || ev.spot.U.Img.LeftOut.Has(rule.Moved) {
		return nil
	}
	c, err := ev.instructionsOf(ev.spot)
	if err != nil {
		return nil // a call may say it
	}
	to, bits, ok := c.Held().Holds(n, ev.spot.At.Addr)
	whole := int(bits) == 8*ev.Arch.WordSize
	if !ok || !whole && ev.nested > 0 || eval.CheckRegister(ev.Arch, to).Code != reasons.None {
		return nil
	}
	if ev.movedBits == 0 || bits < ev.movedBits {
		ev.movedBits = bits
	}
	return ev.Register(to, 0)
}

// enoughMoved reports whether the lower bits of what was moved are enough for a location.
func (ev *Evaluator) enoughMoved(l *loc.Location, t *types.Type) bool {
	if int(ev.movedBits) == 8*ev.Arch.WordSize {
		return true
	}
	size, err := t.ByteSize()
	return l.Expr != nil && l.Expr.Op == ops.Reg && l.Kind != loc.KindMemory && err == nil && size > 0 && size*8 <= int64(ev.movedBits)
}

// ParameterRef returns what callers passed for a parameter.
func (ev *Evaluator) ParameterRef(off uint64) (*loc.Expr, loc.Reason, error) {
	v, r, err := ev.passedBy(passed.Wanted{Parameter: ev.u.Off + off}, loc.Reason{Code: reasons.ParameterRef})
	if v == nil || err != nil {
		return v, r, err
	}
	// What a call passes may have more bits than the parameter, and what is computed from it is computed from the parameter.
	if t := integerAt(ev.u, ev.u.Off+off); t != nil && t.Size < int64(ev.Arch.WordSize) {
		v = ev.Extend(v, int(t.Size), t.Signed)
	}
	return v, r, nil
}

// integerAt returns the type of the parameter that has its entry at an offset, if that is a type of integers, or nil.
func integerAt(u *entries.Unit, off uint64) *types.Type {
	e, err := u.Entry(off)
	if err != nil {
		return nil
	}
	x, err := u.ReadVar(e)
	if err == nil {
		err = x.Complete()
	}
	if err != nil {
		return nil
	}
	t, err := x.U.TypeOf(x.Type)
	if err == nil {
		t, err = t.Resolve()
	}
	if err != nil || t.Kind != types.Int && t.Kind != types.Char && t.Kind != types.Enum && t.Kind != types.Bool || t.Size <= 0 {
		return nil // damage is reported where the parameter is asked for
	}
	return t
}

// placeOf returns the expression by which call sites name a register, and how many bytes are loaded from the address in it, or 0. It is nil for
// other expressions.
func (ev *Evaluator) placeOf(expr []byte) (place []byte, size int) {
	first, err := eval.Decode(expr, 0, ev.Encoding)
	c := op.Opcode(first.Code)
	if err != nil {
		return nil, 0
	}
	register := c >= op.DW_OP_reg0 && c <= op.DW_OP_reg31 || c == op.DW_OP_regx
	if first.Next == len(expr) {
		if register {
			return expr, 0
		}
		return nil, 0
	}
	if based := c >= op.DW_OP_breg0 && c <= op.DW_OP_breg31 && first.A == 0; !based {
		return nil, 0
	}
	second, err := eval.Decode(expr, first.Next, ev.Encoding)
	switch {
	case err != nil || second.Next != len(expr):
		return nil, 0
	case op.Opcode(second.Code) == op.DW_OP_deref:
		size = ev.Arch.WordSize
	case op.Opcode(second.Code) == op.DW_OP_deref_size && second.A > 0:
		size = int(second.A)
	default:
		return nil, 0
	}
	return []byte{uint8(op.DW_OP_reg0) + first.Code - uint8(op.DW_OP_breg0)}, size
}

// passedBy returns the value that callers passed, or why there is none.
func (ev *Evaluator) passedBy(w passed.Wanted, lost loc.Reason) (*loc.Expr, loc.Reason, error) {
	s := ev.spot
	because := func(why string) (*loc.Expr, loc.Reason, error) {
		lost.Detail = why
		return nil, lost, nil
	}
	if s.U.Img.LeftOut.Has(rule.Caller) {
		return nil, answers.Unrecovered(rule.Caller), nil
	}
	if ev.nested == maxNested {
		return because("it is a value of more than two callers above")
	}
	w.Rec, w.Nested = s.U.Body.Outermost(s.Rec), ev.nested
	d, err := passed.Of(s.U, w, valueIn)
	if err != nil {
		return nil, loc.Reason{}, err
	}
	if d.Why != "" {
		return because(d.Why)
	}
	f, why, err := ev.frame()
	if err != nil || why != "" {
		lost.Detail = why
		return nil, lost, err
	}
	var known []eval.Passed
	for _, p := range d.Passed {
		if v := f.inCaller(p.Value); v != nil {
			known = append(known, eval.Passed{Return: p.Return, Value: v})
		}
	}
	if len(known) == 0 {
		return because("where the caller's registers are is not known")
	}
	return f.chosen(known), loc.Reason{}, nil
}

// valueIn evaluates an expression in the frame of a function, at an address.
func valueIn(u *entries.Unit, rec int32, addr uint64, v caller.Value, nested int) (*loc.Expr, error) {
	var s entries.Spot
	if ok, err := u.Read(rec, &s); !ok || err != nil {
		return nil, err
	}
	s.Kind, s.Addr, s.AfterPrologue = entries.Inside, addr, false
	s.At = entries.Place{Addr: s.Addr}
	ev := At(&s) // its own: the value is kept
	ev.nested = nested
	var l loc.Location
	r, err := ev.Locate(v.Expr, ".debug_info", v.Off, &l)
	if err != nil || r.Code != reasons.None {
		return nil, err
	}
	switch l.Kind {
	case loc.KindRegister, loc.KindMemory, loc.KindValue, loc.KindConstant:
		if !arithmetic.DependsOnWidth(l.Expr) {
			return l.Expr, nil
		}
	}
	return nil, nil
}

// fromCaller reports whether a location has a value of the caller's frame, and whether that is enough to know it.
func fromCaller(l *loc.Location) (has, enough bool) {
	enough = true
	l.Exprs(func(e *loc.Expr) {
		found := false
		e.Walk(func(n *loc.Expr) { found = found || n.Op == ops.Caller })
		has = has || found
		enough = enough && (!found || !arithmetic.DependsOnWidth(e))
	})
	return has, enough
}

// callFrame is where a function has its caller's registers, at a spot.
type callFrame struct {
	ev     *Evaluator
	cfa    *loc.Expr
	frame  dw.Frame
	called int64     // what the stack pointer was after the call, less the canonical frame address
	ret    *loc.Expr // the return address
}

// frame returns the frame of the spot. why says why that is not known.
func (ev *Evaluator) frame() (f *callFrame, why string, err error) {
	const none = "no call frame information says where the return address is"
	cfa, r, err := ev.CallFrame()
	if err != nil {
		return nil, "", err
	}
	own, ok, err := ev.u.Img.Data.FrameAt(ev.spot.At.Addr)
	if err != nil {
		return nil, "", err
	}
	if r.Code != reasons.None || !ok || own.Interrupts || own.First.Expr != nil || own.First.Reg != uint64(ev.Arch.SP) {
		return nil, none, nil
	}
	f = &callFrame{ev: ev, cfa: cfa, frame: own, called: -own.First.Off}
	if ev.Arch.Link == 0 {
		f.called += int64(ev.Arch.WordSize) // the call has pushed the return address
	}
	rule, known := own.Register(own.Returns)
	switch {
	case known:
		f.ret = f.saved(own.Returns, rule)
	case ev.Arch.Link != 0 && own.Returns == uint64(ev.Arch.Link):
		f.ret = ev.Register(own.Returns, 0)
	}
	if f.ret == nil {
		return nil, none, nil
	}
	return f, "", nil
}

// saved returns what a register was when the function was called, or nil.
func (f *callFrame) saved(n uint64, r dw.RegisterRule) *loc.Expr {
	ev := f.ev
	switch r.Kind {
	case dw.SavedSame:
		return f.register(n)
	case dw.SavedIn:
		return f.register(r.Reg)
	case dw.SavedAt:
		return ev.Deref(ev.Binary(ops.Add, f.cfa, ev.Const(uint64(r.Off))), ev.Arch.WordSize)
	case dw.SavedValue:
		return ev.Binary(ops.Add, f.cfa, ev.Const(uint64(r.Off)))
	}
	return nil
}

func (f *callFrame) register(n uint64) *loc.Expr {
	if eval.CheckRegister(f.ev.Arch, n).Code != reasons.None {
		return nil
	}
	return f.ev.Register(n, 0)
}

// before returns what a register was when the function was called, or nil.
func (f *callFrame) before(n uint64) *loc.Expr {
	rule, known := f.frame.Register(n)
	a := f.ev.Arch
	switch {
	case known:
		return f.saved(n, rule)
	case n == uint64(a.SP):
		return f.ev.Binary(ops.Add, f.cfa, f.ev.Const(uint64(f.called)))
	}
	c, err := f.ev.instructionsOf(f.ev.spot)
	if err != nil {
		return nil
	}
	if slices.Contains(a.Preserved, uint16(n)) {
		// Nothing is said where it is not saved yet, but also where a function need not preserve it (GCC 15 of functions that do not return;
		// preserve_none).
		if w := c.Changes(); w.Known && !w.Registers.Has(n) || f.frame.Saves(n) {
			return f.register(n)
		}
		return nil
	}
	x, err := f.ev.spot.U.Calls()
	if err != nil {
		return nil
	}
	if kept, err := x.Keeps(c, n); kept && err == nil {
		return f.register(n)
	}
	return nil
}

// inCaller returns an expression over the caller's registers as one over the spot's, or nil.
func (f *callFrame) inCaller(e *loc.Expr) *loc.Expr {
	if e == nil {
		return nil
	}
	switch e.Op {
	case ops.Const, ops.Addr:
		return e
	case ops.Reg:
		return f.before(e.K)
	case ops.Caller:
		return f.nested(e)
	}
	out := *e
	for _, x := range []**loc.Expr{&out.A, &out.B, &out.C} {
		was := *x
		if was == nil {
			continue
		}
		if *x = f.inCaller(was); *x == nil {
			return nil
		}
	}
	if e.Op == ops.Add {
		return f.ev.Binary(ops.Add, out.A, out.B) // which adds up offsets
	}
	return &out
}

// nested is inCaller for a value of the caller's own caller.
func (f *callFrame) nested(e *loc.Expr) *loc.Expr {
	out := &loc.Expr{Op: ops.Caller, A: f.inCaller(e.A)}
	last := &out.B
	for arm := e.B; arm != nil; arm = arm.B {
		if v := f.inCaller(arm.A); v != nil {
			*last = &loc.Expr{Op: ops.Arm, K: arm.K, A: v}
			last = &(*last).B
		}
	}
	if out.A == nil || out.B == nil {
		return nil
	}
	return out
}

// chosen returns the value that the return address names.
func (f *callFrame) chosen(known []eval.Passed) *loc.Expr {
	ev := f.ev
	size := ev.Arch.WordSize
	if f.frame.Signed {
		size = 6 // the others are the signature's: addresses have 48 bits
	}
	ret := f.ret
	if ev.Arch.LowBit {
		ret = ev.Binary(ops.And, ret, ev.Const(^uint64(1))) // which says what instruction set the caller has
	}
	last := known[len(known)-1].Return
	for last-known[0].Return > ops.MaxApart {
		known = known[1:]
	}
	return ev.Caller(ret, size, known)
}
