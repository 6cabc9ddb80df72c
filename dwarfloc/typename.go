package dwarfloc

import (
	"slices"
	"strings"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/probe"
)

// Types that a definition names, in casts, sizeof and container_of.

// numberTypes are C's types of computed numbers.
var numberTypes = map[[2]int]*Type{
	{4, 1}: {Kind: TypeInt, Name: "int", Size: 4, Signed: true},
	{4, 0}: {Kind: TypeInt, Name: "unsigned int", Size: 4},
	{8, 1}: {Kind: TypeInt, Name: "long", Size: 8, Signed: true},
	{8, 0}: wordType,
}

func numberType(size int, signed bool) *Type {
	s := 0
	if signed {
		s = 1
	}
	if size <= 4 {
		return numberTypes[[2]int{4, s}]
	}
	return numberTypes[[2]int{8, s}]
}

// pointerTo returns the type of a pointer.
func pointerTo(t *Type, size int) *Type {
	return &Type{Kind: TypePointer, Size: int64(size), u: t.u, b: t.b, tag: dw.TagPointerType, to: t}
}

// ownTypes are the types of numbers by the names that all units know, in C and in the kernel, with
// their sizes in bytes; 0 is that of an address.
var ownTypes = map[string]struct {
	size   int64
	signed bool
	kind   TypeKind
}{
	"char": {1, true, TypeChar}, "signed char": {1, true, TypeChar}, "unsigned char": {1, false, TypeChar},
	"short": {2, true, TypeInt}, "unsigned short": {2, false, TypeInt},
	"int": {4, true, TypeInt}, "unsigned": {4, false, TypeInt}, "unsigned int": {4, false, TypeInt}, "signed": {4, true, TypeInt},
	"long": {0, true, TypeInt}, "unsigned long": {0, false, TypeInt}, "long int": {0, true, TypeInt}, "unsigned long int": {0, false, TypeInt},
	"long unsigned int": {0, false, TypeInt},
	"long long":         {8, true, TypeInt}, "unsigned long long": {8, false, TypeInt}, "long long int": {8, true, TypeInt},
	"long long unsigned int": {8, false, TypeInt}, "unsigned long long int": {8, false, TypeInt}, "short int": {2, true, TypeInt}, "short unsigned int": {2, false, TypeInt},
	"bool": {1, false, TypeBool}, "_Bool": {1, false, TypeBool},
	"u8": {1, false, TypeInt}, "u16": {2, false, TypeInt}, "u32": {4, false, TypeInt}, "u64": {8, false, TypeInt},
	"s8": {1, true, TypeInt}, "s16": {2, true, TypeInt}, "s32": {4, true, TypeInt}, "s64": {8, true, TypeInt},
	"size_t": {0, false, TypeInt}, "ssize_t": {0, true, TypeInt},
}

// typeTags are the entries that define a type of a kind.
var typeTags = map[string][]dw.Tag{
	"struct": {dw.TagStructType, dw.TagClassType}, "class": {dw.TagClassType, dw.TagStructType}, "union": {dw.TagUnionType},
	"enum": {dw.TagEnumerationType},
	"":     {dw.TagTypedef, dw.TagBaseType, dw.TagStructType, dw.TagClassType, dw.TagUnionType, dw.TagEnumerationType},
}

// namedTypes caches the types that definitions name.
type namedTypes map[namedType]*Type

type namedType struct {
	u    *unit // nil for all of the image
	kind string
	name string
}

// NamedType returns the type that a name, "struct page" or "loff_t", means in a definition at sites whose own unit has no type
// of that name: that of the first unit that has one. It is nil if there is none.
func (img *Image) NamedType(name string) (t *Type, err error) {
	kind, rest, ok := strings.Cut(name, " ")
	if !ok || typeTags[kind] == nil {
		kind, rest = "", name
	}
	if b := img.types(); b != nil {
		return b.named(kind, rest)
	}
	if err := img.prepare(false); err != nil {
		return nil, err
	}
	err = img.guard(func() (err error) {
		t, err = img.named(namedType{nil, kind, rest})
		return err
	})
	return t, err
}

// typeNamed returns a type by its name: that of the site's unit, or that of the first unit that has
// one. The error for an unknown one is a *mismatch.
func (s *Site) typeNamed(n *probe.TypeName) (*Type, error) {
	word := s.Image.Arch().WordSize
	t, err := s.baseType(n.Name, word)
	if err != nil {
		return nil, err
	}
	if t == nil {
		return nil, &mismatch{Msg: "no type " + strings.TrimSpace(n.Name) + " in the debug information", Expr: &probe.Expr{Pos: n.Pos}}
	}
	for range n.Pointers {
		t = pointerTo(t, word)
	}
	return t, nil
}

func (s *Site) baseType(name string, word int) (*Type, error) {
	if name == "void" {
		return voidType, nil
	}
	if o, ok := ownTypes[name]; ok {
		t := &Type{Kind: o.kind, Name: name, Size: o.size, Signed: o.signed}
		if t.Size == 0 {
			t.Size = int64(word)
		}
		return t, nil
	}
	kind, rest, ok := strings.Cut(name, " ")
	if !ok || typeTags[kind] == nil {
		kind, rest = "", name
	}
	if b := s.Image.types(); b != nil {
		return b.named(kind, rest)
	}
	for _, u := range []*unit{s.u, nil} {
		t, err := s.u.img.named(namedType{u, kind, rest})
		if t != nil || err != nil {
			return t, err
		}
	}
	if other := s.u.img.o.TypesOf; other != nil {
		if err := other.prepare(false); err != nil {
			return nil, err
		}
		return other.named(namedType{nil, kind, rest})
	}
	return nil, nil
}

// named returns a type of a unit, or of all units, or nil.
func (img *Image) named(key namedType) (t *Type, err error) {
	f := &img.full
	f.mu.Lock()
	t, known := f.named[key]
	f.mu.Unlock()
	if known {
		return t, nil
	}
	tags := typeTags[key.kind]
	if key.u != nil {
		t, err = key.u.definition(tags, func(name dw.Value) bool { return key.u.Text(name) == key.name })
	} else {
		t, err = img.definition(key.name, tags)
	}
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.named == nil {
		f.named = make(namedTypes)
	}
	f.named[key] = t
	return t, nil
}

// enumerator returns the value of an enumerator of the site's unit, if no variable of the function
// has its name.
func (s *Site) enumerator(name string) (value int64, found bool, err error) {
	if b := s.Image.types(); b != nil {
		if v, err := s.lookup(name); err != nil || v.Reason.Code != loc.ReasonNoSuchVariable {
			return 0, false, err
		}
		return b.enumerator(name)
	}
	key := enumeratorName{s.u, name}
	f := &s.u.img.full
	f.mu.Lock()
	x, known := f.enumerators[key]
	f.mu.Unlock()
	if !known {
		if x.value, x.found, err = s.u.enumerator(name); err != nil {
			return 0, false, err
		}
		f.mu.Lock()
		if f.enumerators == nil {
			f.enumerators = make(map[enumeratorName]enumeratorValue)
		}
		f.enumerators[key] = x
		f.mu.Unlock()
	}
	if !x.found {
		return 0, false, nil
	}
	own, err := s.names()
	return x.value, err == nil && !slices.Contains(own, name), err
}

type enumeratorName struct {
	u    *unit
	name string
}

type enumeratorValue struct {
	value int64
	found bool
}

func (u *unit) enumerator(name string) (value int64, found bool, err error) {
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
