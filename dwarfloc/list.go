package dwarfloc

import (
	"context"
	"runtime"
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/index"
	"github.com/bpfprologue/bpfprologue/internal/radix"
	"github.com/bpfprologue/bpfprologue/internal/runs"
)

// SiteList is the sites of functions in the order of Sites, without what they are made of: a
// kernel's 356,729 sites take 5 MB, and 12 MB more with the ways into their bodies.
type SiteList struct{ by siteLister }

// siteLister has the sites of a list: dwarfList, or answeredList.
type siteLister interface {
	len() int
	sites(ctx context.Context) ([]*Site, error)
	each(ctx context.Context, from, to int, ways bool, f func(worker, i int, s *Site, w *runs.Ways) error) error
}

// dwarfList is a list of sites that the debug information describes.
type dwarfList struct {
	img *Image
	at  []listed
	// byUnit has the same sites by unit and record, and the ways of those units whose sites
	// have been asked for.
	byUnit []listed
	from   []int32  // for each unit, where in byUnit its sites begin; and the end
	ways   [][]byte // for each unit, those of its sites in byUnit; nil if not known yet
}

// listed is a site in a list.
type listed struct{ unit, rec int32 }

func (l listed) key() uint64 { return uint64(l.unit)<<32 | uint64(l.rec) }

// found is a site that is sorted into a list.
type found struct {
	listed
	kind       SiteKind
	name       int32 // rank of the function's name
	ref        index.NameRef
	addr, view uint64
}

// List returns the sites of the functions that m selects and that keep, if it is not nil,
// accepts. Several goroutines call keep at once, with sites as EachSite passes them.
func (img *Image) siteList(ctx context.Context, m Matcher, keep func(s *Site) (bool, error)) (*SiteList, error) {
	return img.by.list(ctx, m, keep)
}

func (img dwarfImage) list(ctx context.Context, m Matcher, keep func(s *Site) (bool, error)) (*SiteList, error) {
	return img.listOf(keep, func(f func(worker int, s *Site) error) error { return img.eachSite(ctx, m, f) })
}

// listAt is inside.ListAt.
func (img *Image) listAt(ctx context.Context, at map[uint64]bool, keep func(s *Site) (bool, error)) (*SiteList, error) {
	begins := func(s *Site) (bool, error) {
		if is, err := s.beginsAt(at); err != nil || !is {
			return false, err
		}
		return keep(s)
	}
	if d, ok := img.by.(dwarfImage); ok {
		return d.listOf(begins, func(f func(worker int, s *Site) error) error { return d.eachSiteNear(ctx, at, f) })
	}
	return img.by.list(ctx, nil, begins)
}

// beginsAt reports whether a site is the entry of a function that begins at one of some
// addresses. In code built without optimization, and at a local entry, the site itself is after that.
func (s *Site) beginsAt(addrs map[uint64]bool) (bool, error) {
	if s.Kind != SiteEntry || !s.AfterPrologue && !s.LocalEntry {
		return s.Kind == SiteEntry && addrs[s.Addr], nil
	}
	ranges, err := s.Ranges()
	return slices.ContainsFunc(ranges, func(r [2]uint64) bool { return addrs[r[0]] && s.Addr >= r[0] && s.Addr < r[1] }), err
}

// listOf returns the list of the sites that keep, if it is not nil, accepts among those that each calls a function with.
func (img dwarfImage) listOf(keep func(s *Site) (bool, error), each func(f func(worker int, s *Site) error) error) (*SiteList, error) {
	all := make([][]found, runtime.GOMAXPROCS(0))
	err := each(func(worker int, s *Site) error {
		if keep != nil {
			if ok, err := keep(s); err != nil || !ok {
				return err
			}
		}
		u := s.u
		all[worker] = append(all[worker], found{
			listed: listed{int32(u.Number), s.spot.Rec}, kind: s.Kind, ref: u.NameRefOf(&u.Recs[s.spot.Rec]), addr: s.Addr, view: s.View,
		})
		return nil
	})
	if err != nil {
		return nil, err
	}
	sorted := slices.Concat(all...)
	if err := img.guard(func() error { img.rank(sorted); return nil }); err != nil {
		return nil, err
	}
	sorted = slices.CompactFunc(sortFound(sorted), sameCode)
	l := &dwarfList{img: img.Image, at: make([]listed, len(sorted)), from: make([]int32, len(img.units)+1), ways: make([][]byte, len(img.units))}
	for i := range sorted {
		l.at[i] = sorted[i].listed
	}
	l.byUnit = radix.Sort(slices.Clone(l.at), func(x *listed) uint64 { return x.key() })
	for i := range l.byUnit {
		l.from[l.byUnit[i].unit+1] = int32(i + 1)
	}
	for i := range img.units {
		l.from[i+1] = max(l.from[i+1], l.from[i])
	}
	return &SiteList{l}, nil
}

// rank numbers the names of functions in their order.
func (img *Image) rank(sites []found) {
	names := make(map[index.NameRef]string)
	for i := range sites {
		if _, known := names[sites[i].ref]; !known {
			names[sites[i].ref] = img.r.Index.NameOf(sites[i].ref)
		}
	}
	sorted := make([]string, 0, len(names))
	for _, n := range names {
		sorted = append(sorted, n)
	}
	slices.Sort(sorted)
	ranks := make(map[index.NameRef]int32, len(names))
	for ref, n := range names {
		at, _ := slices.BinarySearch(sorted, n) // the first of equal ones
		ranks[ref] = int32(at)
	}
	for i := range sites {
		sites[i].name = ranks[sites[i].ref]
	}
}

