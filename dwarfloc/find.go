package dwarfloc

import (
	"cmp"
	"context"
	"runtime"
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/index"
)

// Matcher chooses functions by name. A nil Matcher chooses all. Literal returns the only
// name that matches, if there is only one: the search is then much faster.
type Matcher interface {
	Match(name string) bool
	Literal() (name string, ok bool)
}

// Name returns a Matcher that chooses the functions of one name.
func Name(name string) Matcher { return literal(name) }

type literal string

func (l literal) Match(name string) bool  { return name == string(l) }
func (l literal) Literal() (string, bool) { return string(l), true }

// Sites returns all sites of the functions that a matcher chooses, in a stable
// order: by function, then address, view and place in the debug information. A
// function without a site is not in the answer.
func (img *Image) Sites(ctx context.Context, m Matcher) ([]*Site, error) {
	found := make([][]*Site, runtime.GOMAXPROCS(0))
	err := img.EachSite(ctx, m, func(worker int, s *Site) error {
		c, err := s.Clone()
		found[worker] = append(found[worker], c)
		return err
	})
	if err != nil {
		return nil, err
	}
	out := slices.Concat(found...)
	slices.SortFunc(out, compareSites)
	return dropCopies(out), nil
}

// EachSite calls f for all sites of the functions that a matcher chooses, from several
// goroutines at once and in no order. worker is less than GOMAXPROCS, and no two calls with
// the same worker overlap. Code that a linker merged has a site for each of its
// descriptions. EachSite is for going through a whole image without keeping it in memory: s
// is reused after f returns: Clone it to keep it, or to get its names.
func (img *Image) EachSite(ctx context.Context, m Matcher, f func(worker int, s *Site) error) error {
	// Who wants all sites counts them, and seldom asks for their symbols.
	if err := img.prepare(m != nil); err != nil {
		return err
	}
	sel, units, err := img.index.Candidates(ctx, m)
	if err != nil {
		return err
	}
	// What a selector remembers is its own.
	selectors := slices.Repeat([]index.Selector{sel}, runtime.GOMAXPROCS(0))
	sites := make([]Site, runtime.GOMAXPROCS(0))
	resolvers := make([]resolver, runtime.GOMAXPROCS(0))
	err = img.index.EachUnit(ctx, units, true, func(w *index.Scanner, x *index.Unit) error {
		u := img.of(x.Unit)
		sel, s := &selectors[w.Worker], &sites[w.Worker]
		s.funOf = -1
		for j := range u.Recs {
			r := &u.Recs[j]
			if r.Flags&index.HasPC == 0 || !sel.Match(u.NameRefOf(r)) {
				continue
			}
			if err := w.Load(u.Unit); err != nil {
				return err
			}
			ok, err := u.site(int32(j), s)
			if err != nil {
				return err
			}
			if !ok {
				continue
			}
			s.resolver = &resolvers[w.Worker]
			if err := f(w.Worker, s); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return img.Changed()
}

func compareSites(a, b *Site) int {
	return cmp.Or(
		cmp.Compare(a.Function, b.Function), cmp.Compare(a.Addr, b.Addr), cmp.Compare(a.View, b.View),
		cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.DIE, b.DIE),
	)
}

// dropCopies keeps one of several descriptions of the same out-of-line code: a
// linker that merges functions of several units leaves the debug information of
// each.
func dropCopies(sites []*Site) []*Site {
	return slices.CompactFunc(sites, func(a, b *Site) bool {
		return a.Kind == SiteEntry && b.Kind == SiteEntry && a.Addr == b.Addr && a.Function == b.Function
	})
}

// FunctionNames returns the names of all functions with at least one site, sorted,
// without repetition.
func (img *Image) FunctionNames(ctx context.Context) ([]string, error) {
	return img.index.FunctionNames(ctx)
}
