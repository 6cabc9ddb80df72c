package dwarfloc

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/bpfprologue/bpfprologue/internal/answers"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/inside/hooks"
	"github.com/bpfprologue/bpfprologue/internal/qualify"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/refusals"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/types"
)

// answeredSite is a site of an image about which a pack or BTF answers: see answered. It stays the same for copies of the site at other ways.
type answeredSite struct {
	answers.Site
	source answers.Source
	// around returns the site that the debug information has at a statically defined probe, or nil. It is nil for other sites.
	around func() (*Site, error)
}

// problem returns what is wrong with a site's address in a program, or that nothing says it.
func (a *answeredSite) problem(s *Site) error {
	problem, known := a.Problem, s.Addr == a.Start
	if s.Addr != a.Addr {
		problem = ""
	} else {
		known = true
	}
	for _, way := range []func(uint64) (string, bool){a.WayIn, a.WayOut, a.Inside} {
		if way != nil && s.Addr != a.Addr && problem == "" {
			wrong, is := way(s.Addr)
			problem, known = wrong, known || is
		}
	}
	switch {
	case problem == "" && known:
		return nil
	case problem == "":
		return fmt.Errorf("%s: %#x: %w: %s does not tell", s.Image.Path(), s.Addr, refusals.ErrNotDecoded, a.source.What())
	}
	for _, kind := range []error{refusals.ErrMidInstruction, refusals.ErrHarmful, refusals.ErrNotDecoded, refusals.ErrNoFunction} {
		if after, ok := strings.CutPrefix(problem, kind.Error()); ok {
			place := s.Image.Path()
			if kind != refusals.ErrMidInstruction { // which has it after
				place = fmt.Sprintf("%s: %#x", place, s.Addr)
			}
			return fmt.Errorf("%s: %w%s", place, kind, after)
		}
	}
	return fmt.Errorf("%s: %#x: %w: %s", s.Image.Path(), s.Addr, refusals.ErrNotDecoded, problem)
}

// refused is inside.Refused.
func (s *Site) refused() (cause string, known bool) { return s.by.refused(s) }

func (a *answeredSite) refused(s *Site) (cause string, known bool) {
	switch {
	case !a.Looked:
		return "", false
	case s.Addr == a.Addr:
		return a.Refused, true
	}
	return a.WayIn(s.Addr)
}

func (a *answeredSite) returns(s *Site, force bool) (out []*Site, moved bool, err error) {
	leaves, kept := a.Leaves, a.Kept
	if a.Returns != nil {
		leaves, kept = a.Returns(force)
	} else if force {
		leaves, kept = nil, ""
	}
	switch {
	case len(leaves) == 0 && kept == "":
		return nil, false, nil
	case kept != "":
		for _, kind := range []error{refusals.ErrUnwinding, refusals.ErrMovingStack, refusals.ErrNotCalled} {
			if after, ok := strings.CutPrefix(kept, kind.Error()); ok {
				return nil, true, fmt.Errorf("%v: %w%s", s, kind, after)
			}
		}
		return nil, true, fmt.Errorf("%v: %w: %s", s, refusals.ErrUnwinding, kept)
	}
	for _, l := range leaves {
		at, err := s.returnAt(l.Addr)
		if err != nil {
			return nil, true, err
		}
		at.jumps = l.Jumps
		out = append(out, at)
	}
	return out, true, nil
}

func (a *answeredSite) describe(*Site) error { return nil }

func (a *answeredSite) locate(s *Site, _ string) { s.Symbol, s.Offset = a.Values.Symbol(s.Addr) }

func (a *answeredSite) qualifies(*Site) bool { return true }

func (a *answeredSite) qualifiedName(*Site) (string, error) { return a.Qualified, nil }

func (a *answeredSite) declared(*Site) (string, int, error) { return a.DeclFile, a.DeclLine, nil }

func (a *answeredSite) body(*Site) hooks.Body { return hooks.Body{In: a.In, Of: a.Of, Depth: a.Depth} }

func (a *answeredSite) begun(s *Site) (at *Site, within bool, err error) {
	if a.Begun == nil {
		return s, false, nil
	}
	switch b := a.Begun(); {
	case b.Again:
		return s.again(b.Folded), b.Within, nil
	case b.Addr != s.Addr:
		return s.elsewhere(b.Addr, s.View, entries.Place{Addr: s.Addr, View: s.View}), false, nil
	}
	return s, false, nil
}

func (a *answeredSite) code(_ *Site, addr uint64) ([]byte, error) { return a.Values.Code(addr), nil }

func (a *answeredSite) named(_ *Site, m Matcher, name string) (bool, error) {
	return qualify.Matches(m, qualify.WithoutTypes(name)), nil
}

func (a *answeredSite) ranges(s *Site) ([][2]uint64, error) {
	return nil, a.notDescribed(s, "which code belongs to a body")
}

func (a *answeredSite) variables(s *Site) ([]*Variable, error) {
	at, err := a.described()
	switch {
	case err != nil:
		return nil, err
	case at == nil:
		return nil, a.notDescribed(s, "local variables")
	}
	own, err := a.params(s)
	if err != nil {
		return nil, err
	}
	locals, err := at.by.variables(at)
	return append(own, locals...), err
}

// notDescribed returns the error of a question about a site that its source cannot answer, which need not be the image's.
func (a *answeredSite) notDescribed(s *Site, what string) error {
	return &notDescribed{s.Image.Path(), a.source.What(), what}
}

