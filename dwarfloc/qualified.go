package dwarfloc

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/qualify"
)

// Functions of C++ and Rust have a name of their own in the debug information, "get", and one with the
// namespaces and classes around it, "app::Box<int>::get", which is in their symbol. Units of other
// languages, and so kernels, have only the first.

// qualifies reports whether the unit's functions have qualified names.
func (u *unit) qualifies() bool { return qualify.Has(u.Unit.Unit.Unit) }

// QualifiedName returns the name of the site's function as people write it: in C++ and Rust with its
// namespaces and classes, without parameters. Elsewhere it is Function.
func (s *Site) QualifiedName() (string, error) {
	if s.by == nil {
		return s.Function, nil
	}
	return s.by.qualifiedName(s)
}

func (debugInfo) qualifiedName(s *Site) (string, error) {
	if s.Function != "" && !s.u.qualifies() {
		return s.Function, nil
	}
	name := s.Function
	err := s.u.img.guard(func() error {
		if name == "" {
			name = s.u.img.r.Index.NameOf(s.u.NameRefOf(&s.u.Recs[s.spot.Rec]))
		}
		if !s.u.qualifies() {
			return nil
		}
		e, err := s.u.Entry(s.DIE)
		if err != nil {
			return err
		}
		q, err := s.u.img.names.Of(e)
		if q != "" {
			name = q
		}
		return err
	})
	return name, err
}

// Place is SymbolOffset with the symbol's name as people write it.
func (s *Site) Place() string {
	text := s.SymbolOffset()
	if s.Symbol == "" || s.by == nil || !s.by.qualifies(s) {
		return text
	}
	if q := qualify.Symbol(s.Symbol); q != "" {
		return q + strings.TrimPrefix(text, s.Symbol)
	}
	return text
}

// namedBy is inside.Named.
func (s *Site) namedBy(m Matcher) (bool, error) {
	name, err := s.QualifiedName()
	if err != nil || qualify.Matches(m, name) {
		return err == nil, err
	}
	return s.by.named(s, m, name)
}

// qualifies reports whether symbols of the site's unit may be mangled.
func (debugInfo) qualifies(s *Site) bool { return s.u.qualifies() }

// named is Named for what is not the qualified name as it is.
func (debugInfo) named(s *Site, m Matcher, name string) (bool, error) {
	if s.u.Lang == dw.LangRust && qualify.Matches(m, qualify.WithoutTypes(name)) {
		return true, nil
	}
	// What a Rust symbol calls <str>::len is in the namespace core::str, and what it calls a closure has a
	// number.
	if !s.u.qualifies() || name[0] != '<' && !strings.Contains(name, "{") {
		return false, nil
	}
	scoped := ""
	err := s.u.img.guard(func() error {
		e, err := s.u.Entry(s.DIE)
		if err == nil {
			scoped, err = s.u.img.names.Scoped(e)
		}
		return err
	})
	return err == nil && qualify.Matches(m, scoped), err
}

// QualifiedNames returns the names of all functions with at least one site, as QualifiedName returns
// them, sorted, without duplicates. For an image without C++ and Rust it is FunctionNames.
func (img *Image) QualifiedNames(ctx context.Context) ([]string, error) {
	return img.by.qualifiedNames(ctx)
}

func (img dwarfImage) qualifiedNames(ctx context.Context) ([]string, error) {
	qualifies := false
	err := img.guard(func() error {
		if err := img.prepare(true); err != nil {
			return err
		}
		asked := 0
		for i := range img.units {
			u := &img.units[i]
			if err := u.Load(); err != nil {
				return err
			}
			if u.Lang != 0 { // partial units have none
				asked++
			}
			if qualifies = u.qualifies(); qualifies || asked > fewUnits {
				break
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if !qualifies {
		return img.FunctionNames(ctx)
	}
	var mu sync.Mutex
	all := make(map[string]struct{})
	type key struct {
		u    *unit
		root int32
	}
	seen := make(map[key]struct{})
	err = img.by.eachSite(ctx, nil, func(_ int, s *Site) error {
		if root := s.u.Recs[s.spot.Rec].Root; root >= 0 {
			mu.Lock()
			_, known := seen[key{s.u, root}]
			seen[key{s.u, root}] = struct{}{}
			mu.Unlock()
			if known {
				return nil
			}
		}
		name, err := s.QualifiedName()
		if err == nil && name != "" {
			mu.Lock()
			all[name] = struct{}{}
			mu.Unlock()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	out := make([]string, 0, len(all))
	for n := range all {
		out = append(out, n)
	}
	slices.Sort(out)
	return out, nil
}

// fewUnits is how many units are asked for their language, before an image counts as one without C++ and
// Rust: a kernel has thousands.
const fewUnits = 64
