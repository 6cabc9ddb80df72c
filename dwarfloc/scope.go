package dwarfloc

import (
	"bytes"
	"errors"
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
	Loc    Location
	Reason Reason // zero when Loc is where the whole value is
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
func (v *Variable) Located() bool { return v.Reason.Code == Located }

// rawLocation is the DWARF that a location came from.
type rawLocation struct {
	expr []byte
	sec  string
	off  uint64
}

// Expression returns the DWARF expression that the location came from, the section
// it is in and an offset there: its own in a section of location lists, that of
// the variable's entry in .debug_info. It is nil for a constant.
func (v *Variable) Expression() (expr []byte, section string, off uint64) {
	_ = guard(func() error {
		expr = bytes.Clone(v.raw.expr) // which goes with the file
		return nil
	})
	return expr, v.raw.sec, v.raw.off
}

// varEntry is an entry of a variable as it stands.
type varEntry struct {
	u        *unit
	off      uint64
	tag      tag
	name     value
	origin   value
	typ      value
	location value
	constant value
	views    value
	decl     bool
	external bool
}

func readVar(e entry) (varEntry, error) {
	x, _, err := readVarEnd(e)
	return x, err
}

// readVarEnd returns the position behind the entry as well.
func readVarEnd(e entry) (x varEntry, end int, err error) {
	u := e.u
	x.u, x.off, x.tag = u, e.off, e.ab.tag
	b := u.buf(e.pos)
	for _, at := range u.abbrevs.attrs[e.ab.attr0:e.ab.attrN] {
		v := u.readAttr(&b, u.abbrevs, at)
		if b.bad {
			return x, 0, u.damagedAttr(e.off, at)
		}
		switch at.name {
		case attrName_:
			x.name = v
		case attrAbstractOrigin, attrSpecification:
			x.origin = v
		case attrType:
			x.typ = v
		case attrLocation:
			x.location = v
		case attrConstValue:
			x.constant = v
		case attrGNULocviews:
			x.views = v
		case attrDeclaration:
			x.decl = v.u != 0
		case attrExternal:
			x.external = v.u != 0
		}
	}
	return x, b.p, nil
}

// complete takes from a variable's origins what its own entry leaves out.
func (x *varEntry) complete() error {
	cur := *x
	for range maxOrigins {
		if cur.origin.form == 0 || x.name.form != 0 && x.typ.form != 0 && x.described() {
			return nil
		}
		e, err := cur.u.target(cur.origin)
		if err != nil {
			return err
		}
		if cur, err = readVar(e); err != nil {
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
	if x.u != ev.u {
		// A global of another unit: indices and types in its expression are that unit's.
		other := *ev
		other.u = x.u
		ev = &other
	}
	v := &Variable{Name: x.u.text(x.name), Role: Local, Entries: 1}
	if x.tag == tagFormalParameter {
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
	var fe *FormatError
	if !errors.As(err, &fe) {
		return err
	}
	v.Loc, v.Reason = Location{}, Reason{Damaged, err.Error()}
	return nil
}

// place finds a variable's location by the rules of Rule.
func (s *Site) place(v *Variable, x *varEntry, ev *evaluator) error {
	var c chosen
	switch {
	case x.constant.form != 0:
		if x.constant.isBlock() || x.constant.form == formData16 {
			v.Loc = ev.bytesLocation(x.constant.bytes())
		} else if x.constant.isConstant() {
			v.Loc = Location{Kind: KindConstant, Expr: ev.constant(x.constant.u)}
		} else {
			str, err := x.u.stringValue(x.constant)
			if err != nil {
				return err
			}
			v.Loc = Location{Kind: KindBytes, Bytes: append([]byte(str), 0)}
		}
		v.Loc.Rule = RuleConstant
		return nil
	case x.location.form == 0:
		v.Reason = Reason{Code: OptimizedOut}
		return nil
	case x.location.isBlock():
		c = chosen{expr: x.location.bytes(), sec: ".debug_info", off: x.off, rule: RuleWhole}
	default:
		var err error
		if c, err = x.u.choose(x.location, x.views, s.Addr, s.View); err != nil {
			return err
		}
		if c.rule == RuleNone {
			v.Reason = Reason{Code: NotAtSite}
			if !c.others {
				v.Reason = Reason{OptimizedOut, "its location list is empty"}
			}
			return nil
		}
		if c.rule == RuleLaterView && !s.bindsLater(x) {
			v.Reason = Reason{NotAtSite, "it begins at a later line of this address"}
			return nil
		}
	}
	if s.early {
		if _, own := x.u.inFrame(x.location, s.fun.frame); own {
			v.Reason = Reason{NotAtSite, "the function's prologue has not stored it yet"}
			return nil
		}
	}
	v.raw = rawLocation{c.expr, c.sec, c.off}
	loc, st := ev.locate(c.expr, c.sec, c.off)
	if breg0 := byte(0x70); st == nil && c.rule == RuleWhole && c.expr[0] == breg0+byte(x.u.img.arch.SP) {
		st = ev.frameIsSet()
	}
	if st != nil {
		v.Reason = st.reason
		return st.err
	}
	if v.Reason = ev.notStored(&loc, v.Type, &c); v.Reason.Code != Located {
		return nil
	}
	loc.Rule = c.rule
	v.Loc = loc
	switch {
	case loc.Kind == KindImplicitPointer:
		v.Reason = Reason{Code: ImplicitPointer}
	case loc.Missing():
		if err := ev.fillPadding(&v.Loc, v.Type); err != nil {
			return err
		}
		if v.Loc.Missing() {
			v.Reason = Reason{Code: MissingPiece}
		}
	}
	return nil
}

// bindsLater reports whether a variable whose location begins at a later view of the
// site's address has that location at the site. So it is where a body begins, whose
// parameters are bound a few views behind the mark of the entry. Elsewhere the later
// view is behind a later line, which may be the one that assigns the variable.
func (s *Site) bindsLater(x *varEntry) bool {
	return s.Kind != Line || x.tag == tagFormalParameter && s.Addr == s.body
}

func (s *Site) evaluator() *evaluator {
	return &evaluator{u: s.u, site: s}
}

// abstract returns the entry that describes the function itself, without a place:
// the origin of an inlined instance or of a clone. ok is false when the site's own
// entry is all there is.
func (s *Site) abstract() (e entry, ok bool, err error) {
	origin := s.origin
	u := s.u
	for i := 0; origin.form != 0 && i < maxOrigins; i++ {
		if e, err = u.target(origin); err != nil {
			return entry{}, false, err
		}
		u, ok, origin = e.u, true, value{}
		if err := e.attrs(func(a attrName, v value) {
			if a == attrAbstractOrigin {
				origin = v
			}
		}); err != nil {
			return entry{}, false, err
		}
	}
	return e, ok, nil
}

// inherit takes from one origin, which may be in another unit.
func (x *varEntry) inherit(d *varEntry) error {
	if x.name.form == 0 && d.name.form != 0 {
		x.name = d.name
		if x.u != d.u {
			x.name = blockValue(formString, []byte(d.u.text(d.name)))
		}
	}
	if x.typ.form == 0 && d.typ.form != 0 {
		x.typ = d.typ
		if x.u != d.u {
			_, off, err := d.u.ref(d.typ)
			if err != nil {
				return err
			}
			x.typ = value{form: formRefAddr, u: off}
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
func (x *varEntry) described() bool { return x.location.form != 0 || x.constant.form != 0 }

// fixed reports whether an entry gives the variable a value that depends on
// neither registers nor memory: a constant, or an address in the image.
func (x *varEntry) fixed() bool {
	const addr, stackValue = 0x03, 0x9f
	if x.constant.form != 0 {
		return true
	}
	n := 2 + int(x.u.addrSize)
	e := x.location.bytes()
	return x.location.isBlock() && len(e) == n && e[0] == addr && e[n-1] == stackValue
}
