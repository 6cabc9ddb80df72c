package dwarfloc

import (
	"fmt"
	"strconv"

	"github.com/bpfprologue/bpfprologue/types"

	"github.com/bpfprologue/bpfprologue/internal/eval"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/probe"
)

// Resolve returns what an expression in a definition stands for at the site: a variable by
// C's rules of scope (see Lookup), a register, memory at a symbol or an address, a word of
// the stack, a number, or the function's result; or what a path leads to from there.
//
// A C++ reference stands for what it refers to (see Variable.Referent).
//
// A path can name members of anonymous structures and unions. It follows pointers through
// memory or, if a pointer was optimized away, to its object. The definition of a type that
// the unit only declares comes from another unit, or from Options.TypesOf.
//
// An unknown name or an impossible path is not an error but a reason:
// loc.ReasonNoSuchVariable, or loc.ReasonNoSuchMember or loc.ReasonTypeMismatch with
// details in the variable's Wrong. Unknown registers and symbols are errors, and so are
// $params and $vars, which stand for several variables: see Params and Variables. $comm
// does not depend on the image: its location is the constant 0.
func (s *Site) Resolve(e *probe.Expr) (v *Variable, err error) {
	err = s.Image.guard(func() error {
		v, err = s.resolve(e)
		return err
	})
	return v, err
}

func (s *Site) resolve(e *probe.Expr) (*Variable, error) {
	v, err := s.root(e)
	if err != nil || v.Reason.Code.Mistaken() {
		return v, err
	}
	if len(e.Path) == 0 {
		return v.Referent()
	}
	return s.follow(v, e.Path)
}

// root resolves what an expression begins with.
func (s *Site) root(e *probe.Expr) (*Variable, error) {
	img := s.Image
	switch e.Kind {
	case probe.KindVariable:
		if s.returning && s.u.isGo() {
			if v, found, err := s.goResult(e.Name); found || err != nil {
				return v, err
			}
		}
		return s.lookup(e.Name)
	case probe.KindRetval:
		return s.result()
	case probe.KindRegister:
		r := img.Arch().RegisterByName(e.Name)
		if r == nil {
			return nil, fmt.Errorf("%s: no register %q on %s", img.Path(), e.Name, img.Arch().Name)
		}
		l := loc.Location{Kind: loc.KindRegister, Expr: &loc.Expr{Op: loc.OpReg, K: uint64(r.DWARF)}}
		return given(e.Name, l, eval.CheckRegister(img.Arch(), uint64(r.DWARF))), nil
	case probe.KindSymbol:
		addr, ok, err := img.symbolAddress(e.Name)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, fmt.Errorf("%s: no symbol %q", img.Path(), e.Name)
		}
		v := img.memory("@"+e.Name, addr+e.Number)
		s.evaluator().relocate(&v.Loc)
		return v, nil
	case probe.KindAddress:
		return img.memory(e.String(), e.Number), nil
	case probe.KindImmediate:
		return given(e.String(), constantLocation(e.Number), loc.Reason{}), nil
	case probe.KindComm:
		return given("$comm", constantLocation(0), loc.Reason{}), nil
	case probe.KindFrame:
		return s.frame()
	case probe.KindStack, probe.KindStackAddr:
		var b eval.Builder
		l := loc.Location{Kind: loc.KindMemory, Expr: b.Register(uint64(img.Arch().SP), int64(e.Number)*int64(img.Arch().WordSize))}
		if e.Kind == probe.KindStackAddr {
			l = loc.Location{Kind: loc.KindValue, Expr: b.Register(uint64(img.Arch().SP), 0)}
		}
		return given("stack", l, loc.Reason{}), nil
	}
	if e.Kind == probe.KindCaller {
		return s.caller()
	}
	if e.Kind != probe.KindParams && e.Kind != probe.KindVars {
		return s.computed(e)
	}
	return nil, fmt.Errorf("%s stands for several variables", strconv.Quote(e.String()))
}

// frame returns what tells one call of a function from others ($frame).
func (s *Site) frame() (*Variable, error) {
	ev := s.evaluator()
	cfa, r, err := s.callFrame(ev)
	if err != nil || r.Code != loc.ReasonNone {
		return given("frame", loc.Location{}, r), err
	}
	if s.told == nil && s.u.isGo() {
		cfa = ev.steadyFrame(cfa)
	}
	return given("frame", loc.Location{Kind: loc.KindValue, Expr: cfa}, r), nil
}

// callFrame returns the canonical frame address at the site.
func (s *Site) callFrame(ev *evaluator) (*loc.Expr, loc.Reason, error) {
	if s.told == nil {
		return ev.CallFrame()
	}
	v, err := s.told.at.frame(s)
	if err != nil {
		return nil, loc.Reason{}, err
	}
	return v.Loc.Expr, v.Reason, nil
}

// WordType is the type of values for which the debug information has none: registers,

// given returns a Variable for something that is not a variable of the program, so that
// callers need only one type.
func given(name string, l loc.Location, r loc.Reason) *Variable {
	v := &Variable{Name: name, Role: RoleGiven, Type: types.WordType, Entries: 1, Reason: r}
	if r.Code == loc.ReasonNone {
		v.Loc = l
		v.Loc.Rule = loc.RuleGiven
	}
	return v
}

func constantLocation(k uint64) loc.Location {
	return loc.Location{Kind: loc.KindConstant, Expr: &loc.Expr{Op: loc.OpConst, K: k}}
}

// memory returns the memory at a link-time address.
func (img *Image) memory(name string, addr uint64) *Variable {
	if img.IsRelocatable() {
		return given(name, loc.Location{}, loc.Reason{Code: loc.ReasonModuleAddress})
	}
	return given(name, loc.Location{Kind: loc.KindMemory, Expr: &loc.Expr{Op: loc.OpAddr, K: addr}}, loc.Reason{})
}

// symbolAddress is SymbolAddresses for one name, cached because a definition needs it at
// each of its sites.
func (img *Image) symbolAddress(name string) (addr uint64, ok bool, err error) {
	if a, known := img.addresses.Load(name); known {
		return a.(uint64), true, nil
	}
	all, err := img.SymbolAddresses(name)
	if err != nil {
		return 0, false, err
	}
	if addr, ok = all[name]; ok {
		img.addresses.Store(name, addr)
	}
	return addr, ok, nil
}

// Variables returns the parameters and locals in scope at the site, sorted by name,
// without those of the functions that the site is inlined into.
func (s *Site) Variables() (out []*Variable, err error) {
	if s.told != nil {
		return nil, s.Image.untold("local variables")
	}
	err = s.u.img.guard(func() error {
		names, err := s.names()
		if err != nil {
			return err
		}
		at := visible{site: s, many: true}
		for _, n := range names {
			v, err := at.lookup(n)
			if err != nil {
				return err
			}
			if v.Role == RoleParameter || v.Role == RoleLocal {
				out = append(out, v)
			}
		}
		return nil
	})
	return out, err
}
