package types

import (
	"strings"
	"sync"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/index"
)

// clang describes a C++ class only in the units that need its constructors or its virtual functions (-flimit-debug-info, its default).
// Others declare it, also where they have objects of it. An enumeration can be declared alone too (enum class E : short). In C++ a name
// with its namespaces and classes means one type in the whole program, so that the definition is found by it. What an image defines is
// read once, and all names are looked for in that.

// defined is where a record with a name is defined.
type defined struct {
	unit      int
	off       uint64
	size      int64
	different bool // there are definitions with other sizes: nobody knows which one is meant
}

// definitions are the records that the units of an image in C and C++ define, by their names: see eachRecord.
type definitions struct {
	mu  sync.Mutex
	all map[string]defined // nil before it is asked for
}

// completeByScope returns the definition of a record that a unit in C++ only declares, or t itself.
func (u *unitTypes) completeByScope(t *Type) (*Type, error) {
	u.mu.Lock()
	full, known := u.whole[t.id]
	u.mu.Unlock()
	if known {
		return full, nil
	}
	name, err := u.scopedName(t.id)
	if err == nil && name != "" {
		full, err = u.all.recordNamed(name)
	}
	if err != nil {
		return nil, err
	}
	if full == nil {
		full = t
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.whole == nil {
		u.whole = make(map[uint64]*Type)
	}
	u.whole[t.id] = full
	return full, nil
}

// recordNamed returns the definition of a record, in the image or in the one that completes its types. It is nil if there is none, or if
// it is not known which one is meant.
func (d *dwarfTypes) recordNamed(name string) (*Type, error) {
	all, err := d.defined()
	if err != nil {
		return nil, err
	}
	at, has := all[name]
	if other, more := d.o.Other.(*dwarfTypes); !has && more {
		if err := other.o.Prepare(); err != nil {
			return nil, err
		}
		return other.recordNamed(name)
	}
	if !has || at.different {
		return nil, nil
	}
	return d.units[at.unit].typeAt(at.off, 0)
}

// scopedName returns the name of a record that the unit declares, as eachRecord has it, or "". An entry does not say what is around
// it, so all are found at once.
func (u *unitTypes) scopedName(off uint64) (string, error) {
	u.mu.Lock()
	names := u.names
	u.mu.Unlock()
	if names == nil {
		names = make(map[uint64]string)
		if err := u.eachRecord(func(off uint64, name []byte, size int64) {
			if size < 0 {
				names[off] = string(name)
			}
		}); err != nil {
			return "", err
		}
		u.mu.Lock()
		u.names = names
		u.mu.Unlock()
	}
	return names[off], nil
}

// defined returns the definitions of the image's records.
func (d *dwarfTypes) defined() (map[string]defined, error) {
	d.begin()
	d.records.mu.Lock()
	defer d.records.mu.Unlock()
	if d.records.all != nil {
		return d.records.all, nil
	}
	all := make(map[string]defined)
	var mu sync.Mutex
	err := d.index.Parallel(len(d.units), func(_ *index.Scanner, i int) error {
		u := &d.units[i]
		if !u.Loaded() {
			defer u.Forget() // the search goes through all units
		}
		if err := u.Load(); err != nil {
			return err
		}
		if lang := u.language(); !dw.IsC(lang) && !dw.IsCPlusPlus(lang) {
			return nil
		}
		return u.eachRecord(func(off uint64, name []byte, size int64) {
			if size < 0 {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			have, has := all[string(name)]
			switch {
			case !has:
				all[string(name)] = defined{unit: i, off: off, size: size}
			case have.size != size:
				have.different = true
				all[string(name)] = have
			case i < have.unit: // the first one, as everywhere
				have.unit, have.off = i, off
				all[string(name)] = have
			}
		})
	})
	if err != nil {
		return nil, err
	}
	d.records.all = all
	return all, nil
}

// eachRecord calls f for the unit's structures, unions, classes and enumerations whose name means the same type in all units, with the
// namespaces and classes around it and a letter that tells unions and enumerations apart: "rapp::Box<int>". size is -1 for one that is
// only declared. name is valid in f.
func (u *unitTypes) eachRecord(f func(off uint64, name []byte, size int64)) error {
	root, err := u.Entry(u.First)
	if err != nil {
		return err
	}
	var walk func(e dw.Entry, around []byte, depth int) error
	walk = func(e dw.Entry, around []byte, depth int) error {
		return e.Children(func(c dw.Entry) (bool, error) {
			kind := byte('r')
			switch c.Tag() {
			case dw.TagUnionType:
				kind = 'u'
			case dw.TagEnumerationType:
				kind = 'e'
			case dw.TagNamespace, dw.TagStructType, dw.TagClassType:
			default:
				return true, nil
			}
			var text dw.Value
			size := int64(-1)
			declared := false
			if err := c.Attrs(func(a dw.Attr, v dw.Value) {
				switch a {
				case dw.AttrName:
					text = v
				case dw.AttrByteSize:
					if v.IsConstant() && v.U < 1<<40 {
						size = int64(v.U)
					}
				case dw.AttrDeclaration:
					declared = v.U != 0
				}
			}); err != nil {
				return false, err
			}
			own := u.Text(text)
			if own == "" {
				return true, nil // each unit has a namespace without a name of its own
			}
			name := append(around[:len(around):len(around)], own...)
			if c.Tag() != dw.TagNamespace {
				if nameless, err := namedByParameters(c, own); err != nil || nameless {
					return err == nil, err
				}
				if declared {
					size = -1
				}
				name[0] = kind
				f(c.Off, name, size)
			}
			if kind == 'e' || !c.HasChildren() || depth == maxDepth {
				return true, nil
			}
			return true, walk(c, append(name, "::"...), depth+1)
		})
	}
	return walk(root, []byte{'r'}, 0)
}

// namedByParameters reports whether a record's name lacks the arguments of its template, which tell instances apart
// (-gsimple-template-names).
func namedByParameters(e dw.Entry, name string) (is bool, err error) {
	if strings.Contains(name, "<") {
		return false, nil
	}
	err = e.Children(func(c dw.Entry) (bool, error) {
		is = c.Tag() == dw.TagTemplateTypeParam || c.Tag() == dw.TagTemplateValue
		return !is, nil
	})
	return is, err
}
