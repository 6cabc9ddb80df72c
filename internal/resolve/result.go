package resolve

import (
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
	return u.Img.Of(last.Unit).TypeOf(typ)
}
