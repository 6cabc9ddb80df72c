package dwarfloc

import (
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/index"
	"github.com/bpfprologue/bpfprologue/loc"
)

// Lookup finds the variable that a name stands for at the site, by C's rules of
// scope: in the innermost block that holds the site's address, then in the blocks
// around it up to the function whose site it is, then among the unit's globals,
// then among all units'. Variables of the functions that the site is inlined into
// are not in scope. A name that is not found is no error but a variable with the
// reason NoSuchVariable.
func (s *Site) Lookup(name string) (*Variable, error) {
	var v *Variable
	err := s.u.img.guard(func() (err error) {
		v, err = s.lookup(name)
		return err
	})
	return v, err
}

func (s *Site) lookup(name string) (*Variable, error) {
	e, err := s.u.Entry(s.die)
	if err != nil {
		return nil, err
	}
	ev := s.evaluator()
	f := finder{s: s, name: name}
	if err := f.search(e, true, 0); err != nil {
		return nil, err
	}
	if f.best != nil {
		return s.variable(f.best, ev)
	}
	abs, ok, err := s.abstract()
	if err != nil {
		return nil, err
	}
	if ok {
		// What the function declares but the site's own entry leaves out was
		// optimized away here.
		g := finder{s: s, name: name, abstract: true}
		if err := g.search(abs, true, 0); err != nil {
			return nil, err
		}
		if g.best != nil {
			x := *g.best
			if x.constant.Form == 0 {
				x.location = dw.Value{}
			}
			return s.variable(&x, ev)
		}
		f.elsewhere = f.elsewhere || g.elsewhere
	}
	x, err := s.u.global(name)
	if err != nil {
		return nil, err
	}
	switch {
	case x != nil:
		y := *x // shared by all sites
		v, err := s.variable(&y, ev)
		if v != nil {
			v.Role = Global
			if v.Reason == (loc.Reason{Code: loc.ReasonOptimizedOut}) && y.decl {
				v.Reason.Detail = "it is declared, and no unit of the image defines it"
			}
		}
		return v, err
	case f.elsewhere:
		return &Variable{Name: name, Role: Local, Type: voidType, Reason: loc.Reason{Code: loc.ReasonNotAtSite, Detail: "it is declared in a block that does not hold the site"}}, nil
	}
	return &Variable{Name: name, Role: Local, Type: voidType, Reason: loc.Reason{Code: loc.ReasonNoSuchVariable, Detail: strconv.Quote(name)}}, nil
}

// Pointee returns the object that an implicit pointer points to, as it is at the
// site: the pointer was optimized away, its object often was not. l.TargetOffset is
// where in the object it points to, in bytes. The object of a string literal has no
// name and no type.
func (s *Site) Pointee(l *loc.Location) (*Variable, error) {
	if l.Kind != loc.KindImplicitPointer {
		return nil, fmt.Errorf("%v: a location that is %v has no pointee", s, l.Kind)
	}
	var v *Variable
	err := s.u.img.guard(func() (err error) {
		v, err = s.pointee(l)
		return err
	})
	return v, err
}

func (s *Site) pointee(l *loc.Location) (*Variable, error) {
	u := s.u.img.d.UnitAt(l.Target)
	if u == nil {
		return nil, s.u.Data.Errorf(".debug_info", l.Target, "an implicit pointer's object is outside any unit")
	}
	if err := u.Load(); err != nil {
		return nil, err
	}
	e, err := u.Entry(l.Target)
	if err != nil {
		return nil, err
	}
	if e.IsEnd() {
		return nil, s.u.Data.Errorf(".debug_info", l.Target, "an implicit pointer names the end of a list of entries")
	}
	x, err := s.u.img.of(u).readVar(e)
	if err != nil {
		return nil, err
	}
	return s.variable(&x, s.evaluator())
}

// VariableNames returns the names of the parameters and locals of the site's
// function, sorted, for suggestions.
func (s *Site) VariableNames() (names []string, err error) {
	err = s.u.img.guard(func() error {
		names, err = s.names()
		return err
	})
	return names, err
}

