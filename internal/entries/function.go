package entries

import (
	"strings"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/index"
	"github.com/bpfprologue/bpfprologue/types"
)

// LLVM removes the result of a function that only its own unit calls if no caller uses it,
// or if all can know it; the function then returns with whatever is in the register (seen
// with clang 14 to 16). The debug information does not show it, and still has the type of
// the result. What shows that a result exists is a caller that uses it.

// ResultUsed reports whether the site's function, which only its unit can call, has a result
// as far as can be seen: a caller uses it, or the address of the function is taken.
func (s *Spot) ResultUsed() bool {
	if s.U.Body.GNU() || s.AfterPrologue {
		return true
	}
	used, called := s.U.Img.Code.ResultUsed(s.Fun.Start)
	return used || !called
}

// ResultType returns the type of a function's result, from its own entry or its
// origin's.
func (u *Unit) ResultType(e dw.Entry) (*types.Type, error) {
	var typ dw.Value
	last, err := index.EachOrigin(e, func(a dw.Attr, v dw.Value) {
		if a == dw.AttrType {
			typ = v
		}
	}, func() bool { return typ.Form == 0 })
	if err != nil {
		return nil, err
	}
	return u.Img.Of(last.Unit).GiveType(typ)
}

// Callable reads from a function's entry, or its origins, whether it is called in a way of
// its own (DW_CC_nocall), and whether other units can call it.
func (u *Unit) Callable(e dw.Entry) (nocall, external bool, err error) {
	_, err = index.EachOrigin(e, func(a dw.Attr, v dw.Value) {
		switch a {
		case dw.AttrCallingConv:
			nocall = nocall || v.U == dw.CallNoCall
		case dw.AttrExternal:
			external = external || v.U != 0
		}
	}, nil)
	return nocall, external, err
}

// IsVariadic reports whether a function has variable arguments.
func IsVariadic(e dw.Entry) (is bool, err error) {
	err = e.Children(func(c dw.Entry) (bool, error) {
		is = c.Tag() == dw.TagUnspecifiedParams
		return !is, nil
	})
	return is, err
}

// DeclaredParams calls f for each parameter of the site's function, in order: those of its
// abstract entry, if it has one, which describes the function as it was written.
func (s *Spot) DeclaredParams(e dw.Entry, f func(d *Var) (more bool, err error)) error {
	abs, ok, err := s.Abstract()
	if err != nil {
		return err
	}
	if ok {
		e = abs
	}
	return s.U.Img.EachParam(e, func(d *Var) (bool, error) {
		if err := d.Complete(); err != nil {
			return false, err
		}
		return f(d)
	})
}

// changed are marks in symbols of clones whose parameters or result the compiler may have
// removed: GCC's (interprocedural scalar replacement, constant propagation, partial
// inlining) and LLVM's (function specialization).
var changed = []string{CloneRemoved, CloneOfConstant, ".part.", ".cold", ".specialized.", ".argprom", ".retelim", ".argelim"}

const (
	// CloneRemoved marks one without parameters that are not used, or with parts of them.
	CloneRemoved = ".isra."
	// CloneOfConstant marks one for callers that pass one number.
	CloneOfConstant = ".constprop."
)

// Clone returns the mark in the symbol of the site's code that says that the signature may
// have changed, or "".
func (s *Spot) Clone() string {
	if marks := s.CloneMarks(); len(marks) > 0 {
		return marks[0]
	}
	return ""
}

// CloneMarks returns all of them.
func (s *Spot) CloneMarks() (marks []string) {
	name := s.U.Img.Index.NameOf(s.U.NameRefOf(&s.U.Recs[s.Rec]))
	sym := s.U.Img.File.SymbolAt(s.Addr, name)
	if sym == nil || !strings.Contains(sym.Name, ".") {
		return nil
	}
	for _, c := range changed {
		if strings.Contains(sym.Name, c) {
			marks = append(marks, c)
		}
	}
	return marks
}
