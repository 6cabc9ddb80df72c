package dwarfloc

import (
	"sync"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/index"
)

// globals caches an image's variables outside functions.
type globals struct {
	mu    sync.Mutex
	units map[*unit]map[string]entries.Var
	found map[string]*entries.Var
}

// global finds a variable outside functions: one in the unit itself, or an external
// one in any unit. It returns nil if there is none.
func (u *unit) global(name string) (*entries.Var, error) {
	own, err := u.globalVars()
	if err != nil {
		return nil, err
	}
	x, declared := own[name]
	if declared && (x.Location.Form != 0 || x.Constant.Form != 0) {
		return &x, nil
	}
	// C code must declare another unit's variable to use it, but compilers omit unused
	// declarations, so the search does not require one.
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
			g.found = make(map[string]*entries.Var)
		}
		g.found[name] = y
		g.mu.Unlock()
	}
	if y == nil && declared {
		return &x, nil
	}
	return y, nil
}

// external returns the definition of an external variable in any unit, or nil.
func (img *Image) external(name string) (*entries.Var, error) {
	found := make([]*entries.Var, len(img.units))
	err := img.r.Index.Parallel(len(img.units), func(_ *index.Scanner, i int) error {
		u := &img.units[i]
		if u.IsType() {
			return nil
		}
		vars, err := u.globalVars()
		if err != nil {
			return err
		}
		if x, ok := vars[name]; ok && x.External && x.Location.Form != 0 {
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
func (u *unit) globalVars() (map[string]entries.Var, error) {
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
	vars = make(map[string]entries.Var)
	err = root.Children(func(c dw.Entry) (bool, error) {
		if c.Tag() != dw.TagVariable {
			return true, nil
		}
		x, err := u.ReadVar(c)
		if err != nil {
			return false, err
		}
		full := x
		if err := full.Complete(); err != nil {
			return false, err
		}
		// DW_AT_external may be only on the declaration that a definition completes.
		full.Location, full.Constant = x.Location, x.Constant
		name := u.Text(full.Name)
		if old, ok := vars[name]; !ok || old.Location.Form == 0 {
			full.External = full.External || old.External
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
		g.units = make(map[*unit]map[string]entries.Var)
	}
	g.units[u] = vars
	return vars, nil
}
