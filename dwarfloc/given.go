package dwarfloc

import (
	"fmt"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/index"
	"github.com/bpfprologue/bpfprologue/loc"
)

// Some things to fetch are no variables of the program. They are variables here all
// the same, of the role Given, so that one kind of argument serves all.

// wordType is the type of what has none: a register, the memory at a symbol.
var wordType = &Type{Kind: TypeInt, Name: "unsigned long", Size: 8}

// RegisterVariable is what is in a register: by its name in the architecture's
// manual, or in the kernel's (ax for rax). It reports false for a name that is neither.
func (s *Site) RegisterVariable(name string) (*Variable, bool) {
	r := s.u.img.Arch().RegisterByName(name)
	if r == nil {
		return nil, false
	}
	v := &Variable{Name: name, Role: Given, Type: wordType, Entries: 1}
	ev := s.evaluator()
	if v.Reason = loc.CheckRegister(ev.Arch, uint64(r.DWARF)); v.Reason.Code != loc.ReasonNone {
		return v, true
	}
	v.Loc = loc.Location{Kind: loc.KindRegister, Rule: loc.RuleGiven, Expr: ev.Register(uint64(r.DWARF), 0)}
	return v, true
}

// StackVariable is the nth word of the stack, counted from 0, or, for address, the
// address where the stack begins.
func (s *Site) StackVariable(n uint64, address bool) *Variable {
	a := s.u.img.Arch()
	ev := s.evaluator()
	v := &Variable{Name: "stack", Role: Given, Type: wordType, Entries: 1}
	e := ev.Register(uint64(a.SP), int64(n)*int64(a.WordSize))
	if address {
		v.Loc = loc.Location{Kind: loc.KindValue, Rule: loc.RuleGiven, Expr: e}
	} else {
		v.Loc = loc.Location{Kind: loc.KindMemory, Rule: loc.RuleGiven, Expr: e}
	}
	return v
}

// MemoryVariable is the memory at a link-time address.
func (s *Site) MemoryVariable(name string, addr uint64) *Variable {
	v := &Variable{Name: name, Role: Given, Type: wordType, Entries: 1}
	if s.u.img.IsRelocatable() {
		v.Reason = loc.Reason{Code: loc.ReasonModuleAddress}
		return v
	}
	v.Loc = loc.Location{Kind: loc.KindMemory, Rule: loc.RuleGiven, Expr: &loc.Expr{Op: loc.OpAddr, K: addr}}
	return v
}

// ConstantVariable is a number.
func (s *Site) ConstantVariable(name string, value uint64) *Variable {
	return &Variable{
		Name: name, Role: Given, Type: wordType, Entries: 1,
		Loc: loc.Location{Kind: loc.KindConstant, Rule: loc.RuleGiven, Expr: &loc.Expr{Op: loc.OpConst, K: value}},
	}
}

// Result is what the site's function returns, as it is when the function has
// returned: by the architecture's calling convention, in a register. What is
// returned in memory has a reason.
func (s *Site) Result() (*Variable, error) {
	v := &Variable{Name: "$retval", Role: Given, Type: voidType, Entries: 1}
	err := s.u.img.guard(func() error {
		e, err := s.u.Entry(s.die)
		if err != nil {
			return err
		}
		t, err := s.u.resultType(e)
		if err != nil {
			return err
		}
		v.Type = t
		r, err := t.resolve(0)
		if err != nil {
			return err
		}
		a := s.u.img.Arch()
		switch {
		case r.Kind == TypeVoid:
			v.Reason = loc.Reason{Code: loc.ReasonTypeMismatch, Detail: "the function returns nothing"}
			v.Wrong = &PathError{Msg: v.Reason.Detail}
		case r.Kind == TypeFloat:
			v.Reason = loc.Reason{Code: loc.ReasonVectorRegister}
		case isRecord(r), r.Kind == TypeArray, r.Size < 1, int(r.Size) > a.WordSize:
			v.Reason = loc.Reason{Code: loc.ReasonUnsupported, Detail: fmt.Sprintf("%v is not returned in one register", t)}
		default:
			v.Loc = loc.Location{Kind: loc.KindRegister, Rule: loc.RuleABI, Expr: &loc.Expr{Op: loc.OpReg, K: uint64(a.Return)}}
		}
		return nil
	})
	return v, err
}

// resultType is the type of a function's result: its own entry's, or its origin's.
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
