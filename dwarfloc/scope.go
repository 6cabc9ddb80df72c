package dwarfloc

import (
	"errors"
	"sync"
)

// Role says what a variable is to the function at a site.
type Role uint8

const (
	Parameter Role = iota
	Local
	Global
)

// String returns "parameter", "local" or "global".
func (r Role) String() string { return [...]string{"parameter", "local", "global"}[r] }

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
	return v.raw.expr, v.raw.sec, v.raw.off
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
	x := varEntry{u: e.u, off: e.off, tag: e.ab.tag}
	err := e.attrs(func(a attrName, v value) {
		switch a {
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
	})
	return x, err
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
	if err == nil {
		v.Type = t
		err = s.place(v, x, ev)
	}
	if err != nil {
		var fe *FormatError
		if !errors.As(err, &fe) {
			return nil, err
		}
		// Damage in one variable's description spoils no other's.
		v.Loc, v.Reason = Location{}, Reason{Damaged, err.Error()}
		if v.Type == nil {
			v.Type = voidType
		}
	}
	return v, nil
}

// place finds a variable's location by the rules of Rule.
func (s *Site) place(v *Variable, x *varEntry, ev *evaluator) error {
	var c chosen
	switch {
	case x.constant.form != 0:
		if x.constant.isBlock() || x.constant.form == formData16 {
			v.Loc = ev.bytesLocation(x.constant.b)
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
		c = chosen{expr: x.location.b, sec: ".debug_info", off: x.off, rule: RuleWhole}
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

func (s *Site) evaluator() *evaluator {
	return &evaluator{
		u: s.u, addr: s.Addr, view: s.View, frame: s.fun.frame,
		atEntry: s.Addr == s.fun.start,
	}
}

// abstract returns the entry that describes the function itself, without a place:
// the origin of an inlined instance or of a clone. ok is false when the site's own
// entry is all there is.
func (s *Site) abstract() (e entry, ok bool, err error) {
	cur, err := s.u.entry(s.die)
	if err != nil {
		return entry{}, false, err
	}
	for range maxOrigins {
		var origin value
		if err := cur.attrs(func(a attrName, v value) {
			if a == attrAbstractOrigin {
				origin = v
			}
		}); err != nil {
			return entry{}, false, err
		}
		if origin.form == 0 {
			return e, ok, nil
		}
		if e, err = cur.u.target(origin); err != nil {
			return entry{}, false, err
		}
		ok, cur = true, e
	}
	return e, ok, nil
}

// Params returns the function's parameters in order, as they are at the site. A
// parameter that the site's own entry leaves out was optimized away.
func (s *Site) Params() ([]*Variable, error) {
	var out []*Variable
	err := guard(func() (err error) {
		out, err = s.params()
		return err
	})
	return out, err
}

func (s *Site) params() ([]*Variable, error) {
	own, err := s.u.entry(s.die)
	if err != nil {
		return nil, err
	}
	ev := s.evaluator()
	scratch := scratchPool.Get().(*[]varEntry)
	here := (*scratch)[:0]
	defer func() {
		clear(here[:cap(here)]) // keeps nothing of the image alive
		*scratch = here[:0]
		scratchPool.Put(scratch)
	}()
	err = own.children(func(c entry) (bool, error) {
		if c.ab.tag != tagFormalParameter && c.ab.tag != tagVariable {
			return true, nil
		}
		x, err := readVar(c)
		here = append(here, x)
		return true, err
	})
	if err != nil {
		return nil, err
	}
	declared, err := s.declaredParams()
	if err != nil {
		return nil, err
	}
	out := make([]*Variable, 0, max(len(declared), len(here)))
	add := func(x *varEntry, entries int) error {
		v, err := s.variable(x, ev)
		if err != nil {
			return err
		}
		v.Role, v.Entries = Parameter, entries
		out = append(out, v)
		return nil
	}
	for i := range declared {
		// The abstract entry has name and type; where it is, the site's own says. A clone
		// can describe a lost parameter as a variable.
		d := &declared[i]
		x, entries := d, 0
		for j := range here {
			h := &here[j]
			if h.origin.form == 0 {
				continue
			}
			if _, off, err := h.u.ref(h.origin); err != nil || off != d.off {
				continue
			}
			if entries == 0 || h.better(x) {
				x = h
			}
			entries++
			h.tag = 0 // taken
		}
		if x == d {
			c := *d // shared by all sites
			x = &c
		} else {
			if err := x.inherit(d); err != nil {
				return nil, err
			}
			x.origin = value{} // which has been read
		}
		if err := add(x, max(entries, 1)); err != nil {
			return nil, err
		}
	}
	for j := range here {
		if here[j].tag != tagFormalParameter {
			continue
		}
		if err := add(&here[j], 1); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// scratchPool holds memory for the entries of a site's variables.
var scratchPool = sync.Pool{New: func() any { return new([]varEntry) }}

// declaredParams returns the parameters of the function's abstract entry, complete
// with name and type, or nothing when the site's own entry is all there is. They
// are remembered: a function is inlined many times.
func (s *Site) declaredParams() ([]varEntry, error) {
	abs, ok, err := s.abstract()
	if err != nil || !ok {
		return nil, err
	}
	u := abs.u
	u.typeMu.Lock()
	params, known := u.params[abs.off]
	u.typeMu.Unlock()
	if known {
		return params, nil
	}
	err = abs.children(func(c entry) (bool, error) {
		if c.ab.tag != tagFormalParameter {
			return true, nil
		}
		x, err := readVar(c)
		if err == nil {
			err = x.complete()
		}
		params = append(params, x)
		return true, err
	})
	if err != nil {
		return nil, err
	}
	u.typeMu.Lock()
	defer u.typeMu.Unlock()
	if u.params == nil {
		u.params = make(map[uint64][]varEntry)
	}
	u.params[abs.off] = params
	return params, nil
}

// inherit takes from one origin, which may be in another unit.
func (x *varEntry) inherit(d *varEntry) error {
	if x.name.form == 0 && d.name.form != 0 {
		x.name = d.name
		if x.u != d.u {
			x.name = value{form: formString, b: []byte(d.u.text(d.name))}
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
	e := x.location.b
	return x.location.isBlock() && len(e) == n && e[0] == addr && e[n-1] == stackValue
}
