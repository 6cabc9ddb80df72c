package dwarfloc

import (
	"fmt"

	"github.com/bpfprologue/bpfprologue/internal/answers"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/resolve"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/types"
)

// Params returns the function's parameters in order, as they are at the site. A
// parameter that the site's own entry leaves out was optimized away.
func (s *Site) Params() ([]*Variable, error) {
	if s.reused {
		return s.by.params(s) // EachSite has called guard
	}
	return s.guardedParams()
}

func (s *Site) guardedParams() (out []*Variable, err error) {
	err = s.Image.guard(func() error {
		out, err = s.by.params(s)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (debugInfo) params(s *Site) ([]*Variable, error) {
	r := s.resolver()
	s.setSpot(&r.spot)
	n, err := r.params.Read(&r.spot)
	if err != nil {
		return nil, err
	}
	// Callers get pointers to variables, so the slice must not grow later.
	if cap(r.vars) < n {
		r.vars = make([]Variable, 0, 2*n)
	}
	r.vars, r.out = r.vars[:0], r.out[:0]
	err = r.params.Each(func(name string, described int, a *resolve.Answer) {
		r.vars = append(r.vars, Variable{Name: name, Role: RoleParameter, Entries: described})
		v := &r.vars[len(r.vars)-1]
		v.set(s, a)
		r.out = append(r.out, v)
	})
	return r.out, err
}

// argument is inside.Argument.
func (s *Site) argument(n int) (v *Variable, err error) {
	err = s.Image.guard(func() error {
		v, err = s.by.argument(s, n)
		return err
	})
	return v, err
}

// noNames is inside.NoNames.
func (s *Site) noNames() bool { return s.by.numbered(s) }

// numbered: assemblers describe functions, and none of their parameters.
func (debugInfo) numbered(s *Site) bool { return s.u.Lang == dw.LangAssembler }

func (d debugInfo) argument(s *Site, n int) (*Variable, error) {
	if d.numbered(s) {
		x, err := answers.Word(s.asked(), s.Image.machine(), n)
		v := s.valueOf(&x, RoleGiven)
		v.OfFunction = true
		return v, err
	}
	params, err := s.by.params(s)
	if err != nil {
		return nil, err
	}
	return s.nth(params, n), nil
}

// nth returns a parameter by its number.
func (s *Site) nth(params []*Variable, n int) *Variable {
	if n > 0 && n <= len(params) {
		return params[n-1]
	}
	r := loc.Reason{Code: reasons.NoSuchVariable, Detail: fmt.Sprintf("%s has %d parameters", s.Function, len(params))}
	return &Variable{Name: fmt.Sprintf("arg%d", n), Role: RoleParameter, Type: types.VoidType, Reason: r}
}

// resolvers are those of one goroutine, for what one callback asks: the parameters of a site, and of copies of it at other ways, which
// are here too. They cannot share a resolver's memory.
type resolvers struct {
	shared     resolve.Shared
	params     pool[resolver]
	evaluators pool[resolve.Evaluator]
	spots      pool[entries.Spot]
	copies     pool[Site]
	lists      []*Site        // what list returns
	vars       pool[Variable] // that are no parameters
	results    map[*types.Type]returned
	resultsOf  *unit
}

// next makes them ready for the next site.
func (r *resolvers) next() {
	r.params.used, r.evaluators.used, r.spots.used, r.copies.used, r.vars.used = 0, 0, 0, 0, 0
	r.lists = r.lists[:0]
}

// pool is memory for what is made anew for each site.
type pool[T any] struct {
	all  []*T
	used int
}

// next returns one that has not been used since the last site.
func (p *pool[T]) next() *T {
	if p.used++; p.used > len(p.all) {
		p.all = append(p.all, new(T))
	}
	return p.all[p.used-1]
}

func (s *Site) resolver() *resolver {
	if s.resolvers == nil {
		return new(resolver)
	}
	r := s.resolvers.params.next()
	r.params.Share(&s.resolvers.shared)
	return r
}

// evaluator returns one for the site.
func (s *Site) evaluator() *resolve.Evaluator {
	if s.resolvers == nil {
		return resolve.At(s.at())
	}
	ev := s.resolvers.evaluators.next()
	ev.Share(&s.resolvers.shared)
	ev.Begin(s.at())
	return ev
}

// at returns the spot at which the site's variables are resolved.
func (s *Site) at() *entries.Spot {
	var at *entries.Spot
	if s.resolvers == nil {
		at = new(entries.Spot)
	} else {
		at = s.resolvers.spots.next()
	}
	s.setSpot(at)
	return at
}

// list returns memory for copies of the site.
func (s *Site) list(n int) []*Site {
	if s.resolvers == nil {
		return make([]*Site, n)
	}
	all := &s.resolvers.lists
	from := len(*all)
	*all = append(*all, make([]*Site, n)...)
	return (*all)[from : from+n : from+n]
}

// newVariable returns memory for a variable at the site that is no parameter.
func (s *Site) newVariable() *Variable {
	if s.resolvers == nil {
		return new(Variable)
	}
	return s.resolvers.vars.next()
}

// copied returns a copy of the site.
func (s *Site) copied() *Site {
	var at *Site
	if s.resolvers == nil {
		at = new(Site)
	} else {
		at = s.resolvers.copies.next()
	}
	*at = *s
	return at
}

// resolver keeps the memory of a site's parameters for the next site. The zero value is ready to use, by one goroutine.
type resolver struct {
	params resolve.Params
	spot   entries.Spot
	vars   []Variable
	out    []*Variable
}