func (s *Site) names() ([]string, error) {
	e, err := s.u.Entry(s.die)
	if err != nil {
		return nil, err
	}
	abs, ok, err := s.abstract()
	if err != nil {
		return nil, err
	}
	var names []string
	f := finder{s: s, abstract: true, each: func(n string) { names = append(names, n) }}
	if ok {
		e = abs
	}
	if err := f.search(e, true, 0); err != nil {
		return nil, err
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// finder looks for a name in a function's blocks.
type finder struct {
	s         *Site
	name      string
	abstract  bool // blocks have no addresses
	each      func(name string)
	best      *varEntry
	depth     int  // of best
	elsewhere bool // the name is declared where the site is not
}

// search goes through an entry's variables and blocks. inside tells that the
// block holds the site.
func (f *finder) search(e dw.Entry, inside bool, depth int) error {
	if depth > maxTypeDepth {
		return nil
	}
	return e.Children(func(c dw.Entry) (bool, error) {
		switch c.Tag() {
		case dw.TagFormalParameter, dw.TagVariable:
			x, err := f.s.u.img.of(c.Unit).readVar(c)
			if err != nil {
				return false, err
			}
			full := x
			if err := full.complete(); err != nil {
				return false, err
			}
			name := full.u.Text(full.name)
			switch {
			case f.each != nil:
				f.each(name)
			case name != f.name || name == "":
			case !inside:
				f.elsewhere = true
			case f.best == nil || depth > f.depth:
				f.best, f.depth = &x, depth
			case depth == f.depth:
				if x.better(f.best) {
					f.best = &x
				}
			}
		case dw.TagLexicalBlock:
			in := inside && !f.abstract
			if in {
				var pcs dw.PCs
				if err := c.Attrs(pcs.Take); err != nil {
					return false, err
				}
				ranges, err := c.Unit.Extent(&pcs)
				if err != nil {
					return false, err
				}
				in = holds(ranges, f.s.Addr)
			}
			return true, f.search(c, in, depth+1)
		}
		return true, nil
	})
}

// holds is covers, and true for an empty range at the address: a block whose code
// was merged into its neighbours.
func holds(ranges []dw.Range, addr uint64) bool {
	return dw.Covers(ranges, addr) || slices.ContainsFunc(ranges, func(r dw.Range) bool { return r.Lo == addr && r.Hi == addr })
}

// globals is what an image remembers of variables outside functions.
type globals struct {
	mu    sync.Mutex
	units map[*unit]map[string]varEntry
	found map[string]*varEntry
}

// global finds a variable outside functions: of the unit itself, or an external
// one of any unit. It returns nil when there is none.
func (u *unit) global(name string) (*varEntry, error) {
	own, err := u.globalVars()
	if err != nil {
		return nil, err
	}
	x, declared := own[name]
	if declared && (x.location.Form != 0 || x.constant.Form != 0) {
		return &x, nil
	}
	// C needs a declaration to name another unit's variable, but compilers leave out
	// declarations that the unit did not use: the search goes on without one.
	g := &u.img.globals
	g.mu.Lock()
	y, known := g.found[name]
	g.mu.Unlock()
	if !known {
		if y, err = u.img.external(name); err != nil {
			return nil, err
		}
		g.mu.Lock()
		if g.found == nil {
			g.found = make(map[string]*varEntry)
		}
		g.found[name] = y
		g.mu.Unlock()
	}
	if y == nil && declared {
		return &x, nil
	}
	return y, nil
}

// external finds the definition of an external variable in any unit.
func (img *Image) external(name string) (*varEntry, error) {
	found := make([]*varEntry, len(img.units))
	err := img.index.Parallel(len(img.units), func(_ *index.Scanner, i int) error {
		u := &img.units[i]
		if u.Kind == dw.UnitType {
			return nil
		}
		vars, err := u.globalVars()
		if err != nil {
			return err
		}
		if x, ok := vars[name]; ok && x.external && x.location.Form != 0 {
			found[i] = &x
		}
		return nil
	})
	for _, x := range found {
		if x != nil {
			return x, err
		}
	}
	return nil, err
}

// globalVars returns the variables that a unit has outside functions.
func (u *unit) globalVars() (map[string]varEntry, error) {
	g := &u.img.globals
	g.mu.Lock()
	vars, ok := g.units[u]
	g.mu.Unlock()
	if ok {
		return vars, nil
	}
	if err := u.Load(); err != nil {
		return nil, err
	}
	root, err := u.Entry(u.First)
	if err != nil {
		return nil, err
	}
	vars = make(map[string]varEntry)
	err = root.Children(func(c dw.Entry) (bool, error) {
		if c.Tag() != dw.TagVariable {
			return true, nil
		}
		x, err := u.readVar(c)
		if err != nil {
			return false, err
		}
		full := x
		if err := full.complete(); err != nil {
			return false, err
		}
		// A definition may leave DW_AT_external to the declaration it completes.
		full.location, full.constant = x.location, x.constant
		name := u.Text(full.name)
		if old, ok := vars[name]; !ok || old.location.Form == 0 {
			full.external = full.external || old.external
			vars[name] = full
		}
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.units == nil {
		g.units = make(map[*unit]map[string]varEntry)
	}
	g.units[u] = vars
	return vars, nil
}
