package dwarfloc

import (
	"errors"
	"fmt"
	"strings"

	"github.com/bpfprologue/bpfprologue/internal/abi"
	"github.com/bpfprologue/bpfprologue/internal/answers"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/types"
)

// returnsNothing is the reason for the result of a function without one.
const returnsNothing = "the function returns nothing"

// result is inside.Result.
func (s *Site) result() (*Variable, error) {
	if s.reused {
		return s.by.result(s) // EachSite has called guard
	}
	return s.guardedResult()
}

func (s *Site) guardedResult() (v *Variable, err error) {
	err = s.Image.guard(func() error {
		v, err = s.by.result(s)
		return err
	})
	return v, err
}

func (debugInfo) result(s *Site) (*Variable, error) {
	if s.u.Body.IsGo() {
		if v, found, err := s.goResult(""); found || err != nil {
			return v, err
		}
	}
	v := s.newVariable()
	*v = Variable{Name: "$retval", Role: RoleGiven, Type: types.VoidType, Entries: 1}
	e, err := s.u.Entry(s.DIE)
	if err != nil {
		return nil, err
	}
	t, err := s.u.ResultType(e)
	if err != nil {
		return nil, err
	}
	v.Type = t
	r, err := t.Resolve()
	if err != nil {
		return nil, err
	}
	if r.Kind == types.Void {
		v.Reason = loc.Reason{Code: reasons.TypeMismatch, Detail: returnsNothing}
		v.Wrong = errors.New(returnsNothing)
		return v, nil
	}
	if s.jumps {
		v.Reason = loc.Reason{Code: reasons.NotAtSite, Detail: answers.ResultOfOther}
		return v, nil
	}
	if s.Kind == SiteExit {
		v.Reason = loc.Reason{Code: reasons.OptimizedOut, Detail: answers.ResultOfInlined}
		return v, nil
	}
	nocall, external, err := s.u.Callable(e)
	if err != nil {
		return nil, err
	}
	if c := s.spot.Clone(); c != "" || nocall {
		detail := "the compiler changed how the function is called"
		if c != "" {
			detail = "a clone (" + strings.Trim(c, ".") + ") may have lost its result"
		}
		v.Reason = loc.Reason{Code: reasons.OptimizedOut, Detail: detail}
		return v, nil
	}
	if !external && !s.at().ResultUsed() {
		v.Reason = loc.Reason{Code: reasons.OptimizedOut, Detail: "no caller uses the result, and the compiler may have removed it"}
		return v, nil
	}
	if v.Loc, v.Reason, err = s.returned(t); err != nil {
		return nil, err
	}
	if v.Reason.Code == reasons.VectorRegister && abi.Of(s.u.img.Arch()).VariadicWords {
		variadic, err := entries.IsVariadic(e)
		if err != nil {
			return nil, err
		}
		if variadic {
			v.Loc, v.Reason = loc.Location{}, loc.Reason{Code: reasons.Unsupported, Detail: fmt.Sprintf("where %v is returned is not known", t)}
		}
	}
	return v, nil
}

// returned is where a function of the site's unit returns a result of a type.
type returned struct {
	l loc.Location
	r loc.Reason
}

// returned returns where a result of a type is. Many functions of a unit return the same types.
func (s *Site) returned(t *types.Type) (loc.Location, loc.Reason, error) {
	own := s.resolvers
	if own == nil {
		return abi.Returned(t, s.u.Lang, s.Image.machine())
	}
	if own.resultsOf != s.u {
		own.resultsOf = s.u
		clear(own.results)
	}
	x, known := own.results[t]
	if !known {
		var err error
		if x.l, x.r, err = abi.Returned(t, s.u.Lang, s.Image.machine()); err != nil {
			return x.l, x.r, err
		}
		if own.results == nil {
			own.results = make(map[*types.Type]returned)
		}
		own.results[t] = x
	}
	return x.l, x.r, nil
}
