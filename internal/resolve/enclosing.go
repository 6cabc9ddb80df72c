package resolve

import (
	"bytes"

	"github.com/go-delve/delve/pkg/dwarf/op"

	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/eval"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/rule"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/types"
)

// A function that is nested in another one uses variables of that one's frame, to which a static link leads (DW_AT_static_link, DWARF 5
// section 3.3.5). The function around it stands at one of its calls then, nobody says at which.

// Enclosing answers about a variable of the function, which has a record, in which the spot's is nested. It completes the variable's entry.
func (ev *Evaluator) Enclosing(a *Answer, x *entries.Var, around int32) error {
	if err := x.Complete(); err != nil {
		return err
	}
	t, err := x.U.TypeOf(x.Type)
	if err != nil {
		t = types.VoidType
	}
	*a = Answer{Type: t}
	if err != nil || x.Constant.Form != 0 || x.Location.Form == 0 {
		return ev.Settle(a, x, t, err) // a constant, or nothing, in whatever frame
	}
	where, err := ev.atCalls(a, x, around)
	if err != nil || a.Reason.Code != reasons.None {
		return err
	}
	link, r, err := ev.staticLink()
	if err != nil || r.Code != reasons.None {
		a.Reason = r
		return err
	}
	own := ev.fbExpr
	ev.fbExpr = link
	defer func() { ev.fbExpr = own }()
	if a.Reason, err = ev.Locate(where.Expr, where.Sec, where.Off, &a.Loc); err != nil || a.Reason.Code != reasons.None {
		a.Loc = loc.Location{}
		return err
	}
	a.Raw = Raw{where.Expr, ev.u, where.Sec, where.Off}
	a.Loc.Rule, a.Because = where.Rule, "the static link leads to the frame of the function around this one, which has it in one place at all of its calls"
	return nil
}

// atCalls returns where a variable is in its function's frame at all calls of the function, or sets the reason.
func (ev *Evaluator) atCalls(a *Answer, x *entries.Var, around int32) (where entries.Chosen, err error) {
	lost := func(detail string) (entries.Chosen, error) {
		a.Reason = loc.Reason{Code: reasons.NotAtSite, Detail: detail}
		return entries.Chosen{}, nil
	}
	if x.Location.IsBlock() {
		where = entries.Chosen{Expr: x.Location.Bytes(), Sec: ".debug_info", Off: x.Off, Rule: rule.Whole}
	} else {
		code, err := ev.spot.U.Body.InstructionsIn(new(body.Code), around)
		if err != nil {
			return where, err
		}
		if code.Why != "" {
			return lost("where the function around this one calls is not known: " + code.Why)
		}
		for n := range code.Graph.Insns {
			if in, ok := code.Arch.Next(code.Graph.Bytes(int32(n))); !ok || !in.Call {
				continue
			}
			at := code.Graph.Insns[n]
			c, err := x.U.Choose(x.Location, x.Views, entries.Place{Addr: at.Addr + uint64(at.Size) - 1}, false)
			switch {
			case err != nil:
				return where, err
			case c.Rule == rule.None || where.Rule != rule.None && !bytes.Equal(c.Expr, where.Expr):
				return lost("the function around this one does not have it in one place at all of its calls")
			}
			where = c
		}
	}
	if !inFrame(where.Expr, x.U.Encoding()) {
		return lost("in the function around this one it is in no memory of the frame")
	}
	return where, nil
}

// inFrame reports whether an expression is a place relative to the frame, or one that a pointer there leads to.
func inFrame(expr []byte, e eval.Encoding) bool {
	for at := 0; at < len(expr); {
		o, err := eval.Decode(expr, at, e)
		if err != nil {
			return false
		}
		switch c := op.Opcode(o.Code); {
		case at == 0 && c == op.DW_OP_fbreg, at > 0 && (c == op.DW_OP_deref || c == op.DW_OP_plus_uconst):
		default:
			return false
		}
		at = o.Next
	}
	return len(expr) > 0
}

// staticLink returns the frame base of the function in which the spot's is nested.
func (ev *Evaluator) staticLink() (*loc.Expr, loc.Reason, error) {
	s := ev.spot
	e, err := s.Entry()
	if err != nil {
		return nil, loc.Reason{}, err
	}
	var link dw.Value
	if err := e.Attrs(func(a dw.Attr, v dw.Value) {
		if a == dw.AttrStaticLink {
			link = v
		}
	}); err != nil {
		return nil, loc.Reason{}, err
	}
	if link.Form == 0 {
		return nil, loc.Reason{Code: reasons.NoFrameInfo, Detail: "no DW_AT_static_link says where the frame of the function around this one is"}, nil
	}
	c := entries.Chosen{Expr: link.Bytes(), Sec: ".debug_info", Off: e.Off}
	if !link.IsBlock() {
		if c, err = s.U.Choose(link, dw.Value{}, s.At, false); err != nil {
			return nil, loc.Reason{}, err
		}
		if c.Rule == rule.None {
			return nil, loc.Reason{Code: reasons.NotAtSite, Detail: "the list at DW_AT_static_link does not cover the site"}, nil
		}
	}
	var l loc.Location
	if r, err := ev.evaluate(c.Expr, c.Sec, c.Off, &l); err != nil || r.Code != reasons.None {
		return nil, r, err
	}
	switch l.Kind {
	case loc.KindRegister, loc.KindMemory, loc.KindValue:
	default:
		return nil, unsupported("a DW_AT_static_link that is %v", l.Kind), nil
	}
	if link.IsBlock() && !ev.linkKept(l.Expr) {
		return nil, loc.Reason{Code: reasons.NotAtSite, Detail: "the register by which the frame of the function around this one is found has changed"}, nil
	}
	return l.Expr, loc.Reason{}, nil
}

// linkKept reports whether the registers of an expression that is said to hold in the whole function have at the spot what they had where it began. Those of the frame are known there.
func (ev *Evaluator) linkKept(e *loc.Expr) bool {
	s := ev.spot
	if s.At.Addr == s.Fun.Start {
		return true
	}
	c, err := ev.instructionsOf(s)
	kept := err == nil
	e.Walk(func(x *loc.Expr) {
		if a := ev.Arch; x.Op == ops.Reg && x.K != uint64(a.SP) && kept {
			frame, ok := s.U.Img.Code.FramePointer()
			if ok && x.K == frame {
				return
			}
			to, bits, ok := c.Held().Holds(x.K, s.At.Addr)
			kept = ok && to == x.K && int(bits) == 8*a.WordSize
		}
	})
	return kept
}
