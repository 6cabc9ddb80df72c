package types

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/index"
	"github.com/bpfprologue/bpfprologue/internal/typesource"
)

// A unit that only passes pointers around describes a structure by its name alone.
// Another unit has the members, and is found by that name: if C units exchange pointers
// to a structure, the name means the same type in all of them.

// dwarfTypes is a typesource.DWARF.
type dwarfTypes struct {
	index   *index.Index
	o       typesource.DWARFOptions[Type]
	once    sync.Once
	units   []unitTypes // by number; see begin
	langs   partialLangs
	records definitions
	first   firstDefinitions

	mu          sync.Mutex
	completed   map[typeName]*Type // nil where no unit defines it
	named       map[namedType]*Type
	enumerators map[enumeratorName]enumeratorValue
}

// begin makes room for the units of the index.
func (d *dwarfTypes) begin() {
	d.once.Do(func() {
		d.units = make([]unitTypes, len(d.index.Units))
		for i := range d.units {
			d.units[i].Unit, d.units[i].all = d.index.Units[i].Unit, d
		}
	})
}

func (d *dwarfTypes) of(u *dw.Unit) *unitTypes {
	d.begin()
	return &d.units[u.Number]
}

// Of returns the type that an attribute of a unit refers to; that of an attribute that is not there is void.
func (d *dwarfTypes) Of(u *dw.Unit, v dw.Value) (*Type, error) { return d.of(u).typeIn(v, 0) }

// Forget frees what was read of a unit, unless given is set. Types that are in use stay valid. Who sets it before
// asking for types has them for good: it is read where none is looked up.
func (d *dwarfTypes) Forget(u *dw.Unit, given *atomic.Bool) {
	x := d.of(u)
	x.mu.Lock()
	defer x.mu.Unlock()
	if given == nil || !given.Load() {
		x.known, x.whole, x.names = nil, nil, nil
	}
}

// typeName names a type that units only declare.
type typeName struct {
	tag  dw.Tag
	name string
}

// complete returns the definition of a type that its unit only declares, or t itself
// if no unit defines it.
func (u *unitTypes) complete(t *Type) (*Type, error) {
	if dw.IsCPlusPlus(u.language()) {
		return u.completeByScope(t)
	}
	d := u.all
	key := typeName{t.tag, t.Name}
	d.mu.Lock()
	full, known := d.completed[key]
	d.mu.Unlock()
	if !known {
		var err error
		if full, err = d.define(key); err != nil {
			return nil, err
		}
		if other, has := d.o.Other.(*dwarfTypes); full == nil && has {
			err := other.o.Prepare()
			if err == nil {
				full, err = other.define(key)
			}
			if err != nil {
				return nil, err
			}
		}
		d.mu.Lock()
		if d.completed == nil {
			d.completed = make(map[typeName]*Type)
		}
		d.completed[key] = full
		d.mu.Unlock()
	}
	if full == nil {
		return t, nil
	}
	return full, nil
}

// define finds the definition of a type in the first unit that has one.
func (d *dwarfTypes) define(key typeName) (*Type, error) {
	return d.definition(key.name, []dw.Tag{key.tag})
}

// definition finds the definition of a type with a name, by an entry of one of the tags, in the first
// unit that has one. It returns nil if there is none.
func (d *dwarfTypes) definition(name string, tags []dw.Tag) (*Type, error) {
	d.begin()
	sel := d.index.SelectorFor(one(name))
	if t, ok, err := d.listed(&sel, tags); ok || err != nil {
		return t, err
	}
	mentions, ok, err := d.index.Mentioned(&sel)
	if err != nil {
		return nil, err
	}
	// Units are read in their order, and no further once one has it: most types are defined again and again.
	type found struct {
		t   *Type
		err error
	}
	all := make([]found, len(d.units))
	var first atomic.Int64 // unit that has it, or that is damaged
	first.Store(int64(len(all)))
	err = d.index.Parallel(len(all), func(_ *index.Scanner, i int) error {
		u, x := &d.units[i], &all[i]
		if int64(i) > first.Load() || ok && !mentions(i, func(at uint64) bool { return u.MayName(at, tags) }) {
			return nil
		}
		if !u.Loaded() {
			defer u.Forget() // a search goes through many units
		}
		x.t, x.err = u.definition(tags, func(name dw.Value) bool { return sel.Match(index.RefOf(u.Unit, name)) })
		if x.t != nil || x.err != nil {
			lower(&first, int64(i))
		}
		return nil
	})
	if n := first.Load(); err == nil && n < int64(len(all)) {
		return all[n].t, all[n].err
	}
	return nil, err
}

// lower makes a number n if it is greater.
func lower(x *atomic.Int64, n int64) {
	for at := x.Load(); n < at && !x.CompareAndSwap(at, n); {
		at = x.Load()
	}
}

// definition finds a type that a unit defines, or returns nil. match compares its name.
func (u *unitTypes) definition(tags []dw.Tag, match func(name dw.Value) bool) (t *Type, err error) {
	err = u.eachDefinition(tags, func(c dw.Entry, name dw.Value) (more bool, err error) {
		if !match(name) {
			return true, nil
		}
		t, err = u.typeAt(c.Off, 0)
		return false, err
	})
	return t, err
}

