package resolve

import (
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/rule"
	"github.com/bpfprologue/bpfprologue/loc"
)

// LLVM describes the slots of a frame by the stack or frame pointer, as these are between the function's prologue and its end: the
// function's DW_AT_frame_base is such a register, and DW_OP_breg has one. Its lists do not end where the frame does, so at a
// return instruction [%rsp+4] would be a part of the return address, and [%rbp-4] the caller's. Call frame information says how
// far the canonical frame address is above the register in the body, and what it is at the site. (GCC's slots are relative to that
// address, or its lists follow the stack pointer.)

// FrameBase returns the base of DW_OP_fbreg: the value of the function's
// DW_AT_frame_base, usually DW_OP_call_frame_cfa.
func (ev *Evaluator) FrameBase() (*loc.Expr, loc.Reason, error) {
	if ev.fbExpr != nil {
		return ev.fbExpr, loc.Reason{}, nil
	}
	fun, err := ev.spot.Function()
	if err != nil {
		return nil, loc.Reason{}, err
	}
	frame := fun.Frame
	if frame.Form == 0 {
		return nil, loc.Reason{Code: reasons.NoFrameInfo, Detail: "the function has no DW_AT_frame_base"}, nil
	}
	if entries.InRegister(frame) {
		if r, err := ev.frameIsSet(); err != nil || r.Code != reasons.None {
			return nil, r, err
		}
	}
	if own := ev.u; own != ev.spot.U {
		ev.use(ev.spot.U) // the function's unit, whichever has the variable
		defer ev.use(own)
	}
	l, r, err := ev.base(frame, "DW_AT_frame_base")
	if err != nil || r.Code != reasons.None {
		return nil, r, err
	}
	if l.Kind == loc.KindRegister {
		// The prologue sets up the frame pointer: at the function's entry it is still
		// the caller's. Only the stack pointer is right from the start.
		if a := ev.Arch; ev.spot.At.Addr == fun.Start && l.Expr.K != uint64(a.SP) {
			return nil, loc.Reason{Code: reasons.NotAtSite, Detail: a.RegisterName(l.Expr.K) + " is not set up yet at the function's entry"}, nil
		}
		base, r, err := ev.Base(l.Expr.K)
		if err != nil || r.Code != reasons.None {
			return nil, r, err
		}
		if base != nil {
			l.Expr = base
		}
	}
	ev.fbExpr = l.Expr
	return l.Expr, loc.Reason{}, nil
}

// base evaluates an attribute that says where a frame is, by an expression or a list. A register stands for its contents there, and a bare
// expression for its value (DWARF 5 section 3.3.5).
func (ev *Evaluator) base(v dw.Value, attribute string) (l loc.Location, r loc.Reason, err error) {
	expr, sec, off := v.Bytes(), ".debug_info", ev.u.Off
	if !v.IsBlock() {
		c, err := ev.u.Choose(v, dw.Value{}, ev.spot.At, false)
		if err != nil {
			return l, r, err
		}
		if c.Rule == rule.None {
			return l, loc.Reason{Code: reasons.NoFrameInfo, Detail: "the list at " + attribute + " does not cover the site"}, nil
		}
		expr, sec, off = c.Expr, c.Sec, c.Off
	}
	if r, err = ev.evaluate(expr, sec, off, &l); err != nil || r.Code != reasons.None {
		return l, r, err
	}
	switch l.Kind {
	case loc.KindRegister, loc.KindMemory, loc.KindValue:
		return l, r, nil
	}
	return l, unsupported("a %s that is %v", attribute, l.Kind), nil
}

// notSetUp is why there is no slot before the function's prologue has made the frame.
var notSetUp = loc.Reason{Code: reasons.NotAtSite, Detail: "it is relative to a stack frame that the function has not set up yet"}

// frameIsSet returns the reason for a slot relative to the stack or frame pointer at the
// entry of a function whose prologue has yet to set that. Compilers that describe a slot
// this way for a whole scope mean the code after the prologue (clang; GCC without
// optimization).
func (ev *Evaluator) frameIsSet() (loc.Reason, error) {
	at, err := ev.AtEntry()
	if err != nil || !at {
		return loc.Reason{}, err
	}
	steady, err := ev.u.Img.Data.SteadyFrame(ev.spot.At.Addr)
	if err != nil || steady {
		return loc.Reason{}, err
	}
	return notSetUp, nil
}

// Base returns what a register had in the function's body if it is one that the function's slots are relative to, and has something
// else at the site. It returns nil for a register that has the same, or of which nothing shows that it has not.
func (ev *Evaluator) Base(n uint64) (*loc.Expr, loc.Reason, error) {
	s := ev.spot
	stack := n == uint64(ev.Arch.SP)
	if frame, ok := s.U.Img.Code.FramePointer(); s.U.Body.GNU() || !stack && (!ok || n != frame) {
		return nil, loc.Reason{}, nil
	}
	frames := new(dw.CFARules)
	if ev.shared != nil {
		frames = &ev.shared.frames
	}
	rules, whole, err := frames.Rules(ev.u.Img.Data, s.At.Addr)
	if err != nil || !whole {
		return nil, loc.Reason{}, err
	}
	here := rules.At(s.At.Addr)
	var above int64
	var from uint64
	known := false
	if stack {
		// A function that calls others may push what it passes: the offset at the prologue's end counts, not the largest one.
		if from, known, err = s.U.PrologueMark(rules.Code.Lo, rules.Code.Hi); err != nil || !known {
			return nil, loc.Reason{}, err
		}
		if rules.Unset(from, s.At.Addr) {
			return nil, notSetUp, nil
		}
		body, entry := rules.At(from), rules.At(rules.Code.Lo)
		above, known = body.Off, body.Of(n) && here.Of(n) && body.Off != entry.Off
	} else if !here.Of(n) {
		above, from, known = rules.First(n)
	}
	switch {
	case !known || here.Of(n) && here.Off == above:
		return nil, loc.Reason{}, nil
	case s.At.Addr < from:
		return nil, notSetUp, nil
	}
	cfa, r, err := ev.CallFrame()
	if err != nil || r.Code != reasons.None {
		return nil, r, err
	}
	return ev.Binary(ops.Add, cfa, ev.Const(uint64(-above))), loc.Reason{}, nil
}
