package dwarfloc

import (
	"cmp"
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/types"
)

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
	if err := r.params(s); err != nil {
		return nil, err
	}
	return r.out, nil
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

// resolver finds the parameters of many sites: it reuses its memory for the next site,
// and caches the declarations of functions, which may be inlined often. The zero value is
// ready to use, by one goroutine.
type resolver struct {
	ev    evaluator
	here  scope
	pairs []pair
	vars  []Variable
	out   []*Variable

	unit  *unit // the unit of the cached functions
	funs  map[uint64]span
	decls []declared
}

// span is a part of a resolver's decls.
type span struct{ from, to int }

// declared is a parameter of a function's abstract entry.
type declared struct {
	varEntry // completed
	text     string
	t        *types.Type
	err      error // from reading the type
}

// pair is what the site's own entries say about a declared parameter.
type pair struct {
	x       *varEntry // the best of them, or nil
	entries int
}

func (r *resolver) params(s *Site) error {
	r.ev.begin(s)
	r.out = r.out[:0]
	decl, err := r.declaration(s)
	if err != nil {
		return err
	}
	e, err := s.u.Entry(s.DIE)
	if err != nil {
		return err
	}
	r.here.vars = r.here.vars[:0]
	if err := r.here.read(s, e, noBlocks, 0, true); err != nil {
		return err
	}
	here := r.here.vars
	// Callers get pointers to variables, so the slice must not grow later.
	if n := len(decl) + len(here); cap(r.vars) < n {
		r.vars = make([]Variable, 0, 2*n)
	}
	r.vars = r.vars[:0]
	// The abstract entry has the name and type, the site's own the location. A clone can
	// describe a lost parameter as a variable.
	r.pairs = append(r.pairs[:0], make([]pair, len(decl))...)
	for j := range here {
		h := &here[j]
		at, err := h.declaration(decl)
		if err != nil {
			return err
		}
		if h.paired = at >= 0; !h.paired {
			continue
		}
		p := &r.pairs[at]
		if p.entries == 0 || h.better(p.x) {
			p.x = &h.varEntry
		}
		p.entries++
	}
	for i := range decl {
		if err := r.add(s, r.pairs[i].x, &decl[i], max(r.pairs[i].entries, 1)); err != nil {
			return err
		}
	}
	for j := range here {
		if h := &here[j]; h.tag == dw.TagFormalParameter && !h.paired {
			if err := r.add(s, &h.varEntry, nil, 1); err != nil {
				return err
			}
		}
	}
	return nil
}

// declaration returns the index of the declared parameter that the site's own entry x
// describes, or -1: x's origin, or with link-time optimization the same parameter of the
// same function in another unit.
func (x *varEntry) declaration(decl []declared) (int, error) {
	if x.origin.Form == 0 || len(decl) == 0 {
		return -1, nil
	}
	_, off, err := x.u.Ref(x.origin)
	if err != nil {
		return -1, nil // the error is reported when the entry is read
	}
	if i, found := slices.BinarySearchFunc(decl, off, func(d declared, off uint64) int { return cmp.Compare(d.off, off) }); found {
		return i, nil
	}
	text, err := x.text()
	if err != nil || text == "" {
		return -1, err
	}
	return slices.IndexFunc(decl, func(d declared) bool { return d.text == text }), nil
}

// add resolves a parameter that the site's own entry x, its declaration d, or both
// describe.
func (r *resolver) add(s *Site, x *varEntry, d *declared, entries int) error {
	r.vars = r.vars[:len(r.vars)+1]
	v := &r.vars[len(r.vars)-1]
	r.out = append(r.out, v)
	if x == nil {
		c := d.varEntry // d is cached
		x = &c
	}
	if d != nil {
		x.origin, x.root = dw.Value{}, d.root // its origins have been read
	}
	var err error
	if d != nil && x.u == d.u && s.u == d.u && (x.off == d.off || x.name.Form == 0 && x.typ.Form == 0) {
		if !x.described() {
			x.constant = d.constant
		}
		*v = Variable{Name: d.text}
		err = s.settle(v, x, &r.ev, d.t, d.err)
	} else {
		if d != nil && x.off != d.off {
			if err := x.inherit(&d.varEntry); err != nil {
				return err
			}
		}
		err = s.fill(v, x, &r.ev)
	}
	v.Role, v.Entries = RoleParameter, entries
	return err
}

// declaration returns the parameters in the function's abstract entry, with their names
// and types, or nothing if the site's own entry is all there is.
func (r *resolver) declaration(s *Site) ([]declared, error) {
	if s.origin.Form == 0 {
		return nil, nil
	}
	_, off, err := s.u.Ref(s.origin)
	if err != nil {
		return nil, err
	}
	if r.unit != s.u {
		r.unit, r.decls = s.u, r.decls[:0]
		if r.funs == nil {
			r.funs = make(map[uint64]span)
		}
		clear(r.funs)
	}
	if f, known := r.funs[off]; known {
		return r.decls[f.from:f.to], nil
	}
	abs, ok, err := s.abstract()
	if err != nil || !ok {
		return nil, err
	}
	f := span{from: len(r.decls)}
	err = s.u.img.eachParam(abs, func(x *varEntry) (bool, error) {
		err := x.complete()
		if err == nil {
			x.root, err = x.ultimate(nil)
		}
		d := declared{varEntry: *x, text: x.u.Text(x.name)}
		d.t, d.err = x.u.typeOf(x.typ)
		r.decls = append(r.decls, d)
		return true, err
	})
	if err != nil {
		return nil, err
	}
	f.to = len(r.decls)
	r.funs[off] = f
	return r.decls[f.from:f.to], nil
}
