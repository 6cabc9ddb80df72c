package dwarfloc

import (
	"bytes"
	"errors"

	"github.com/go-delve/delve/pkg/dwarf/op"

	"github.com/bpfprologue/bpfprologue/image"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/eval"
	"github.com/bpfprologue/bpfprologue/internal/index"
	"github.com/bpfprologue/bpfprologue/loc"
)

// Role says what a variable is to the function at a site.
type Role uint8

const (
	Parameter Role = iota
	Local
	Global
	Given // a register, memory, a constant or a result that a definition names
)

// String returns "parameter", "local", "global" or "given".
func (r Role) String() string { return [...]string{"parameter", "local", "global", "given"}[r] }

// Variable is a variable as one site sees it: its type, and either a location or
// the reason why there is none.
type Variable struct {
	Name   string
	Role   Role
	Type   *Type
	Loc    loc.Location
	Reason loc.Reason // zero when Loc is where the whole value is
	// Entries is how many entries of the debug information describe the variable at
	// the site. GCC 12 describes some parameters twice, mostly with equal locations.
	Entries int
	// Bits is the size of a bit-field that Follow has found, else 0. Its location is
	// that of the bits alone, extended.
	Bits int
	// Wrong says what was wrong with a path, for the reasons NoSuchMember and
	// TypeMismatch of Follow; else it is nil.
	Wrong *PathError

	raw rawLocation
}

// Located reports whether the whole value is at Loc.
func (v *Variable) Located() bool { return v.Reason.Code == loc.ReasonNone }

// rawLocation is the DWARF that a location came from.
type rawLocation struct {
	expr []byte
	enc  eval.Encoding
	sec  string
	off  uint64
}

// Expression returns the DWARF expression that the location came from, the section
// it is in and an offset there: its own in a section of location lists, that of
// the variable's entry in .debug_info. It is nil for a constant.
func (v *Variable) Expression() (expr []byte, section string, off uint64) {
	_ = guarded(func() error {
		expr = bytes.Clone(v.raw.expr) // which goes with the file
		return nil
	})
	return expr, v.raw.sec, v.raw.off
}

// ExpressionText prints the operations of the DWARF expression that the location came from:
// "DW_OP_breg7 0x6 DW_OP_stack_value". It is "" for a constant.
func (v *Variable) ExpressionText() string {
	expr, _, _ := v.Expression()
	return eval.ExpressionText(expr, v.raw.enc)
}

// varEntry is an entry of a variable as it stands.
type varEntry struct {
	u        *unit
	off      uint64
	tag      dw.Tag
	name     dw.Value
	origin   dw.Value
	typ      dw.Value
	location dw.Value
	constant dw.Value
	views    dw.Value
	decl     bool
	external bool
}

func (u *unit) readVar(e dw.Entry) (varEntry, error) {
	x, _, err := u.readVarEnd(e)
	return x, err
}

// readVarEnd returns the position after the entry as well.
func (u *unit) readVarEnd(e dw.Entry) (x varEntry, end int, err error) {
	x.u, x.off, x.tag = u, e.Off, e.Tag()
	r := e.Attributes()
	for {
		a, v, ok := r.Next()
		if !ok {
			return x, r.End(), r.Err
		}
		switch a {
		case dw.AttrName:
			x.name = v
		case dw.AttrAbstractOrigin, dw.AttrSpecification:
			x.origin = v
		case dw.AttrType:
			x.typ = v
		case dw.AttrLocation:
			x.location = v
		case dw.AttrConstValue:
			x.constant = v
		case dw.AttrGNULocviews:
			x.views = v
		case dw.AttrDeclaration:
			x.decl = v.U != 0
		case dw.AttrExternal:
			x.external = v.U != 0
		}
	}
}

// complete takes from a variable's origins what its own entry leaves out.
func (x *varEntry) complete() error {
	cur := *x
	for range index.MaxOrigins {
		if cur.origin.Form == 0 || x.name.Form != 0 && x.typ.Form != 0 && x.described() {
			return nil
		}
		e, err := cur.u.Target(cur.origin)
		if err != nil {
			return err
		}
		if cur, err = x.u.img.of(e.Unit).readVar(e); err != nil {
			return err
		}
		if err := x.inherit(&cur); err != nil {
			return err
		}
	}
	return nil
}

// variable resolves an entry at a site.
func (s *Site) variable(x *varEntry, ev *evaluator) (*Variable, error) {
	if err := x.complete(); err != nil {
		return nil, err
	}
	if own := ev.u; x.u != own {
		// A global of another unit: indices and types in its expression are that unit's.
		ev.use(x.u)
		defer ev.use(own)
	}
	v := &Variable{Name: x.u.Text(x.name), Role: Local, Entries: 1}
	if x.tag == dw.TagFormalParameter {
		v.Role = Parameter
	}
	t, err := x.u.typeOf(x.typ)
	return v, s.settle(v, x, ev, t, err)
}

// settle gives a variable its type, unless reading that was an error, and its
// location. Damage in one variable's description spoils no other's.
func (s *Site) settle(v *Variable, x *varEntry, ev *evaluator, t *Type, err error) error {
	v.Type = voidType
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
	v.Loc, v.Reason = loc.Location{}, loc.Reason{Code: loc.ReasonDamaged, Detail: err.Error()}
	return nil
}

