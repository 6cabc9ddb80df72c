package dwarfloc

import (
	"cmp"
	"fmt"

	"github.com/bpfprologue/bpfprologue/internal/eval"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/rule"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/types"
)

// What a definition names that is not a variable of the program.

// frameVariable is inside.Frame.
func (s *Site) frameVariable() (*Variable, error) {
	if s.reused {
		return s.frame() // EachSite has called guard
	}
	return s.guardedFrame()
}

func (s *Site) guardedFrame() (v *Variable, err error) {
	err = s.Image.guard(func() error {
		v, err = s.frame()
		return err
	})
	return v, err
}

func (s *Site) frame() (*Variable, error) {
	cfa, steady, r, err := s.by.frame(s)
	v := s.newVariable()
	if err != nil || r.Code != reasons.None {
		v.give("frame", loc.Location{}, r)
		return v, err
	}
	v.give("frame", loc.Location{Kind: loc.KindValue, Expr: cmp.Or(steady, cfa)}, r)
	return v, nil
}

func (debugInfo) frame(s *Site) (cfa, steady *loc.Expr, r loc.Reason, err error) {
	ev := s.evaluator()
	if cfa, r, err = ev.CallFrame(); err == nil && r.Code == reasons.None && s.u.Body.IsGo() {
		steady = ev.SteadyFrame(cfa)
	}
	return cfa, steady, r, err
}

// returnAddress is inside.ReturnAddress.
func (s *Site) returnAddress() (v *Variable, err error) {
	err = s.Image.guard(func() error {
		v, err = s.caller()
		return err
	})
	return v, err
}

func (s *Site) caller() (*Variable, error) {
	if s.Inlined() {
		v := s.Image.memoryAt("caller", s.Addr)
		if v.Reason.Code == reasons.None {
			v.Loc.Kind = loc.KindValue
		}
		return v, nil
	}
	var b eval.Builder
	a := s.Image.Arch()
	switch {
	case a.Link == 0:
		cfa, _, r, err := s.by.frame(s)
		if err != nil || r.Code != reasons.None {
			return given("caller", loc.Location{}, r), err
		}
		at := b.Binary(ops.Add, cfa, b.Const(-uint64(a.StackArgs)))
		v := given("caller", loc.Location{Kind: loc.KindMemory, Expr: at}, loc.Reason{})
		v.OfFunction = true
		return v, nil
	case s.Kind == SiteEntry:
		v := given("caller", loc.Location{Kind: loc.KindRegister, Expr: b.Register(uint64(a.Link), 0)}, loc.Reason{})
		v.OfFunction = true
		return v, nil
	}
	return given("caller", loc.Location{}, loc.Reason{Code: reasons.Unsupported, Detail: "the return address, which is in no fixed place behind the function's entry"}), nil
}

// given returns a Variable for something that is not a variable of the program, so that
// callers need only one type.
func given(name string, l loc.Location, r loc.Reason) *Variable {
	v := new(Variable)
	v.give(name, l, r)
	return v
}

// give makes the variable what given returns.
func (v *Variable) give(name string, l loc.Location, r loc.Reason) {
	*v = Variable{Name: name, Role: RoleGiven, Type: types.WordType, Entries: 1, Reason: r}
	if r.Code == reasons.None {
		v.Loc = l
		v.Loc.Rule = rule.Given
	}
}

// memoryAt is inside.Memory.
func (img *Image) memoryAt(name string, addr uint64) *Variable {
	if img.file.IsRelocatable() {
		return given(name, loc.Location{}, loc.Reason{Code: reasons.ModuleAddress})
	}
	return given(name, loc.Location{Kind: loc.KindMemory, Expr: &loc.Expr{Op: ops.Addr, K: addr}}, loc.Reason{})
}

// dataAt is inside.Data.
func (img *Image) dataAt(symbol string, offset uint64) (*Variable, error) {
	all, err := img.file.SymbolAddresses(symbol)
	if err != nil {
		return nil, err
	}
	addr, ok := all[symbol]
	if !ok {
		return nil, fmt.Errorf("%s: no symbol %q", img.Path(), symbol)
	}
	v := img.memoryAt("@"+symbol, addr+offset)
	err = img.guard(func() error {
		img.preempted.Relocate(img.file, &v.Loc)
		return nil
	})
	return v, err
}
