// Package resolve answers where a variable is at a spot in a body, and whether what is there is what was passed.
//
// An Evaluator, begun at a spot, resolves entries of variables: Resolve has package entries choose the expression that holds there,
// evaluates it, asks the calling convention where a function begins, and asks package judge whether the value may be another one than was
// passed. An Answer has a location, or a reason.
//
// The package knows units, records and code, and no Site: package dwarfloc finds sites, and prints what is known of them.
package resolve

import (
	"cmp"
	"errors"

	"github.com/go-delve/delve/pkg/dwarf/op"

	"github.com/bpfprologue/bpfprologue/internal/answers"
	"github.com/bpfprologue/bpfprologue/internal/arithmetic"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/eval"
	"github.com/bpfprologue/bpfprologue/internal/image"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/rule"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/types"
)

// Answer is what is known of a variable at a spot.
type Answer struct {
	Type   *types.Type
	Loc    loc.Location
	Reason loc.Reason // zero if Loc is where the whole value is
	LowBit bool       // only bit 0 of the value counts
	// Because says what decided whether a parameter is what was passed, or is "".
	Because string
	Raw     Raw
}

// Raw is the DWARF that a location came from.
type Raw struct {
	Expr []byte
	U    *entries.Unit // that the expression refers to
	Sec  string
	Off  uint64
}

// Located reports whether the whole value is at Loc.
func (a *Answer) Located() bool { return a.Reason.Code == reasons.None }

// Resolve answers about the variable that an entry describes, which it completes.
func (ev *Evaluator) Resolve(a *Answer, x *entries.Var) error {
	if err := x.Complete(); err != nil {
		return err
	}
	if own := ev.u; x.U != own {
		// Another unit's global: its expression's indices and types refer to that unit.
		ev.use(x.U)
		defer ev.use(own)
	}
	t, err := ev.giveType(x)
	return ev.Settle(a, x, t, err)
}

// giveType returns the type of a variable, for an answer.
func (ev *Evaluator) giveType(x *entries.Var) (*types.Type, error) {
	if ev.unclaimed {
		return x.U.TypeOf(x.Type) // what learns gives it to nobody
	}
	return x.U.GiveType(x.Type)
}

// Settle is Resolve for an entry that is complete. It sets the type, unless err says that it could not be read.
// Damage in one variable's description must not affect the others.
func (ev *Evaluator) Settle(a *Answer, x *entries.Var, t *types.Type, err error) error {
	*a = Answer{Type: types.VoidType}
	if err == nil {
		a.Type = t
		err = ev.settle(a, x)
	}
	if err == nil {
		return nil
	}
	var fe *image.FormatError
	if !errors.As(err, &fe) {
		return err
	}
	ev.lacked = true
	a.Loc, a.Reason = loc.Location{}, loc.Reason{Code: reasons.Damaged, Detail: err.Error()}
	return nil
}

// settle sets a variable's location by the rules of loc.Rule: what the debug information says, then what the calling convention
// does, and then whether it is the passed value.
func (ev *Evaluator) settle(a *Answer, x *entries.Var) error {
	c := &ev.chosen
	*c = entries.Chosen{}
	if err := ev.FromDWARF(a, x, c); err != nil {
		return err
	}
	if claimed, err := ev.claimed(a, x); claimed || err != nil {
		return err
	}
	if decided, err := ev.second(a, x, c); decided || err != nil {
		return err
	}
	err := ev.judged(a, x, c)
	if a.Loc.Pointee != reasons.None {
		a.Because = cmp.Or(a.Because, "what the debug information says") + "; but what it points to is doubtful: " + ev.pointed
	}
	if err == nil && ev.spot.Kind != entries.Entry {
		a.LowBit, err = answers.LowBit(&a.Loc, a.Type)
	}
	return err
}

