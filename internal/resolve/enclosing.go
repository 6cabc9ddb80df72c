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
)

// A function that is nested in another one uses variables of that one's frame, to which a static link leads (DW_AT_static_link, DWARF 5
// section 3.3.5). The function around it stands at one of its calls then, nobody says at which.

// Enclosing answers about a variable of the function, which has a record, in which the spot's is nested, and to whose frame link leads. It completes the variable's entry.
func (ev *Evaluator) Enclosing(a *Answer, x *entries.Var, around int32, link dw.Value) error {
	if err := x.Complete(); err != nil {
		return err
	}
	t, err := x.U.TypeOf(x.Type)
	if err != nil || x.Constant.Form != 0 || x.Location.Form == 0 {
		return ev.Settle(a, x, t, err) // a constant, or nothing, in whatever frame
	}
	*a = Answer{Type: t}
	where, err := ev.atCalls(a, x, around)
	if err != nil || a.Reason.Code != reasons.None {
		return err
	}
	frame, r, err := ev.staticLink(link)
	if err != nil || r.Code != reasons.None {
		a.Reason = r
		return err
	}
	own := ev.fbExpr
	ev.fbExpr = frame
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
		calls, err := callsOf(ev.spot.U, around)
		if err != nil {
			return where, err
		}
		if calls.why != "" {
			return lost("where the function around this one calls is not known: " + calls.why)
		}
		for _, addr := range calls.in {
			c, err := x.U.Choose(x.Location, x.Views, entries.Place{Addr: addr}, false)
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

// callInsns are the calls of a function: an address in each instruction, behind which it goes on.
type callInsns struct {
	in  []uint64
	why string // they are not known
}

// callsOf reads those of a function once.
func callsOf(u *entries.Unit, rec int32) (*callInsns, error) {
	type key int32
	if known, ok := u.Derived.Load(key(rec)); ok {
		return known.(*callInsns), nil
	}
	code, err := u.Body.InstructionsIn(new(body.Code), rec)
	if err != nil {
		return nil, err
	}
	calls := &callInsns{why: code.Why}
	for n := 0; calls.why == "" && n < len(code.Graph.Insns); n++ {
		if in, ok := code.Arch.Next(code.Graph.Bytes(int32(n))); ok && in.Call {
			at := &code.Graph.Insns[n]
			calls.in = append(calls.in, at.Addr+uint64(at.Size)-1)
		}
	}
	u.Derived.Store(key(rec), calls)
	return calls, nil
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
func (ev *Evaluator) staticLink(link dw.Value) (*loc.Expr, loc.Reason, error) {
	l, r, err := ev.base(link, "DW_AT_static_link")
	if err != nil || r.Code != reasons.None {
		return nil, r, err
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
