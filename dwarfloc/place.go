package dwarfloc

import (
	"errors"

	"github.com/go-delve/delve/pkg/dwarf/op"

	"github.com/bpfprologue/bpfprologue/internal/answers"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/eval"
	"github.com/bpfprologue/bpfprologue/internal/image"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/rule"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/types"
)

// variable returns the variable that an entry describes, as it is at the site.
func (s *Site) variable(x *varEntry, ev *evaluator) (*Variable, error) {
	v := new(Variable)
	if err := s.fill(v, x, ev); err != nil {
		return nil, err
	}
	return v, nil
}

// fill makes v the variable of an entry at a site.
func (s *Site) fill(v *Variable, x *varEntry, ev *evaluator) error {
	if err := x.complete(); err != nil {
		return err
	}
	if own := ev.u; x.u != own {
		// Another unit's global: its expression's indices and types refer to that unit.
		ev.use(x.u)
		defer ev.use(own)
	}
	*v = Variable{Name: x.u.Text(x.name), Role: RoleLocal, Entries: 1}
	if x.tag == dw.TagFormalParameter {
		v.Role = RoleParameter
	}
	t, err := x.u.typeOf(x.typ)
	return s.settle(v, x, ev, t, err)
}

// settle sets a variable's type, unless err says that it could not be read, and its
// location. Damage in one variable's description must not affect the others.
func (s *Site) settle(v *Variable, x *varEntry, ev *evaluator, t *types.Type, err error) error {
	v.Type, v.Site = types.VoidType, s
	if err == nil {
		v.Type = t
		err = s.place(v, x, ev)
	}
	if err == nil {
		return nil
	}
	var fe *image.FormatError
	if !errors.As(err, &fe) {
		return err
	}
	v.Loc, v.Reason = loc.Location{}, loc.Reason{Code: reasons.Damaged, Detail: err.Error()}
	return nil
}

// place sets a variable's location by the rules of loc.Rule.
func (s *Site) place(v *Variable, x *varEntry, ev *evaluator) error {
	var c chosen
	if err := s.fromDWARF(v, x, ev, &c); err != nil {
		return err
	}
	if decided, err := s.second(v, x, ev, &c); decided || err != nil {
		return err
	}
	err := s.judged(v, x, &c, ev)
	if err == nil && s.Kind != SiteEntry {
		v.LowBit, err = answers.LowBit(&v.Loc, v.Type)
	}
	return err
}

// fromDWARF sets the location that the debug information gives, and c to the expression
// that it chose.
func (s *Site) fromDWARF(v *Variable, x *varEntry, ev *evaluator, c *chosen) error {
	switch {
	case x.constant.Form != 0:
		if x.constant.IsBlock() || x.constant.Form == dw.FormData16 {
			v.Loc = ev.known(x.constant.Bytes(), v.Type)
		} else if x.constant.IsConstant() {
			v.Loc = loc.Location{Kind: loc.KindConstant, Expr: ev.Const(x.constant.U)}
		} else {
			str, err := x.u.StringValue(x.constant)
			if err != nil {
				return err
			}
			v.Loc = loc.Location{Kind: loc.KindBytes, Bytes: append([]byte(str), 0)}
		}
		v.Loc.Rule = rule.Constant
		return nil
	case x.location.Form == 0:
		v.Reason = loc.Reason{Code: reasons.OptimizedOut}
		return nil
	case x.location.IsBlock():
		*c = chosen{expr: x.location.Bytes(), sec: ".debug_info", off: x.off, rule: rule.Whole}
	default:
		var err error
		if *c, err = x.u.choose(x.location, x.views, s.here(), s.takesFirst(x)); err != nil {
			return err
		}
		if c.rule == rule.None {
			v.Reason = loc.Reason{Code: reasons.NotAtSite}
			if !c.others {
				v.Reason = loc.Reason{Code: reasons.OptimizedOut, Detail: "its location list is empty"}
			}
			return nil
		}
		if c.rule == rule.LaterView && (!s.bindsLater(x) || !x.u.code.TracksAssignments()) {
			v.Reason = loc.Reason{Code: reasons.NotAtSite, Detail: "it begins at a later line of this address"}
			return nil
		}
	}
	if s.early {
		if _, own := x.u.inFrame(x.location, s.fun.frame); own {
			v.Reason = loc.Reason{Code: reasons.NotAtSite, Detail: "the function's prologue has not stored it yet"}
			return nil
		}
	}
	v.raw = rawLocation{c.expr, ev.u, c.sec, c.off}
	l := &v.Loc
	r, err := ev.locate(c.expr, c.sec, c.off, l)
	if err == nil && r.Code == reasons.None && c.rule == rule.Whole && c.expr[0] == uint8(op.DW_OP_breg0)+uint8(ev.Arch.SP) {
		r, err = ev.frameIsSet()
	}
	if err == nil && r.Code == reasons.None {
		r = ev.notStored(l, v.Type, x, c)
	}
	if err != nil || r.Code != reasons.None {
		v.Loc, v.Reason = loc.Location{}, r
		return err
	}
	if o, err := eval.Decode(c.expr, 0, ev.Encoding); err == nil && op.Opcode(o.Code) == op.DW_OP_implicit_value && o.Next == len(c.expr) {
		*l = ev.known(o.Block, v.Type)
	}
	l.Rule = c.rule
	if x.u.code.GNU() && ev.narrowed(c.expr, l, v.Type) == unclear {
		l.Doubt = reasons.Contradictory
	}
	if !x.u.code.GNU() && ev.misusesFrame(l, v.Type) {
		v.Loc, v.Reason = loc.Location{}, loc.Reason{Code: reasons.Contradictory, Detail: "arithmetic on the address of a stack slot: a read is missing"}
		return nil
	}
	if !x.u.code.GNU() && numberAsAddress(l, ev.Arch.WordSize) {
		v.Loc, v.Reason = loc.Location{}, loc.Reason{Code: reasons.Contradictory, Detail: "a number of fewer bits than an address has, as an address"}
		return nil
	}
	if !x.u.code.GNU() && shiftedOut(l) {
		v.Loc, v.Reason = loc.Location{}, loc.Reason{Code: reasons.Contradictory, Detail: nothingLeft}
		return nil
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

// bindsLater reports whether a variable whose location begins at a later view of the
// site's address already has it at the site. It does where a body begins: parameters
// are bound one view after the entry. Elsewhere the later view can belong to a later
// line, which may be the one that assigns the variable; what an implicit pointer points to
// is mostly a variable of a caller, which the body assigns through the pointer.
func (s *Site) bindsLater(x *varEntry) bool {
	if x.pointee {
		return false
	}
	return s.Kind != SiteLine || x.tag == dw.TagFormalParameter && s.Addr == s.body
}

// takesFirst reports whether the first list entry at the site's address is the variable's:
// that is an argument's where a body begins. Other variables have no value before.
func (s *Site) takesFirst(x *varEntry) bool {
	if x.tag != dw.TagFormalParameter {
		return false
	}
	return s.Kind == SiteEntry || s.Kind == SiteInline || s.Kind == SiteLine && s.Addr == s.body
}

// known returns the location of an object whose bytes the debug information lists. Without
// a type, only they say how large the object is.
func (ev *evaluator) known(b []byte, t *types.Type) loc.Location {
	if t.Kind == types.Void {
		return loc.Location{Kind: loc.KindBytes, Bytes: append([]byte(nil), b...)}
	}
	return ev.Constant(b)
}

// fillPadding replaces a location's missing pieces by zeros if they hold only
// padding: the object is complete without them.
func (ev *evaluator) fillPadding(l *loc.Location, t *types.Type) error {
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