// FromDWARF sets the location that the debug information gives, and c to the expression
// that it chose.
func (ev *Evaluator) FromDWARF(v *Answer, x *entries.Var, c *entries.Chosen) error {
	s := ev.spot
	switch {
	case x.Constant.Form != 0:
		if x.Constant.IsBlock() || x.Constant.Form == dw.FormData16 {
			v.Loc = ev.known(x.Constant.Bytes(), v.Type)
		} else if x.Constant.IsConstant() {
			v.Loc = loc.Location{Kind: loc.KindConstant, Expr: ev.Const(x.Constant.U)}
		} else {
			str, err := x.U.StringValue(x.Constant)
			if err != nil {
				return err
			}
			v.Loc = loc.Location{Kind: loc.KindBytes, Bytes: append([]byte(str), 0)}
		}
		v.Loc.Rule = rule.Constant
		return nil
	case x.Location.Form == 0:
		v.Reason = loc.Reason{Code: reasons.OptimizedOut}
		return nil
	case x.Location.IsBlock():
		*c = entries.Chosen{Expr: x.Location.Bytes(), Sec: ".debug_info", Off: x.Off, Rule: rule.Whole}
	default:
		var err error
		if *c, err = x.U.Choose(x.Location, x.Views, s.At, takesFirst(s, x)); err != nil {
			return err
		}
		if c.Rule == rule.None {
			v.Reason = loc.Reason{Code: reasons.NotAtSite}
			if !c.Others {
				v.Reason = loc.Reason{Code: reasons.OptimizedOut, Detail: "its location list is empty"}
			}
			return nil
		}
		if c.Rule == rule.LaterView && (!bindsLater(s, x) || !x.U.Body.TracksAssignments()) {
			v.Reason = loc.Reason{Code: reasons.NotAtSite, Detail: "it begins at a later line of this address"}
			return nil
		}
	}
	if s.Early {
		if _, own := x.U.InFrame(x.Location, s.Fun.Frame); own {
			v.Reason = loc.Reason{Code: reasons.NotAtSite, Detail: "the function's prologue has not stored it yet"}
			return nil
		}
	}
	v.Raw = Raw{c.Expr, ev.u, c.Sec, c.Off}
	l := &v.Loc
	ev.movedBits = 0
	r, err := ev.Locate(c.Expr, c.Sec, c.Off, l)
	if err == nil && r.Code == reasons.None && c.Rule == rule.Whole && c.Expr[0] == uint8(op.DW_OP_breg0)+uint8(ev.Arch.SP) {
		r, err = ev.frameIsSet()
	}
	if err == nil && r.Code == reasons.None {
		r = ev.notStored(l, v.Type, x, c)
	}
	if err == nil && r.Code == reasons.None && c.Rule == rule.Whole {
		r, err = ev.ended(l)
	}
	if err == nil && r.Code == reasons.None {
		r, err = ev.overwritten(l)
	}
	if err != nil || r.Code != reasons.None {
		v.Loc, v.Reason = loc.Location{}, r
		return err
	}
	if o, err := eval.Decode(c.Expr, 0, ev.Encoding); err == nil && op.Opcode(o.Code) == op.DW_OP_implicit_value && o.Next == len(c.Expr) {
		*l = ev.known(o.Block, v.Type)
	}
	l.Rule = c.Rule
	if ev.movedBits > 0 {
		if l.Rule = rule.Moved; !ev.enoughMoved(l, v.Type) {
			v.Loc, v.Reason = loc.Location{}, loc.Reason{Code: reasons.EntryValueOnly, Detail: "the register to which it was moved has not all of it"}
			return nil
		}
	}
	if has, enough := fromCaller(l); has {
		if e := l.Expr; e != nil && (e.Op == ops.SExt || e.Op == ops.ZExt) && e.A.Op == ops.Caller && v.Type.Size == int64(e.Size) {
			l.Expr = e.A // the parameter itself: as wide as it is fetched
		}
		if l.Rule = rule.Caller; !enough {
			v.Loc, v.Reason = loc.Location{}, loc.Reason{Code: reasons.EntryValueOnly, Detail: "what is computed from it depends on its upper bits"}
			return nil
		}
	}
	if x.U.Body.GNU() && !ev.plain {
		width, changed := ev.narrowed(c.Expr, l, v.Type)
		if ev.lacked = ev.lacked || changed; width == arithmetic.Unclear {
			l.Doubt = reasons.Contradictory
			v.Because = "the note does not say how wide its arithmetic is, and a register has more bits"
		}
	}
	if !x.U.Body.GNU() && ev.misusesFrame(l, v.Type) {
		v.Loc, v.Reason = loc.Location{}, loc.Reason{Code: reasons.Contradictory, Detail: "arithmetic on the address of a stack slot: a read is missing"}
		return nil
	}
	if !x.U.Body.GNU() && arithmetic.NumberAsAddress(l, ev.Arch.WordSize) {
		v.Loc, v.Reason = loc.Location{}, loc.Reason{Code: reasons.Contradictory, Detail: "a number of fewer bits than an address has, as an address"}
		return nil
	}
	if !x.U.Body.GNU() && arithmetic.ShiftedOut(l) {
		v.Loc, v.Reason = loc.Location{}, loc.Reason{Code: reasons.Contradictory, Detail: arithmetic.NothingLeft}
		return nil
	}
	if ev.plain {
		if x.U.Body.GNU() {
			extract(l) // as what is lacking is asked for
		}
	} else if because, err := ev.lacking(c, l, v.Type, x.U.Body.GNU()); err != nil {
		return err
	} else if because != "" {
		l.Doubt, v.Because, ev.lacked = reasons.Contradictory, because, true
	} else if because, err := ev.pointeeLacks(l, v.Type, x.U.Body.GNU()); err != nil {
		return err
	} else if because != "" {
		if ev.lacked = true; followed(v.Type) {
			l.Doubt, v.Because = reasons.Contradictory, because
		} else {
			l.Pointee, ev.pointed = reasons.Contradictory, because
		}
	}
	switch {
	case l.Kind == loc.KindImplicitPointer:
		v.Reason = loc.Reason{Code: reasons.ImplicitPointer}
	case eval.MissingPart(l).Code != reasons.None:
		if err := ev.fillPadding(l, v.Type); err != nil {
			return err
		}
		v.Reason = eval.MissingPart(l)
	}
	return nil
}

