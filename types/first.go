package types

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/index"
)

// To look for the definition of one name takes a search through all of .debug_info, of which few units are read. Whoever needs many, as a pack of a kernel
// does, is faster with a list of them all: reading all units takes as long as some ten searches for what no unit defines.

// fewSearches is how many names are looked for one by one.
const fewSearches = 4

// firstDefinitions lists where units define names outside of functions, each name's first place only.
type firstDefinitions struct {
	searches atomic.Int32
	once     sync.Once
	all      []firstDefinition
	whole    bool // all units could be read
}

type firstDefinition struct {
	definedName
	place
}

type definedName struct {
	name index.NameRef
	tag  dw.Tag
}

// place is that of an entry.
type place struct {
	unit int32
	off  uint64
}

func (p place) before(q place) bool { return p.unit < q.unit || p.unit == q.unit && p.off < q.off }

// listed is definition once many names have been looked for. ok is false before, and if a unit cannot be read: then it matters which units a search reads.
func (d *dwarfTypes) listed(sel *index.Selector, tags []dw.Tag) (t *Type, ok bool, err error) {
	l := &d.first
	if l.searches.Add(1) <= fewSearches {
		return nil, false, nil
	}
	l.once.Do(d.listDefinitions)
	if !l.whole {
		return nil, false, nil
	}
	var first *firstDefinition
	for i := range l.all {
		if x := &l.all[i]; slices.Contains(tags, x.tag) && (first == nil || x.before(first.place)) && sel.Match(x.name) {
			first = x
		}
	}
	if first == nil {
		return nil, true, nil
	}
	u := &d.units[first.unit]
	if !u.Loaded() {
		defer u.Forget()
	}
	if err := u.Load(); err != nil {
		return nil, true, err
	}
	t, err = u.typeAt(first.off, 0)
	return t, true, err
}

// listDefinitions sets what listed reads.
func (d *dwarfTypes) listDefinitions() {
	var mu sync.Mutex
	all := make(map[definedName]place)
	add := func(n definedName, p place) {
		if q, known := all[n]; !known || p.before(q) {
			all[n] = p
		}
	}
	err := d.index.Parallel(len(d.units), func(_ *index.Scanner, i int) error {
		u := &d.units[i]
		if !u.Loaded() {
			defer u.Forget()
		}
		var own []firstDefinition
		err := u.eachDefinition(typeTags[""], func(c dw.Entry, name dw.Value) (bool, error) {
			own = append(own, firstDefinition{definedName{index.RefOf(u.Unit, name), c.Tag()}, place{int32(i), c.Off}})
			return true, nil
		})
		mu.Lock()
		defer mu.Unlock()
		for _, x := range own {
			add(x.definedName, x.place)
		}
		return err
	})
	l := &d.first
	if l.whole = err == nil; !l.whole {
		return
	}
	l.all = make([]firstDefinition, 0, len(all))
	for n, p := range all {
		l.all = append(l.all, firstDefinition{n, p})
	}
}
