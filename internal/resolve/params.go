package resolve

import (
	"cmp"
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/witness"
	"github.com/bpfprologue/bpfprologue/types"
)

// Params finds the parameters of many spots: it reuses its memory for the next one,
// and caches the declarations of functions, which may be inlined often. The zero value is
// ready to use, by one goroutine.
type Params struct {
	ev    Evaluator
	here  entries.Scope
	own   []bool // for each of here's: no declared parameter is described by it
	pairs []pair
	decl  []declared // of the spot's function
	a     Answer
	lost  entries.Var // of a parameter that the spot's own entries leave out

	unit  *entries.Unit // the unit of the cached functions
	funs  map[uint64]span
	decls []declared
}

// span is a part of a Params' decls.
type span struct{ from, to int }

// declared is a parameter of a function's abstract entry.
type declared struct {
	entries.Var // completed
	text        string
	t           *types.Type
	err         error // from reading the type
}

// pair is what the spot's own entries say about a declared parameter.
type pair struct {
	x       *entries.Var // the best of them, or nil
	entries int
}

// Read reads the parameters of the function that has a spot. Each does not call its function more often than n times.
func (r *Params) Read(s *entries.Spot) (n int, err error) {
	r.ev.Begin(s)
	if r.decl, err = r.declaration(s); err != nil {
		return 0, err
	}
	e, err := s.Entry()
	if err != nil {
		return 0, err
	}
	r.here.Vars, r.own = r.here.Vars[:0], r.own[:0]
	if err := r.here.Read(s, e, entries.NoBlocks, true); err != nil {
		return 0, err
	}
	// The abstract entry has the name and type, the spot's own the location. A clone can
	// describe a lost parameter as a variable.
	r.pairs = append(r.pairs[:0], make([]pair, len(r.decl))...)
	for j := range r.here.Vars {
		h := &r.here.Vars[j]
		at, err := declaration(&h.Var, r.decl)
		if err != nil {
			return 0, err
		}
		if r.own = append(r.own, at < 0); at < 0 {
			continue
		}
		p := &r.pairs[at]
		if p.entries == 0 || h.Better(p.x) {
			p.x = &h.Var
		}
		p.entries++
	}
	return len(r.decl) + len(r.here.Vars), nil
}

// Each calls f with each parameter in order, by its name: so many entries describe it. Results of Go functions are none: nobody passes them. The answer is valid until f returns, and what it refers
// to until the next Read.
func (r *Params) Each(f func(name string, described int, a *Answer)) error {
	s := r.ev.spot
	keeps, err := r.keeps()
	if err != nil {
		return err
	}
	r.ev.plain, r.ev.lacked = keeps && s.U.Plain(s.Rec), false
	keeps = keeps && !r.ev.plain // and it is not known
	if keeps && !r.ev.unclaimed {
		if err := r.ev.keptClaims(); err != nil {
			return err
		}
	}
	if err := r.each(f); err != nil || !keeps {
		return err
	}
	if r.ev.keepClaims(); !r.ev.lacked {
		s.U.SetPlain(s.Rec)
	}
	return nil
}

// keeps reports whether it is kept of a body that its parameters are plain: of those that all of a kernel is asked about.
func (r *Params) keeps() (bool, error) {
	s := r.ev.spot
	if !s.Own || !s.U.Img.Alone || s.U.Img.LeftOut != 0 || r.ev.shared == nil {
		return false, nil
	}
	return s.U.Img.Code.IsKernel()
}

func (r *Params) each(f func(name string, described int, a *Answer)) error {
	a := &r.a
	for i := range r.decl {
		if r.decl[i].Result {
			continue
		}
		p := &r.pairs[i]
		r.ev.said.asked = i
		name, err := r.answer(a, p.x, &r.decl[i])
		if err != nil {
			return err
		}
		f(name, max(p.entries, 1), a)
	}
	for j := range r.here.Vars {
		if h := &r.here.Vars[j]; h.Tag == dw.TagFormalParameter && r.own[j] && !h.Result {
			r.ev.said.asked = len(r.decl) + j
			name, err := r.answer(a, &h.Var, nil)
			if err != nil {
				return err
			}
			f(name, 1, a)
		}
	}
	return nil
}

// reader returns a witness.Reader: it resolves parameters without what witnesses say.
func reader() witness.Reader {
	r := &Params{}
	r.ev.unclaimed = true
	r.Share(new(Shared))
	var out []witness.Param
	return func(s *entries.Spot) ([]witness.Param, error) {
		out = out[:0]
		if _, err := r.Read(s); err != nil {
			return nil, err
		}
		err := r.Each(func(name string, _ int, a *Answer) {
			out = append(out, witness.Param{Name: name, Type: a.Type, Loc: a.Loc, Located: a.Located()})
		})
		return out, err
	}
}

// answer resolves a parameter that the spot's own entry x, its declaration d, or both describe.
func (r *Params) answer(a *Answer, x *entries.Var, d *declared) (name string, err error) {
	if x == nil {
		r.lost = d.Var // d is cached
		x = &r.lost
	}
	if d != nil {
		x.Origin, x.Root = dw.Value{}, d.Root // its origins have been read
	}
	if d != nil && x.U == d.U && r.ev.spot.U == d.U && (x.Off == d.Off || x.Name.Form == 0 && x.Type.Form == 0) {
		if !x.Described() {
			x.Constant = d.Constant
		}
		x.Name, x.Object = d.Name, d.Object // the unit is the same
		return d.text, r.ev.Settle(a, x, d.t, d.err)
	}
	if d != nil && x.Off != d.Off {
		if err := x.Inherit(&d.Var); err != nil {
			return "", err
		}
	}
	err = r.ev.Resolve(a, x)
	return x.U.Text(x.Name), err
}

// declaration returns the index of the declared parameter that the spot's own entry x
// describes, or -1: x's origin, or with link-time optimization the same parameter of the
// same function in another unit.
func declaration(x *entries.Var, decl []declared) (int, error) {
	if x.Origin.Form == 0 || len(decl) == 0 {
		return -1, nil
	}
	_, off, err := x.U.Ref(x.Origin)
	if err != nil {
		return -1, nil // the error is reported when the entry is read
	}
	if i, found := slices.BinarySearchFunc(decl, off, func(d declared, off uint64) int { return cmp.Compare(d.Off, off) }); found {
		return i, nil
	}
	text, err := x.Text()
	if err != nil || text == "" {
		return -1, err
	}
	return slices.IndexFunc(decl, func(d declared) bool { return d.text == text }), nil
}

// declaration returns the parameters in the function's abstract entry, with their names
// and types, or nothing if the spot's own entry is all there is.
func (r *Params) declaration(s *entries.Spot) ([]declared, error) {
	if s.Origin.Form == 0 {
		return nil, nil
	}
	_, off, err := s.U.Ref(s.Origin)
	if err != nil {
		return nil, err
	}
	if r.unit != s.U {
		r.unit, r.decls = s.U, r.decls[:0]
		if r.funs == nil {
			r.funs = make(map[uint64]span)
		}
		clear(r.funs)
	}
	if f, known := r.funs[off]; known {
		return r.decls[f.from:f.to], nil
	}
	abs, ok, err := s.Abstract()
	if err != nil || !ok {
		return nil, err
	}
	f := span{from: len(r.decls)}
	err = s.U.Img.EachParam(abs, func(x *entries.Var) (bool, error) {
		err := x.Complete()
		if err == nil {
			x.Root, err = x.Ultimate(nil)
		}
		d := declared{Var: *x, text: x.U.Text(x.Name)}
		d.t, d.err = r.ev.giveType(x)
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