// lacking says what a compiler's note of a location lacks, or "".
func (ev *Evaluator) lacking(c *entries.Chosen, l *loc.Location, t *types.Type, gnu bool) (because string, err error) {
	if stale, err := ev.stale(l, t); stale || err != nil {
		return "no instruction stores some bytes of the object before the probe", err
	}
	if gnu {
		if ev.storedNext(l, t, c) {
			return "an instruction behind the probe stores the slot before any reads it", nil
		}
		if back, err := ev.keptBack(l, t); back || err != nil {
			return "the code stores it behind the probe, from a register that had what is there and has changed since", err
		}
		if early, err := ev.referredStoredEarly(l, t); early || err != nil {
			return "what it refers to may be stored by an instruction of the body's before the probe", err
		}
		return ev.fields(l, t)
	}
	if unread, err := ev.unread(c, l, t); unread || err != nil {
		return "a pointer of a caller's is in the slot to the address of which the note adds: a read is missing", err
	}
	if unused, err := ev.leftBehind(l, t); unused || err != nil {
		return "no instruction reads the slot any more", err
	}
	if arithmetic.AddsNothing(c.Expr, ev.Encoding) {
		return "the note has 0 in place of a part of the value, which the body does not use", nil
	}
	if narrow, err := ev.storedNarrow(l, t); narrow || err != nil {
		return "the code stores fewer bytes to the slot than the type has", err
	}
	return "", nil
}

// bindsLater reports whether a variable whose location begins at a later view of the
// site's address already has it at the site. It does where a body begins: parameters
// are bound one view after the entry. Elsewhere the later view can belong to a later
// line, which may be the one that assigns the variable; what an implicit pointer points to
// is mostly a variable of a caller, which the body assigns through the pointer.
func bindsLater(s *entries.Spot, x *entries.Var) bool {
	if x.Pointee {
		return false
	}
	return s.Kind != entries.Line || x.Tag == dw.TagFormalParameter && s.Addr == s.Body
}

// takesFirst reports whether the first list entry at the site's address is the variable's:
// that is an argument's where a body begins. Other variables have no value before.
func takesFirst(s *entries.Spot, x *entries.Var) bool {
	if x.Tag != dw.TagFormalParameter {
		return false
	}
	return s.Kind == entries.Entry || s.Kind == entries.Inline || s.Kind == entries.Line && s.Addr == s.Body
}

// known returns the location of an object whose bytes the debug information lists. Without
// a type, only they say how large the object is.
func (ev *Evaluator) known(b []byte, t *types.Type) loc.Location {
	if t.Kind == types.Void {
		return loc.Location{Kind: loc.KindBytes, Bytes: append([]byte(nil), b...)}
	}
	return ev.Constant(b)
}

// fillPadding replaces a location's missing pieces by zeros if they hold only
// padding: the object is complete without them.
func (ev *Evaluator) fillPadding(l *loc.Location, t *types.Type) error {
	at := uint64(0)
	for i := range l.Pieces {
		p := &l.Pieces[i]
		if p.Loc.Kind == loc.KindNone {
			pad, err := t.Padding(at, at+p.BitSize)
			if err != nil {
				return err
			}
			if pad {
				p.Loc, p.Reason = loc.Location{Kind: loc.KindConstant, Expr: ev.Const(0)}, loc.Reason{}
			}
		}
		at += p.BitSize
	}
	return nil
}
