package dwarfloc

import (
	"context"
	"sync"
)

// A unit that only passes pointers on describes a structure by its name alone. Its
// members are in another unit, found by the name: C has one type of a name in a
// program, or its pointers could not be passed on.

// fullTypes is what an image remembers of types that were completed.
type fullTypes struct {
	mu    sync.Mutex
	found map[typeName]*Type
}

// UseTypesOf makes another image complete types that this one only declares: a
// module's, of the kernel that it was built for. It must be called before the first
// question, and the other image must stay open as long as this one.
func (img *Image) UseTypesOf(other *Image) { img.typesOf = other }

type typeName struct {
	tag  tag
	name string
}

// complete returns the definition of a type that the unit only declares, or t itself
// when no unit defines it.
func (t *Type) complete() (*Type, error) {
	if t.Size >= 0 || t.Name == "" || t.u == nil || !isRecord(t) {
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
		if other := img.typesOf; full == nil && other != nil {
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
	ctx := context.Background()
	sel := img.selectorFor(Name(key.name))
	units, ok, err := img.mentions(ctx, &sel)
	if err != nil {
		return nil, err
	}
	if !ok {
		units = img.allUnits()
	}
	found := make([]*Type, len(img.units))
	err = img.parallel(len(units), func(_ *scanner, i int) error {
		u := &img.units[units[i]]
		if err := u.load(); err != nil {
			return err
		}
		root, err := u.entry(u.first)
		if err != nil {
			return err
		}
		return root.children(func(c entry) (bool, error) {
			if c.ab.tag != key.tag {
				return true, nil
			}
			var name, size value
			declared := false
			if err := c.attrs(func(a attrName, v value) {
				switch a {
				case attrName_:
					name = v
				case attrByteSize:
					size = v
				case attrDeclaration:
					declared = v.u != 0
				}
			}); err != nil {
				return false, err
			}
			if declared || !size.isConstant() || !sel.match(u.nameRef(name)) {
				return true, nil
			}
			t, err := u.typeAt(c.off, 0)
			found[units[i]] = t
			return false, err
		})
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
