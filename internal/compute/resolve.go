// Package compute turns the expression of a definition into a location at a site: members and elements, pointers that were
// optimized away, C's operators, casts, container_of, comparisons with texts, and what is no variable of the program, such as
// registers.
//
//	v, err := compute.Resolve(site, &def.Args[0].Expr)
//	if v.Located() {
//		fmt.Println(v.Type, v.Loc.Text(site.Image.Arch()))
//	}
//
// It builds on what package dwarfloc says of variables, and on the one algebra of expressions in package eval.
package compute

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/eval"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/place"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/rule"
	"github.com/bpfprologue/bpfprologue/internal/syntax"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/types"
)

// Resolve returns what an expression in a definition stands for at the site: a variable by
// C's rules of scope (see Lookup), a register, memory at a symbol or an address, a word of
// the stack, a number, or the function's result; or what a path leads to from there.
//
// A C++ reference stands for what it refers to (see Referent).
//
// A path can name members of anonymous structures and unions. It follows pointers through
// memory or, if a pointer was optimized away, to its object. The definition of a type that
// the unit only declares comes from another unit, or from Options.TypesOf.
//
// An unknown name or an impossible path is not an error but a reason:
// reasons.NoSuchVariable, or reasons.NoSuchMember or reasons.TypeMismatch with
// details that Wrong returns. Unknown registers and symbols are errors, and so are
// $params and $vars, which stand for several variables: see dwarfloc.Site.Params and Variables. $comm
// does not depend on the image: its location is the constant 0.
func Resolve(s *dwarfloc.Site, e *syntax.Expr) (*dwarfloc.Variable, error) {
	v, err := root(s, e)
	if err != nil || reasons.Mistaken(v.Reason.Code) {
		return v, err
	}
	if len(e.Path) == 0 {
		return Referent(v)
	}
	out, err := follow(s, v, e.Path)
	if err != nil || !eval.BelowStack(&out.Loc, s.Image.Arch()) {
		return out, err
	}
	// A pointer to an object in a frame that has ended.
	if kernel, err := place.IsKernel(s.Image); err != nil || !kernel {
		return out, err
	}
	out.Loc, out.Reason = loc.Location{}, eval.Overwritten
	return out, nil
}

// root resolves what an expression begins with.
func root(s *dwarfloc.Site, e *syntax.Expr) (*dwarfloc.Variable, error) {
	img := s.Image
	switch e.Kind {
	case syntax.KindVariable:
		return s.Lookup(e.Name)
	case syntax.KindArgument:
		return inside.Argument(s, int(e.Number))
	case syntax.KindRetval:
		return inside.Result(s)
	case syntax.KindRegister:
		r := img.Arch().RegisterByName(e.Name)
		if r == nil {
			return nil, fmt.Errorf("%s: no register %q on %s", img.Path(), e.Name, img.Arch().Name)
		}
		l := loc.Location{Kind: loc.KindRegister, Expr: &loc.Expr{Op: ops.Reg, K: uint64(r.DWARF)}}
		return given(s, e.Name, l, eval.CheckRegister(img.Arch(), uint64(r.DWARF))), nil
	case syntax.KindSymbol:
		return inside.Data(img, e.Name, e.Number)
	case syntax.KindAddress:
		return inside.Memory(img, e.String(), e.Number), nil
	case syntax.KindImmediate:
		return given(s, e.String(), constantLocation(e.Number), loc.Reason{}), nil
	case syntax.KindComm:
		return given(s, "$comm", constantLocation(0), loc.Reason{}), nil
	case syntax.KindFrame:
		return inside.Frame(s)
	case syntax.KindStack, syntax.KindStackAddr:
		var b eval.Builder
		l := loc.Location{Kind: loc.KindMemory, Expr: b.Register(uint64(img.Arch().SP), int64(e.Number)*int64(img.Arch().WordSize))}
		if e.Kind == syntax.KindStackAddr {
			l = loc.Location{Kind: loc.KindValue, Expr: b.Register(uint64(img.Arch().SP), 0)}
		}
		return given(s, "stack", l, loc.Reason{}), nil
	}
	if e.Kind == syntax.KindCaller {
		return inside.ReturnAddress(s)
	}
	if e.Kind != syntax.KindParams && e.Kind != syntax.KindVars {
		return computed(s, e)
	}
	return nil, fmt.Errorf("%s stands for several variables", strconv.Quote(e.String()))
}

// given returns a Variable for something that is not a variable of the program, so that
// callers need only one type.
func given(s *dwarfloc.Site, name string, l loc.Location, r loc.Reason) *dwarfloc.Variable {
	v := &dwarfloc.Variable{Name: name, Role: dwarfloc.RoleGiven, Type: types.WordType, Entries: 1, Reason: r, Site: s}
	if r.Code == reasons.None {
		v.Loc = l
		v.Loc.Rule = rule.Given
	}
	return v
}

func constantLocation(k uint64) loc.Location {
	return loc.Location{Kind: loc.KindConstant, Expr: &loc.Expr{Op: ops.Const, K: k}}
}

func unsupported(format string, args ...any) loc.Reason {
	return loc.Reason{Code: reasons.Unsupported, Detail: fmt.Sprintf(format, args...)}
}

// builder returns what builds expressions for a site.
func builder(s *dwarfloc.Site) *eval.Builder {
	return &eval.Builder{BigEndian: inside.File(s.Image).BigEndian(), RegisterBytes: s.Image.Arch().WordSize}
}

// inner reports whether a variable depends on those of the function.
func inner(v *dwarfloc.Variable) bool {
	return v.OfFunction || v.Role == dwarfloc.RoleParameter || v.Role == dwarfloc.RoleLocal
}

// typeNamed returns a type by its name: that of the site's unit, or that of the first unit that has
// one. The error for an unknown one is a *Mismatch.
func typeNamed(s *dwarfloc.Site, n *syntax.TypeName) (*types.Type, error) {
	word := s.Image.Arch().WordSize
	t := common(n.Name, word)
	if t == nil {
		var err error
		if t, err = inside.SiteType(s, n.Name); err != nil {
			return nil, err
		}
	}
	if t == nil {
		return nil, &Mismatch{Msg: "no type " + strings.TrimSpace(n.Name) + " in the debug information", Expr: &syntax.Expr{Pos: n.Pos}}
	}
	for range n.Pointers {
		t = types.PointerTo(t, word)
	}
	return t, nil
}
