package dwarfloc

import "github.com/bpfprologue/bpfprologue/internal/resolve"

// Params returns the function's parameters in order, as they are at the site. A
// parameter that the site's own entry leaves out was optimized away.
func (s *Site) Params() (out []*Variable, err error) {
	if s.reused {
		return s.by.params(s) // EachSite has called guard
	}
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
	r := s.resolvers.next()
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
	err = r.params.Each(func(name string, entries int, a *resolve.Answer) {
		r.vars = append(r.vars, Variable{Name: name, Role: RoleParameter, Entries: entries})
		v := &r.vars[len(r.vars)-1]
		v.set(s, a)
		r.out = append(r.out, v)
	})
	return r.out, err
}

// resolvers are those of one goroutine, for what one callback asks: the parameters of a site,
// and of copies of it at other ways. They cannot share a resolver's memory.
type resolvers struct {
	all  []*resolver
	used int
}

// next returns a resolver that has not been used since the last site.
func (r *resolvers) next() *resolver {
	if r == nil {
		return new(resolver)
	}
	if r.used++; r.used > len(r.all) {
		r.all = append(r.all, new(resolver))
	}
	return r.all[r.used-1]
}

// resolver keeps the memory of a site's parameters for the next site. The zero value is ready to use, by one goroutine.
type resolver struct {
	params resolve.Params
	spot   resolve.Spot
	vars   []Variable
	out    []*Variable
}