// place finds a variable's location by the rules of Rule.
func (s *Site) place(v *Variable, x *varEntry, ev *evaluator) error {
	var c chosen
	switch {
	case x.constant.Form != 0:
		if x.constant.IsBlock() || x.constant.Form == dw.FormData16 {
			v.Loc = ev.Constant(x.constant.Bytes())
		} else if x.constant.IsConstant() {
			v.Loc = loc.Location{Kind: loc.KindConstant, Expr: ev.Const(x.constant.U)}
		} else {
			str, err := x.u.StringValue(x.constant)
			if err != nil {
				return err
			}
			v.Loc = loc.Location{Kind: loc.KindBytes, Bytes: append([]byte(str), 0)}
		}
		v.Loc.Rule = loc.RuleConstant
		return nil
	case x.location.Form == 0:
		v.Reason = loc.Reason{Code: loc.ReasonOptimizedOut}
		return nil
	case x.location.IsBlock():
		c = chosen{expr: x.location.Bytes(), sec: ".debug_info", off: x.off, rule: loc.RuleWhole}
	default:
		var err error
		if c, err = x.u.choose(x.location, x.views, s.Addr, s.View); err != nil {
			return err
		}
		if c.rule == loc.RuleNone {
			v.Reason = loc.Reason{Code: loc.ReasonNotAtSite}
			if !c.others {
				v.Reason = loc.Reason{Code: loc.ReasonOptimizedOut, Detail: "its location list is empty"}
			}
			return nil
		}
		if c.rule == loc.RuleLaterView && !s.bindsLater(x) {
			v.Reason = loc.Reason{Code: loc.ReasonNotAtSite, Detail: "it begins at a later line of this address"}
			return nil
		}
	}
	if s.early {
		if _, own := x.u.inFrame(x.location, s.fun.frame); own {
			v.Reason = loc.Reason{Code: loc.ReasonNotAtSite, Detail: "the function's prologue has not stored it yet"}
			return nil
		}
	}
	v.raw = rawLocation{c.expr, ev.Encoding, c.sec, c.off}
	l, r, err := ev.locate(c.expr, c.sec, c.off)
	if err == nil && r.Code == loc.ReasonNone && c.rule == loc.RuleWhole && c.expr[0] == uint8(op.DW_OP_breg0)+uint8(ev.Arch.SP) {
		r, err = ev.frameIsSet()
	}
	if err == nil && r.Code == loc.ReasonNone {
		r = ev.notStored(&l, v.Type, &c)
	}
	if err != nil || r.Code != loc.ReasonNone {
		v.Reason = r
		return err
	}
	l.Rule = c.rule
	v.Loc = l
	switch {
	case l.Kind == loc.KindImplicitPointer:
		v.Reason = loc.Reason{Code: loc.ReasonImplicitPointer}
	case l.Missing():
		if err := ev.fillPadding(&v.Loc, v.Type); err != nil {
			return err
		}
		if v.Loc.Missing() {
			v.Reason = loc.Reason{Code: loc.ReasonMissingPiece}
		}
	}
	return nil
}

// bindsLater reports whether a variable whose location begins at a later view of the
// site's address has that location at the site. So it is where a body begins, whose
// parameters are bound a few views behind the mark of the entry. Elsewhere the later
// view is behind a later line, which may be the one that assigns the variable.
func (s *Site) bindsLater(x *varEntry) bool {
	return s.Kind != Line || x.tag == dw.TagFormalParameter && s.Addr == s.body
}

// abstract returns the entry that describes the function itself, without a place:
// the origin of an inlined instance or of a clone. ok is false when the site's own
// entry is all there is.
func (s *Site) abstract() (e dw.Entry, ok bool, err error) {
	origin := s.origin
	u := s.u
	for i := 0; origin.Form != 0 && i < index.MaxOrigins; i++ {
		if e, err = u.Target(origin); err != nil {
			return dw.Entry{}, false, err
		}
		u, ok, origin = s.u.img.of(e.Unit), true, dw.Value{}
		if err := e.Attrs(func(a dw.Attr, v dw.Value) {
			if a == dw.AttrAbstractOrigin {
				origin = v
			}
		}); err != nil {
			return dw.Entry{}, false, err
		}
	}
	return e, ok, nil
}

// inherit takes from one origin, which may be in another unit.
func (x *varEntry) inherit(d *varEntry) error {
	if x.name.Form == 0 && d.name.Form != 0 {
		x.name = d.name
		if x.u != d.u {
			x.name = dw.BlockValue(dw.FormString, []byte(d.u.Text(d.name)))
		}
	}
	if x.typ.Form == 0 && d.typ.Form != 0 {
		x.typ = d.typ
		if x.u != d.u {
			_, off, err := d.u.Ref(d.typ)
			if err != nil {
				return err
			}
			x.typ = dw.Value{Form: dw.FormRefAddr, U: off}
		}
	}
	if !x.described() {
		x.constant = d.constant
	}
	x.external = x.external || d.external
	return nil
}

// better reports whether x says more about a variable's place than y, another
// description of the same variable at the same site. For a parameter that a
// .constprop clone lost, GCC (12 is where it was seen) writes the register that
// callers no longer set, and behind it the constant that took the parameter's
// place; so what is fixed wins. Else the first with a location does.
func (x *varEntry) better(y *varEntry) bool {
	return x.fixed() && !y.fixed() || x.described() && !y.described()
}

// described reports whether an entry says anything about the variable's place.
func (x *varEntry) described() bool { return x.location.Form != 0 || x.constant.Form != 0 }

// fixed reports whether an entry gives the variable a value that depends on
// neither registers nor memory: a constant, or an address in the image.
func (x *varEntry) fixed() bool {
	if x.constant.Form != 0 {
		return true
	}
	n := 2 + int(x.u.AddrSize)
	e := x.location.Bytes()
	return x.location.IsBlock() && len(e) == n && e[0] == uint8(op.DW_OP_addr) && e[n-1] == uint8(op.DW_OP_stack_value)
}
