package dwarfloc

import (
	"bytes"
	"cmp"
	"context"
	"runtime"
	"slices"
)

// Matcher chooses functions by name. Literal returns the only name that matches,
// where there is only one; the search is then much faster.
type Matcher interface {
	Match(name string) bool
	Literal() (name string, ok bool)
}

// Name is a Matcher for one name.
type Name string

// Match reports whether name is the name.
func (n Name) Match(name string) bool { return name == string(n) }

// Literal returns the name.
func (n Name) Literal() (string, bool) { return string(n), true }

// Every is a Matcher for all functions.
type Every struct{}

// Match reports true.
func (Every) Match(string) bool { return true }

// Literal reports false.
func (Every) Literal() (string, bool) { return "", false }

// selector decides on names by reference. One is used by one goroutine.
type selector struct {
	img     *Image
	m       Matcher
	literal string
	isLit   bool
	offsets []nameRef // of the literal in string sections
	memo    map[nameRef]bool
	every   bool // all match
	known   bool // memo holds all that match, and no other matches
}

func (img *Image) selectorFor(m Matcher) selector {
	s := selector{img: img, m: m}
	_, s.every = m.(Every)
	if s.literal, s.isLit = m.Literal(); s.isLit {
		s.offsets = append(findStrings(img.str, s.literal, nameStr), findStrings(img.lineStr, s.literal, nameLineStr)...)
	}
	return s
}

// findStrings returns where a string stands in a string section. Linkers share
// ends of strings, so it may be the end of a longer one.
func findStrings(d []byte, s string, section nameRef) []nameRef {
	var out []nameRef
	want := append([]byte(s), 0)
	for p := 0; p < len(d); {
		i := bytes.Index(d[p:], want)
		if i < 0 {
			break
		}
		out = append(out, section|nameRef(p+i))
		p += i + 1
	}
	return out
}

func (s *selector) match(n nameRef) bool {
	if n == nameNone {
		return false
	}
	if s.every {
		return true
	}
	if s.known {
		return s.memo[n]
	}
	if s.isLit && n&nameSection != nameInfo {
		for _, o := range s.offsets {
			if o == n {
				return true
			}
		}
		return false
	}
	if s.isLit {
		return s.img.nameOf(n) == s.literal
	}
	if v, ok := s.memo[n]; ok {
		return v
	}
	if s.memo == nil {
		s.memo = make(map[nameRef]bool)
	}
	v := s.m.Match(s.img.nameOf(n))
	s.memo[n] = v
	return v
}

// nameRefOf is the name of a record, its own or its root's.
func (u *unit) nameRefOf(r *rec) nameRef {
	if r.root >= 0 {
		return u.recs[r.root].name
	}
	return r.name
}

// Sites returns all sites of the functions that a matcher chooses, in a stable
// order: by function, then address, view and place in the debug information. A
// function without a site is not in the answer.
func (img *Image) Sites(ctx context.Context, m Matcher) ([]*Site, error) {
	found := make([][]*Site, runtime.GOMAXPROCS(0))
	err := img.EachSite(ctx, m, func(worker int, s *Site) error {
		c := s.Clone()
		found[worker] = append(found[worker], c)
		return c.Describe()
	})
	if err != nil {
		return nil, err
	}
	out := slices.Concat(found...)
	slices.SortFunc(out, compareSites)
	return dropCopies(out), nil
}

// EachSite calls f for all sites of the functions that a matcher chooses, from
// several goroutines at once and in no order. worker is less than GOMAXPROCS, and
// no two calls with the same worker overlap. Code that a linker merged has a site
// for each of its descriptions. It is for going through a whole image without
// keeping it in memory: the site is lent until f returns, Clone makes a copy to keep,
// and Describe tells what the site is called.
func (img *Image) EachSite(ctx context.Context, m Matcher, f func(worker int, s *Site) error) error {
	sel, units, err := img.candidates(ctx, m)
	if err != nil {
		return err
	}
	// What a selector remembers is its own.
	selectors := slices.Repeat([]selector{sel}, runtime.GOMAXPROCS(0))
	lent := make([]Site, runtime.GOMAXPROCS(0))
	err = img.eachUnit(ctx, units, true, func(w *scanner, u *unit) error {
		sel, s := &selectors[w.worker], &lent[w.worker]
		s.funOf = -1
		for j := range u.recs {
			r := &u.recs[j]
			if r.flags&recPC == 0 || !sel.match(u.nameRefOf(r)) {
				continue
			}
			if err := w.load(u); err != nil {
				return err
			}
			ok, err := u.site(int32(j), s)
			if err != nil {
				return err
			}
			if !ok {
				continue
			}
			if err := f(w.worker, s); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return img.changed()
}

// candidates returns the units that can have sites of the functions that a matcher
// chooses, with a selector that finds them there.
func (img *Image) candidates(ctx context.Context, m Matcher) (sel selector, units []int, err error) {
	_, every := m.(Every) // counts, and seldom asks what sites are called
	if err := img.prepare(!every); err != nil {
		return sel, nil, err
	}
	if img.keptPath() != "" && img.kept == nil {
		// All is scanned even for one name, so that it is kept for the next question.
		if err := img.Scan(ctx); err != nil {
			return sel, nil, err
		}
	}
	err = img.guard(func() error {
		if img.kept != nil {
			sel, units = img.kept.choose(img, m)
			return nil
		}
		sel = img.selectorFor(m)
		return nil
	})
	if err != nil || img.kept != nil {
		return sel, units, err
	}
	if sel.isLit {
		ok := false
		if units, ok, err = img.mentions(ctx, &sel); ok || err != nil {
			return sel, units, err
		}
	}
	return sel, img.allUnits(), nil
}

func compareSites(a, b *Site) int {
	return cmp.Or(
		cmp.Compare(a.Function, b.Function), cmp.Compare(a.Addr, b.Addr), cmp.Compare(a.View, b.View),
		cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.die, b.die),
	)
}

// dropCopies keeps one of several descriptions of the same out-of-line code: a
// linker that merges functions of several units leaves the debug information of
// each.
func dropCopies(sites []*Site) []*Site {
	return slices.CompactFunc(sites, func(a, b *Site) bool {
		return a.Kind == Entry && b.Kind == Entry && a.Addr == b.Addr && a.Function == b.Function
	})
}

// FunctionNames returns the names of all functions with at least one site,
// sorted, without repetition.
func (img *Image) FunctionNames(ctx context.Context) ([]string, error) {
	if err := img.Scan(ctx); err != nil {
		return nil, err
	}
	var names []string
	err := img.guard(func() error {
		if img.kept != nil {
			names = img.kept.functions(img)
			return nil
		}
		seen := make(map[nameRef]struct{})
		for i := range img.units {
			u := &img.units[i]
			for j := range u.recs {
				r := &u.recs[j]
				if r.flags&recPC == 0 {
					continue
				}
				n := u.nameRefOf(r)
				if _, ok := seen[n]; ok || n == nameNone {
					continue
				}
				seen[n] = struct{}{}
				names = append(names, img.nameOf(n))
			}
		}
		slices.Sort(names)
		return nil
	})
	return slices.Compact(names), err
}