// sortFound sorts as compareSites does, by what it compares last first: units and records are in the order of their entries.
func sortFound(all []found) []found {
	all = radix.Sort(all, func(x *found) uint64 { return x.key() })
	all = radix.Sort(all, func(x *found) uint64 { return x.view<<8 | uint64(x.kind) })
	all = radix.Sort(all, func(x *found) uint64 { return x.addr })
	return radix.Sort(all, func(x *found) uint64 { return uint64(x.name) })
}

// sameCode reports whether two sites are descriptions of the same code: a linker that merges functions from several units, as C++ has them in headers, leaves
// the debug information of each, and of what is inlined into it.
func sameCode(a, b found) bool {
	return a.kind == b.kind && a.addr == b.addr && a.name == b.name && (a.kind == SiteEntry || a.unit != b.unit && a.view == b.view)
}

// Len returns the number of sites.
func (l *SiteList) Len() int { return l.by.len() }

func (l *dwarfList) len() int { return len(l.at) }

// Sites returns all sites.
func (l *SiteList) Sites(ctx context.Context) ([]*Site, error) { return l.by.sites(ctx) }

func (l *dwarfList) sites(ctx context.Context) ([]*Site, error) {
	out := make([]*Site, l.len())
	err := l.eachUnit(ctx, 0, l.len(), func(w *index.Scanner, own *worker, sites []int32) error {
		return l.eachOf(w, own, &l.img.units[l.at[sites[0]].unit], sites, false, func(_, i int, s *Site, _ *runs.Ways) (err error) {
			out[i], err = s.keptCopy()
			return err
		})
	})
	return out, err
}

// each is inside.EachOf.
func (l *SiteList) each(ctx context.Context, from, to int, ways bool, f func(worker, i int, s *Site, w *runs.Ways) error) error {
	return l.by.each(ctx, from, to, ways, f)
}

func (l *dwarfList) each(ctx context.Context, from, to int, ways bool, f func(worker, i int, s *Site, w *runs.Ways) error) error {
	err := l.eachUnit(ctx, from, to, func(w *index.Scanner, own *worker, sites []int32) error {
		u := &l.img.units[l.at[sites[0]].unit]
		defer u.forget()
		return l.eachOf(w, own, u, sites, ways, f)
	})
	if to-from == l.len() {
		for i := range l.img.units {
			l.img.units[i].Forget() // types of one unit were looked for in others
		}
	}
	return err
}

// eachUnit calls f for each unit with the numbers of its sites among those from from to to-1.
func (l *dwarfList) eachUnit(ctx context.Context, from, to int, f func(w *index.Scanner, own *worker, sites []int32) error) error {
	img := l.img
	order := make([]int32, to-from)
	for i := range order {
		order[i] = int32(from + i)
	}
	order = radix.Sort(order, func(i *int32) uint64 { return l.at[*i].key() })
	var units [][]int32
	for i := 0; i < len(order); {
		first, unit := i, l.at[order[i]].unit
		for i < len(order) && l.at[order[i]].unit == unit {
			i++
		}
		units = append(units, order[first:i])
	}
	workers := make([]worker, runtime.GOMAXPROCS(0))
	err := img.r.Index.Parallel(len(units), func(w *index.Scanner, i int) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return f(w, &workers[w.Worker], units[i])
	})
	if err != nil {
		return err
	}
	return img.Changed()
}

// eachOf is Each for sites of one unit.
func (l *dwarfList) eachOf(w *index.Scanner, own *worker, u *unit, sites []int32, ways bool, f func(worker, i int, s *Site, w *runs.Ways) error) error {
	if err := w.Open(u.Unit.Unit); err != nil {
		return err
	}
	if ways && l.ways[u.Number] == nil {
		if err := l.findWays(u); err != nil {
			return err
		}
	}
	known := runs.Unpack(l.ways[u.Number])
	next := l.from[u.Number] // whose ways are next
	s := &own.site
	for _, i := range sites {
		ok, err := u.site(l.at[i].rec, s)
		if err != nil {
			return err
		}
		if !ok {
			continue // List has found it, so it is there
		}
		own.resolvers.next()
		s.resolvers = &own.resolvers
		if err := s.by.describe(s); err != nil {
			return err
		}
		var at *runs.Ways
		for ways && at == nil {
			known.Next(&own.ways)
			if l.byUnit[next] == l.at[i] {
				at = &own.ways
			}
			next++
		}
		if err := f(w.Worker, int(i), s, at); err != nil {
			return err
		}
	}
	return nil
}

// findWays finds the ways of all sites of a unit.
func (l *dwarfList) findWays(u *unit) error {
	defer u.ForgetRows()
	var c *runs.Code
	packed := []byte{}
	var none, ways runs.Ways
	for _, at := range l.byUnit[l.from[u.Number]:l.from[u.Number+1]] {
		if u.Recs[at.rec].Flags&index.Inlined == 0 {
			packed = none.Append(packed)
			continue
		}
		if err := u.waysOf(at.rec, &c, &ways); err != nil {
			return err
		}
		packed = ways.Append(packed)
	}
	l.ways[u.Number] = slices.Clone(packed)
	return nil
}