func (a *answeredSite) namedType(s *Site, name string) (*types.Type, error) {
	if at, err := a.described(); err != nil || at != nil {
		if err != nil {
			return nil, err
		}
		return at.by.namedType(at, name)
	}
	return s.Image.by.namedType(name)
}

func (a *answeredSite) numbered(*Site) bool {
	_, is := a.Values.(answers.Numbered)
	return is
}

func (a *answeredSite) argument(s *Site, n int) (*Variable, error) {
	numbered, ok := a.Values.(answers.Numbered)
	if !ok {
		params, err := a.params(s)
		return s.nth(params, n), err
	}
	x, err := numbered.Argument(s.asked(), n)
	v := s.valueOf(&x, RoleGiven) // a number, or an address of anything
	v.OfFunction = true
	return v, err
}

func (a *answeredSite) enumerator(s *Site, name string) (value int64, found bool, err error) {
	if v, err := s.by.lookup(s, name); err != nil || v.Reason.Code != reasons.NoSuchVariable {
		return 0, false, err
	}
	if at, err := a.described(); err != nil || at != nil {
		if err != nil {
			return 0, false, err
		}
		return at.by.enumerator(at, name)
	}
	return a.source.Types().Enumerator(name)
}

// at knows the first instruction and the site itself.
func (a *answeredSite) at(s *Site, off uint64) (*Site, bool, error) {
	at := *s
	at.reused = false
	switch a.Start + off {
	case s.Addr:
	case a.Start:
		at.Addr, at.View, at.AfterPrologue = a.Start, 0, false
		at.locateSymbol(s.Function)
	default:
		if a.Inside != nil {
			_, ok := a.Inside(a.Start + off)
			return s.instruction(a.Start + off), ok, nil
		}
		return nil, false, a.notDescribed(s, "where else in a function its arguments are")
	}
	return &at, true, nil
}

// asked returns where a site asks for values.
func (s *Site) asked() answers.Place {
	at := s.here()
	return answers.Place{Addr: at.Addr, View: at.View, Exit: s.Kind == SiteExit, Entry: s.Kind == SiteEntry, Return: s.returning}
}

// valueOf returns a value as a variable of a site.
func (s *Site) valueOf(x *answers.Value, role Role) *Variable {
	v := &Variable{
		Name: x.Name, Role: role, Type: x.Type, Loc: x.Loc, Reason: x.Reason, Entries: x.Entries, LowBit: x.LowBit, Site: s,
	}
	if s.Image.leftOut.Has(v.Loc.Rule) {
		v.Reason, v.Loc = answers.Unrecovered(v.Loc.Rule), loc.Location{}
	}
	return v
}

func (a *answeredSite) params(s *Site) ([]*Variable, error) {
	values, err := a.Values.Params(s.asked())
	if err != nil {
		return nil, err
	}
	out := make([]*Variable, len(values))
	for i := range values {
		out[i] = s.valueOf(&values[i], a.role())
	}
	return out, nil
}

// role is that of what is passed to the site.
func (a *answeredSite) role() Role {
	if a.Evidence == answers.ByNote {
		return RoleGiven // a number, or an address of anything
	}
	return RoleParameter
}

func (a *answeredSite) lookup(s *Site, name string) (*Variable, error) {
	if x, found, err := answers.Param(a.Values, s.asked(), name); found || err != nil {
		if err != nil {
			return nil, err
		}
		return s.valueOf(&x, a.role()), nil
	}
	if at, err := a.described(); err != nil || at != nil {
		if err != nil {
			return nil, err
		}
		return at.by.lookup(at, name)
	}
	r := loc.Reason{Code: reasons.NoSuchVariable, Detail: strconv.Quote(name) + " is no parameter, and " + a.source.What() + " has no other variables"}
	return &Variable{Name: name, Role: RoleLocal, Type: types.VoidType, Reason: r}, nil
}

func (a *answeredSite) result(s *Site) (*Variable, error) {
	x, err := a.Values.Result(s.asked())
	if err != nil {
		return nil, err
	}
	v := s.valueOf(&x, RoleGiven)
	v.Name, v.Entries = "$retval", 1
	r, err := v.Type.Resolve()
	switch {
	case err != nil:
		return nil, err
	case r.Kind == types.Void && v.Reason.Code != reasons.NotDescribed:
		v.Loc, v.Reason = loc.Location{}, loc.Reason{Code: reasons.TypeMismatch, Detail: returnsNothing}
		v.Wrong = errors.New(returnsNothing)
	case s.jumps:
		v.Loc, v.Reason = loc.Location{}, loc.Reason{Code: reasons.NotAtSite, Detail: answers.ResultOfOther}
	case s.Kind == SiteExit:
		v.Loc, v.Reason = loc.Location{}, loc.Reason{Code: reasons.OptimizedOut, Detail: answers.ResultOfInlined}
	}
	return v, nil
}

func (a *answeredSite) frame(s *Site) (cfa, steady *loc.Expr, r loc.Reason, err error) {
	if at, err := a.described(); err != nil || at != nil {
		if err != nil {
			return nil, nil, r, err
		}
		return at.by.frame(at)
	}
	x, err := a.Values.Frame(s.asked())
	return x.Loc.Expr, nil, x.Reason, err
}

func (a *answeredSite) pointee(s *Site, target uint64) (*Variable, error) {
	if at, err := a.described(); err != nil || at != nil {
		if err != nil {
			return nil, err
		}
		return at.by.pointee(at, target)
	}
	x, err := a.Values.Pointee(s.asked(), target)
	if err != nil {
		return nil, err
	}
	return s.valueOf(&x, RoleLocal), nil
}
