package resolve

import (
	"bytes"
	"slices"

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
	if err != nil {
		return err
	}
	frame, given, r, err := ev.staticLink(link, around)
	if err != nil {
		return err
	}
	if a.Reason.Code != reasons.None {
		if r.Code == reasons.None {
			_, err = ev.nestedCopy(a, x, around, frame, given)
		}
		return err
	}
	if r.Code != reasons.None {
		a.Reason = r
		return nil
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

// staticLink returns the frame base of the function, which has a record, in which the spot's is nested.
func (ev *Evaluator) staticLink(link dw.Value, around int32) (frame *loc.Expr, given uint64, r loc.Reason, err error) {
	l, r, err := ev.base(link, "DW_AT_static_link")
	if err != nil || r.Code != reasons.None || !link.IsBlock() {
		return l.Expr, 0, r, err
	}
	given, ok := ev.linkAtSpot(l.Expr)
	if !ok {
		return nil, 0, loc.Reason{Code: reasons.NotAtSite, Detail: "the register by which the frame of the function around this one is found has changed, or is not set yet"}, nil
	}
	if _, plus, reads := readBy(l.Expr); reads && !ev.spot.U.Body.Unoptimized() {
		if stored, err := ev.linkStored(around, given, plus); stored == nil || err != nil {
			return nil, 0, loc.Reason{Code: reasons.NotAtSite, Detail: "the code of the function around this one does not show that it stores the address of its frame, to which the static link leads"}, err
		}
	}
	return l.Expr, given, loc.Reason{}, nil
}

// linkAtSpot sets the registers of an expression, which is said to hold in the whole function, to those that have at the spot what the expression means. A register of the frame is known there. given
// is the register in which the function was given it, if it is one. ok is false if none has it.
func (ev *Evaluator) linkAtSpot(e *loc.Expr) (given uint64, ok bool) {
	s := ev.spot
	c, err := ev.instructionsOf(s)
	given, ok = body.Followed, err == nil
	e.Walk(func(x *loc.Expr) {
		if x.Op != ops.Reg || x.K == uint64(ev.Arch.SP) || !ok {
			return
		}
		of := x.K
		if slices.Contains(ev.Arch.Preserved, uint16(x.K)) {
			// Nobody is given anything in a register that functions preserve. GCC names the one to which the function moves what it was given.
			if of, ok = movedTo(c, x.K, ev.Arch.Args); !ok {
				frame, known := s.U.Img.Code.FramePointer()
				ok = known && x.K == frame
				return
			}
		}
		if x.K, given = of, of; s.At.Addr == s.Fun.Start {
			return
		}
		var bits uint8
		x.K, bits, ok = c.Held().Holds(of, s.At.Addr)
		ok = ok && int(bits) == 8*ev.Arch.WordSize
	})
	return given, ok
}

// movedTo returns the register that is for no argument, of which a function moves to another one what it had where the function began. ok is false if that is none, or several.
func movedTo(c *body.Code, register uint64, args []uint16) (of uint64, ok bool) {
	if c.Why != "" {
		return 0, false
	}
	for n := range c.Graph.Insns {
		if n > 0 && c.Graph.Blocks[c.Graph.Block(int32(n))].First != int32(n) {
			if w, known := c.Arch.Writes(c.Graph.Bytes(int32(n - 1))); known && !w.Registers.Has(register) {
				continue // as before: what leads to an instruction is followed from its block's beginning
			}
		}
		was, moved := c.Held().Was(register, c.Graph.Insns[n].Addr)
		switch {
		case !moved || was == register || slices.Contains(args, uint16(was)):
		case ok && was != of:
			return 0, false
		default:
			of, ok = was, true
		}
	}
	return of, ok
}
