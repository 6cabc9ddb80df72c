package dwarfloc

import (
	"strconv"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/resolve"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/types"
)

// Lookup returns the variable that a name stands for at the site, by C's rules of
// scope. It looks in the innermost block that holds the site's address, then in the
// enclosing blocks up to the site's function, then among the unit's globals, then
// among those of all units. Variables of the functions that the site is inlined into
// are not in scope. An unknown name is not an error: the variable then has the reason
// reasons.NoSuchVariable.
func (s *Site) Lookup(name string) (*Variable, error) {
	var v *Variable
	err := s.Image.guard(func() (err error) {
		v, err = s.by.lookup(s, name)
		return err
	})
	return v, err
}

func (debugInfo) lookup(s *Site, name string) (*Variable, error) {
	if s.returning && s.u.Body.IsGo() {
		if v, found, err := s.goResult(name); found || err != nil {
			return v, err
		}
	}
	at := visible{site: s}
	return at.lookup(name)
}

// visible is what names mean at a site.
type visible struct {
	site *Site
	many bool // many names are looked up

	ev       *resolve.Evaluator // nil before the first lookup
	here     entries.Scope
	declared entries.Scope // by the function; empty until it is needed, and if the site's own entry is all there is
	isRead   bool          // declared
	around   *enclosing    // nil before it is needed
}

func (at *visible) read() error {
	if at.ev != nil {
		return nil
	}
	s := at.site
	e, err := s.u.Entry(s.DIE)
	if err != nil {
		return err
	}
	if err := at.scope(&at.here, e, entries.PlacedBlocks); err != nil {
		return err
	}
	at.ev = s.evaluator()
	return nil
}

func (at *visible) readDeclared() error {
	if at.isRead {
		return nil
	}
	abs, ok, err := at.site.spot.Abstract()
	if ok && err == nil {
		err = at.scope(&at.declared, abs, entries.AllBlocks)
	}
	at.isRead = err == nil
	return err
}

// scope reads the variables below an entry.
func (at *visible) scope(sc *entries.Scope, e dw.Entry, b entries.Blocks) error {
	if err := sc.Read(at.site.at(), e, b, true); err != nil || !at.many {
		return err
	}
	return sc.Index()
}

func (at *visible) lookup(name string) (*Variable, error) {
	s := at.site
	if err := at.read(); err != nil {
		return nil, err
	}
	ev := at.ev
	begins := s.Kind == SiteEntry || s.Kind == SiteInline
	best, elsewhere, err := at.here.Find(name, begins)
	if err != nil {
		return nil, err
	}
	left := false // the site's own entry leaves it out: it was optimized away here
	if best == nil || begins && best.InBlock() {
		if err := at.readDeclared(); err != nil {
			return nil, err
		}
		declared, inBlock, err := at.declared.Find(name, begins)
		if err != nil {
			return nil, err
		}
		if elsewhere = elsewhere || inBlock; best == nil || declared != nil && !declared.InBlock() {
			best, left = declared, true
		}
	}
	if best != nil {
		extern, err := s.extern(&best.Var)
		if err != nil {
			return nil, err
		}
		if !extern {
			if left && best.Constant.Form == 0 && !best.Static() {
				best.Location = dw.Value{}
			}
			return s.variable(&best.Var, ev)
		}
	}
	if best == nil && !elsewhere {
		if v, err := at.ofEnclosing(name); v != nil || err != nil {
			return v, err
		}
	}
	x, err := s.u.global(name)
	if err != nil {
		return nil, err
	}
	switch {
	case x != nil:
		y := *x // all sites share x
		v, err := s.variable(&y, ev)
		if v != nil {
			v.Role = RoleGlobal
			if v.Reason == (loc.Reason{Code: reasons.OptimizedOut}) && y.Decl {
				v.Reason.Detail = "it is declared, and no unit of the image defines it"
			}
		}
		return v, err
	case elsewhere:
		return &Variable{Name: name, Role: RoleLocal, Type: types.VoidType, Reason: loc.Reason{Code: reasons.NotAtSite, Detail: "it is declared in a block that does not hold the site"}}, nil
	}
	return &Variable{Name: name, Role: RoleLocal, Type: types.VoidType, Reason: loc.Reason{Code: reasons.NoSuchVariable, Detail: strconv.Quote(name)}}, nil
}

// extern reports whether a variable is one outside of functions that a block declares, in C: in C++ its namespace is not known by the name.
func (s *Site) extern(x *entries.Var) (bool, error) {
	if !dw.IsC(s.u.Lang) {
		return false, nil
	}
	return x.Elsewhere()
}

// names returns the sorted names of the parameters and locals in scope at the site.
func (s *Site) names() ([]string, error) {
	e, err := s.u.Entry(s.DIE)
	if err != nil {
		return nil, err
	}
	abs, ok, err := s.spot.Abstract()
	if err != nil {
		return nil, err
	}
	if ok {
		e = abs
	}
	var sc entries.Scope
	if err := sc.Read(s.at(), e, entries.AllBlocks, true); err != nil {
		return nil, err
	}
	around, err := s.nestedIn()
	if err != nil {
		return nil, err
	}
	sc.Vars = append(sc.Vars, around.scope.Vars...)
	return sc.Names()
}

// Variables returns the parameters and locals in scope at the site, sorted by name,
// without those of the functions that the site is inlined into.
func (s *Site) Variables() (out []*Variable, err error) {
	err = s.Image.guard(func() error {
		out, err = s.by.variables(s)
		return err
	})
	return out, err
}

func (debugInfo) variables(s *Site) (out []*Variable, err error) {
	err = s.u.img.guard(func() error {
		names, err := s.names()
		if err != nil {
			return err
		}
		at := visible{site: s, many: true}
		for _, n := range names {
			v, err := at.lookup(n)
			if err != nil {
				return err
			}
			if v.Role == RoleParameter || v.Role == RoleLocal {
				out = append(out, v)
			}
		}
		return nil
	})
	return out, err
}