// eachDefinition calls f with the types that a unit defines outside of functions, by entries of some tags, and their names, until f returns false.
func (u *unitTypes) eachDefinition(tags []dw.Tag, f func(c dw.Entry, name dw.Value) (more bool, err error)) error {
	if err := u.Load(); err != nil {
		return err
	}
	root, err := u.Entry(u.First)
	if err != nil {
		return err
	}
	return root.Children(func(c dw.Entry) (bool, error) {
		if !slices.Contains(tags, c.Tag()) {
			return true, nil
		}
		var name, size dw.Value
		declared := false
		if err := c.Attrs(func(a dw.Attr, v dw.Value) {
			switch a {
			case dw.AttrName:
				name = v
			case dw.AttrByteSize:
				size = v
			case dw.AttrDeclaration:
				declared = v.U != 0
			}
		}); err != nil {
			return false, err
		}
		// A structure that is defined has a size. Typedefs have none, and enumerations need not.
		sized := size.IsConstant() || c.Tag() == dw.TagTypedef || c.Tag() == dw.TagEnumerationType
		if declared || name.Form == 0 || !sized {
			return true, nil
		}
		return f(c, name)
	})
}

// one selects a name for an index.
type one string

func (l one) Match(name string) bool  { return name == string(l) }
func (l one) Literal() (string, bool) { return string(l), true }

// typeTags are the entries that define a type of a kind.
var typeTags = map[string][]dw.Tag{
	"struct": {dw.TagStructType, dw.TagClassType}, "class": {dw.TagClassType, dw.TagStructType}, "union": {dw.TagUnionType},
	"enum": {dw.TagEnumerationType},
	"":     {dw.TagTypedef, dw.TagBaseType, dw.TagStructType, dw.TagClassType, dw.TagUnionType, dw.TagEnumerationType},
}

// namedType is a type that a definition names.
type namedType struct {
	u    *unitTypes // nil for all of the image
	kind string
	name string
}

// cutKind cuts "struct page" into its two words. kind is "" for the name of a typedef or a base type.
func cutKind(name string) (kind, rest string) {
	kind, rest, ok := strings.Cut(name, " ")
	if !ok || typeTags[kind] == nil {
		return "", name
	}
	return kind, rest
}

// Named returns the type that a name, "struct page" or "loff_t", means in a unit: the unit's own, or that of the
// first unit of the image that has one, or of the image that completes its types. It is nil if there is none. If u
// is nil, only the image counts.
func (d *dwarfTypes) Named(u *dw.Unit, name string) (t *Type, err error) {
	kind, rest := cutKind(name)
	if u == nil {
		return d.namedIn(namedType{nil, kind, rest})
	}
	for _, x := range []*unitTypes{d.of(u), nil} {
		if t, err = d.namedIn(namedType{x, kind, rest}); t != nil || err != nil {
			return t, err
		}
	}
	other, has := d.o.Other.(*dwarfTypes)
	if !has {
		return nil, nil
	}
	if err := other.o.Prepare(); err != nil {
		return nil, err
	}
	return other.namedIn(namedType{nil, kind, rest})
}

// namedIn returns a type of a unit, or of all units, or nil.
func (d *dwarfTypes) namedIn(key namedType) (t *Type, err error) {
	d.mu.Lock()
	t, known := d.named[key]
	d.mu.Unlock()
	if known {
		return t, nil
	}
	tags := typeTags[key.kind]
	if key.u != nil {
		t, err = key.u.definition(tags, func(name dw.Value) bool { return key.u.Text(name) == key.name })
	} else {
		t, err = d.definition(key.name, tags)
	}
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.named == nil {
		d.named = make(map[namedType]*Type)
	}
	d.named[key] = t
	return t, nil
}

type enumeratorName struct {
	u    *dw.Unit
	name string
}

type enumeratorValue struct {
	value int64
	found bool
}

// Enumerator returns the value of an enumerator that a unit has outside functions.
func (d *dwarfTypes) Enumerator(u *dw.Unit, name string) (value int64, found bool, err error) {
	key := enumeratorName{u, name}
	d.mu.Lock()
	x, known := d.enumerators[key]
	d.mu.Unlock()
	if known {
		return x.value, x.found, nil
	}
	if x.value, x.found, err = d.of(u).enumerator(name); err != nil {
		return 0, false, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.enumerators == nil {
		d.enumerators = make(map[enumeratorName]enumeratorValue)
	}
	d.enumerators[key] = x
	return x.value, x.found, nil
}

func (u *unitTypes) enumerator(name string) (value int64, found bool, err error) {
	root, err := u.Entry(u.First)
	if err != nil {
		return 0, false, err
	}
	err = root.Children(func(c dw.Entry) (bool, error) {
		if c.Tag() != dw.TagEnumerationType {
			return true, nil
		}
		err := c.Children(func(c dw.Entry) (bool, error) {
			text, v, err := enumeratorOf(c)
			if err == nil && text.Form != 0 && u.Text(text) == name {
				value, found = v, true
			}
			return !found, err
		})
		return !found, err
	})
	return value, found, err
}
