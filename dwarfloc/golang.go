package dwarfloc

import (
	"fmt"
	"strings"

	"github.com/bpfprologue/bpfprologue/internal/abi"
	"github.com/bpfprologue/bpfprologue/internal/boundary"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/index"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/refusals"
	"github.com/bpfprologue/bpfprologue/loc"
)

// Functions that Go compiled run on stacks that the runtime moves, and the runtime reads the
// return addresses on them (copystack and gentraceback in Go's src/runtime). A return probe
// replaces a return address, and the program ends with "unexpected return pc". So a probe
// of their returns is at their return instructions. C functions in the same image run on
// stacks that are not moved.

// goReturns is Returns for a function of Go.
func (s *Site) goReturns() (out []*Site, err error) {
	if !s.u.img.r.Code.Decodes() {
		return nil, fmt.Errorf("%v: %w: its return instructions are not known, because those of %s are not decoded", s, refusals.ErrMovingStack, s.u.img.Arch().Name)
	}
	ranges, err := s.u.Extent(&s.spot.PCs)
	if err != nil {
		return nil, err
	}
	for _, r := range ranges {
		f, err := boundary.Of(&s.u.Body, s.spot.Rec, r.Lo, s.Symbol)
		if err != nil {
			return nil, err
		}
		if f.Why != "" {
			return nil, fmt.Errorf("%v: %w: its return instructions are not known: %s", s, refusals.ErrMovingStack, f.Why)
		}
		ends, strange, known, err := f.Returns()
		if err != nil {
			return nil, err
		}
		if !known {
			why, err := s.strange(strange, f.Hi)
			if err != nil {
				return nil, err
			}
			return nil, fmt.Errorf("%v: %w: its return instructions are not known: %w", s, refusals.ErrMovingStack, why)
		}
		for _, addr := range ends {
			ret, err := s.returnAt(addr)
			if err != nil {
				return nil, err
			}
			out = append(out, ret)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%v: %w: it has no return instruction", s, refusals.ErrMovingStack)
	}
	return out, nil
}

// goResult returns a result of the site's function, by its name, or the first with "". It is
// where Go's calling convention has results when the function returns (Go's
// src/cmd/compile/abi-internal.md). found is false if there is none.
func (s *Site) goResult(name string) (v *Variable, found bool, err error) {
	e, err := s.u.Entry(s.DIE)
	if err != nil {
		return nil, false, err
	}
	params, err := goParameters(e)
	if err != nil {
		return nil, false, err
	}
	a := abi.NewGo(s.u.img.Arch(), strings.Contains(s.u.Producer(), "regabi") && !strings.HasSuffix(s.Symbol, ".abi0"))
	for _, isResult := range []bool{false, true} {
		for _, p := range params {
			if p.result != isResult {
				continue
			}
			u := s.u.img.of(p.entry.Unit)
			t, err := u.GiveType(p.typ)
			if err != nil {
				return nil, false, err
			}
			text := u.Text(p.name)
			place, reason, err := a.Place(t)
			if err != nil {
				return nil, false, err
			}
			if s.Symbol == "" {
				// Only symbols tell assembler's wrappers of Go functions, which return results
				// on the stack, from the functions themselves.
				place, reason = loc.Location{}, loc.Reason{Code: reasons.Unsupported, Detail: "the image has no symbol for the function, which says by which of Go's conventions it returns"}
			}
			if isResult && (name == "" || text == name) {
				return &Variable{Name: "$retval", Role: RoleGiven, Type: t, Loc: place, Reason: reason, Entries: 1}, true, nil
			}
		}
		a.Results()
	}
	return nil, false, nil
}

// goParameter is a parameter or a result in a function's entry.
type goParameter struct {
	entry     dw.Entry
	name, typ dw.Value
	result    bool
}

// goParameters returns a function's parameters and results in the order of the source, from
// its own entry or, for a copy of a function that is inlined elsewhere, its origin's, which
// has all of them.
func goParameters(e dw.Entry) (out []goParameter, err error) {
	if e, err = index.EachOrigin(e, nil, nil); err != nil {
		return nil, err
	}
	err = e.Children(func(c dw.Entry) (bool, error) {
		if c.Tag() != dw.TagFormalParameter {
			return true, nil
		}
		p := goParameter{entry: c}
		err := c.Attrs(func(a dw.Attr, v dw.Value) {
			switch a {
			case dw.AttrName:
				p.name = v
			case dw.AttrType:
				p.typ = v
			case dw.AttrVarParameter:
				p.result = v.U != 0
			}
		})
		out = append(out, p)
		return true, err
	})
	return out, err
}
