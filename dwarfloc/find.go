package dwarfloc

import (
	"cmp"
	"context"
	"maps"
	"runtime"
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/index"
	"github.com/bpfprologue/bpfprologue/internal/runs"
)

// Matcher selects functions by name. A nil Matcher selects all. Literal returns the name
// if only one can match, which makes the search much faster.
type Matcher interface {
	Match(name string) bool
	Literal() (name string, ok bool)
}

// Name returns a Matcher that selects the functions with one name.
func Name(name string) Matcher { return literal(name) }

type literal string

func (l literal) Match(name string) bool  { return name == string(l) }
func (l literal) Literal() (string, bool) { return string(l), true }

// worker is what one goroutine of EachSite keeps from site to site.
type worker struct {
	sel       index.Selector // caches results, so goroutines cannot share one
	site      Site
	resolvers resolvers
	ways      runs.Ways  // of SiteList.Each and EachWays
	code      *runs.Code // of EachWays
	_         [128]byte  // so that no cache line is written by two processors
}

// Sites returns all sites of the functions that m selects, in a stable order: by
// function, then address, view and place in the debug information. Functions without
// a site are left out.
func (img *Image) Sites(ctx context.Context, m Matcher) ([]*Site, error) {
	l, err := img.siteList(ctx, m, nil)
	if err != nil {
		return nil, err
	}
	return l.Sites(ctx)
}

// EachSite calls f for all sites of the functions that m selects, from several goroutines
// at once and in no particular order. worker is less than GOMAXPROCS, and no two calls
// with the same worker overlap. Code that a linker merged has a site for each of its
// descriptions. EachSite walks a whole image without keeping it in memory: see SiteRef.
func (img *Image) EachSite(ctx context.Context, m Matcher, f func(worker int, r SiteRef) error) error {
	return img.by.eachSite(ctx, m, func(worker int, s *Site) error {
		return f(worker, SiteRef{Kind: s.Kind, Addr: s.Addr, View: s.View, DIE: s.DIE, s: s})
	})
}

// SiteRef refers to a site until the function that EachSite calls with it returns.
type SiteRef struct {
	Kind SiteKind // SiteEntry or SiteInline
	Addr uint64   // link-time address
	View uint64   // location view number at the address; 0 at an entry
	DIE  uint64   // offset in .debug_info of the function's or the inlined instance's entry

	s *Site // reused
}

// Params is Site.Params. The variables are valid until the function returns; those of Site are valid longer, and take more memory.
func (r SiteRef) Params() ([]*Variable, error) { return r.s.Params() }

// Site returns the site, which may be kept.
func (r SiteRef) Site() (*Site, error) { return r.s.keptCopy() }

func (img dwarfImage) eachSite(ctx context.Context, m Matcher, f func(worker int, s *Site) error) error {
	// A caller that wants all sites seldom needs their symbols.
	if err := img.prepare(m != nil); err != nil {
		return err
	}
	sel, units, err := img.r.Index.Candidates(ctx, m)
	if err != nil {
		return err
	}
	if m == nil {
		img.r.AskAll()
	}
	one := false // few units, whose sites are probably asked for more
	if m != nil {
		_, one = m.Literal()
	}
	return img.eachSiteIn(ctx, units, sel, one, func(own *worker, n int, s *Site) error { return f(n, s) })
}

// eachSiteNear calls f for the sites in the units that may have code at some addresses.
func (img dwarfImage) eachSiteNear(ctx context.Context, at map[uint64]bool, f func(worker int, s *Site) error) error {
	if err := img.prepare(true); err != nil {
		return err
	}
	var units []int
	err := img.guard(func() error {
		units = img.r.UnitsAt(slices.Sorted(maps.Keys(at)))
		return nil
	})
	if err != nil {
		return err
	}
	return img.eachSiteIn(ctx, units, img.r.Index.SelectorFor(nil), false, func(own *worker, n int, s *Site) error { return f(n, s) })
}

// eachSiteIn calls f for the sites in some units of the functions that are selected. one says that more will be asked of them.
func (img dwarfImage) eachSiteIn(ctx context.Context, units []int, sel index.Selector, one bool, f func(own *worker, n int, s *Site) error) error {
	workers := make([]worker, runtime.GOMAXPROCS(0))
	for i := range workers {
		workers[i].sel = sel
	}
	err := img.r.Index.EachUnit(ctx, units, func(w *index.Scanner, x *index.Unit) error {
		u := img.of(x.Unit)
		own := &workers[w.Worker]
		s := &own.site
		loaded := false
		for j := range u.Recs {
			r := &u.Recs[j]
			if r.Flags&index.HasPC == 0 || !own.sel.Match(u.NameRefOf(r)) {
				continue
			}
			if err := u.Load(); err != nil {
				return err
			}
			loaded = true
			ok, err := u.site(int32(j), s)
			if err != nil {
				return err
			}
			if !ok {
				continue
			}
			own.resolvers.next()
			s.resolvers = &own.resolvers
			if err := f(own, w.Worker, s); err != nil {
				return err
			}
		}
		if loaded && !one {
			u.forget()
		}
		return nil
	})
	if err != nil {
		return err
	}
	return img.Changed()
}

// compareSites is the order of Sites.
func compareSites(a, b *Site) int {
	return cmp.Or(
		cmp.Compare(a.Function, b.Function), cmp.Compare(a.Addr, b.Addr), cmp.Compare(a.View, b.View),
		cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.DIE, b.DIE),
	)
}

// FunctionNames returns the names of all functions with at least one site, sorted,
// without duplicates.
func (img *Image) FunctionNames(ctx context.Context) ([]string, error) {
	return img.by.functionNames(ctx)
}

func (img dwarfImage) functionNames(ctx context.Context) ([]string, error) {
	return img.r.Index.FunctionNames(ctx)
}
