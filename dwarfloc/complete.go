package dwarfloc

import (
	"context"
	"slices"
	"sync"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/index"
)

// A unit that only passes pointers around describes a structure by its name alone.
// Another unit has the members, and is found by that name: if C units exchange pointers
// to a structure, the name means the same type in all of them.

// fullTypes caches an image's completed types.
type fullTypes struct {
	mu    sync.Mutex
	found map[typeName]*Type

	named       namedTypes
	enumerators map[enumeratorName]enumeratorValue
}

type typeName struct {
	tag  dw.Tag
	name string
}

// Complete returns the definition of a structure, union or class that its unit only declares, from the first unit
// of the image, or else of Options.TypesOf, that has one. It returns other types, and those that no unit
// defines, as they are.
func (t *Type) Complete() (*Type, error) {
	out := t
	err := t.guard(func() (err error) {
		out, err = t.complete()
		return err
	})
	return out, err
}

// complete returns the definition of a type that its unit only declares, or t itself
// if no unit defines it.
func (t *Type) complete() (*Type, error) {
	switch {
	case t.Size >= 0 || t.Name == "" || !isRecord(t):
		return t, nil
	case t.b != nil:
		return t.b.complete(t)
	case t.u == nil:
		return t, nil
	}
	img := t.u.img
	key := typeName{t.tag, t.Name}
	f := &img.full
	f.mu.Lock()
	full, known := f.found[key]
	f.mu.Unlock()
	if !known {
		var err error
		if full, err = img.define(key); err != nil {
			return nil, err
		}
		if other := img.o.TypesOf; full == nil && other != nil {
			err := other.prepare(false)
			if err == nil {
				full, err = other.define(key)
			}
			if err != nil {
				return nil, err
			}
		}
		f.mu.Lock()
		if f.found == nil {
			f.found = make(map[typeName]*Type)
		}
		f.found[key] = full
		f.mu.Unlock()
	}
	if full == nil {
		return t, nil
	}
	return full, nil
}

// define finds the definition of a type in the first unit that has one.
func (img *Image) define(key typeName) (*Type, error) {
	return img.definition(key.name, []dw.Tag{key.tag})
}

// definition finds the definition of a type with a name, by an entry of one of the tags, in the first
// unit that has one. It returns nil if there is none.
func (img *Image) definition(name string, tags []dw.Tag) (*Type, error) {
	sel := img.index.SelectorFor(Name(name))
	units, ok, err := img.index.Mentions(context.Background(), &sel)
	if err != nil {
		return nil, err
	}
	if !ok {
		units = img.index.AllUnits()
	}
	found := make([]*Type, len(img.units))
	err = img.index.Parallel(len(units), func(_ *index.Scanner, i int) (err error) {
		u := &img.units[units[i]]
		found[units[i]], err = u.definition(tags, func(name dw.Value) bool { return sel.Match(index.RefOf(u.Unit.Unit, name)) })
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, t := range found {
		if t != nil {
			return t, nil
		}
	}
	return nil, nil
}

// definition finds a type that a unit defines, or returns nil. match compares its name.
func (u *unit) definition(tags []dw.Tag, match func(name dw.Value) bool) (t *Type, err error) {
	if err := u.Load(); err != nil {
		return nil, err
	}
	root, err := u.Entry(u.First)
	if err != nil {
		return nil, err
	}
	err = root.Children(func(c dw.Entry) (bool, error) {
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
		if declared || name.Form == 0 || !sized || !match(name) {
			return true, nil
		}
		t, err = u.typeAt(c.Off, 0)
		return false, err
	})
	return t, err
}
