package dwarfloc

import (
	"fmt"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/index"
	"github.com/bpfprologue/bpfprologue/loc"
)

// result returns the result of the site's function, as it is right after the function
// has returned, or at one of the sites of Returns: in a register, by the architecture's calling convention. A result in
// memory has a reason instead.
func (s *Site) result() (*Variable, error) {
	if s.u.isGo() {
		if v, found, err := s.goResult(""); found || err != nil {
			return v, err
		}
	}
	v := &Variable{Name: "$retval", Role: RoleGiven, Type: voidType, Entries: 1}
	e, err := s.u.Entry(s.DIE)
	if err != nil {
		return nil, err
	}
	t, err := s.u.resultType(e)
	if err != nil {
		return nil, err
	}
	v.Type = t
	r, err := t.resolve(0)
	if err != nil {
		return nil, err
	}
	a := s.u.img.Arch()
	switch {
	case r.Kind == TypeVoid:
		v.Reason = loc.Reason{Code: loc.ReasonTypeMismatch, Detail: "the function returns nothing"}
		v.Wrong = &Mismatch{Msg: v.Reason.Detail}
	case r.Kind == TypeFloat:
		v.Reason = loc.Reason{Code: loc.ReasonVectorRegister}
	case isRecord(r), r.Kind == TypeArray, r.Size < 1, int(r.Size) > a.WordSize:
		v.Reason = loc.Reason{Code: loc.ReasonUnsupported, Detail: fmt.Sprintf("%v is not returned in one register", t)}
	default:
		v.Loc = loc.Location{Kind: loc.KindRegister, Rule: loc.RuleABI, Expr: &loc.Expr{Op: loc.OpReg, K: uint64(a.Return)}}
	}
	return v, nil
}

// resultType returns the type of a function's result, from its own entry or its
// origin's.
func (u *unit) resultType(e dw.Entry) (*Type, error) {
	for range index.MaxOrigins {
		var typ, origin dw.Value
		if err := e.Attrs(func(a dw.Attr, v dw.Value) {
			switch a {
			case dw.AttrType:
				typ = v
			case dw.AttrAbstractOrigin, dw.AttrSpecification:
				origin = v
			}
		}); err != nil {
			return nil, err
		}
		if typ.Form != 0 || origin.Form == 0 {
			return u.img.of(e.Unit).typeOf(typ)
		}
		var err error
		if e, err = e.Unit.Target(origin); err != nil {
			return nil, err
		}
	}
	return voidType, nil
}
