package types

import (
	"fmt"
	"slices"
	"sync"

	"github.com/bpfprologue/bpfprologue/internal/btf"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/packfile"
	"github.com/bpfprologue/bpfprologue/internal/typesource"
)

// btfTypes is a typesource.BTF.
type btfTypes struct {
	*typesource.Section

	mu    sync.Mutex
	known map[btf.ID]*Type
}

func (b *btfTypes) guard(f func() error) error { return b.Guard(f) }

func (b *btfTypes) elem(t *Type, depth int) (*Type, error) { return b.typeIn(btf.ID(t.elem), depth) }

func (b *btfTypes) definedElsewhere(*Type) bool { return false }

func (b *btfTypes) damaged(_ *Type, what string) error { return b.Error(&btf.Error{Msg: what}) }

func (b *btfTypes) variants(*Type) (*Member, []Variant, error) { return nil, nil, nil }

func (b *btfTypes) parameter(*Type, string) (*Type, error) { return nil, nil }

func (b *btfTypes) declared(*Type) (string, int, error) { return "", 0, nil }

// tagged: a pack says which types are spelled without "struct".
func (b *btfTypes) tagged(t *Type) bool {
	return !t.plain
}

// memberPointer is the name that a pack has written.
func (b *btfTypes) memberPointer(t *Type, _ int) (prefix, suffix string) { return t.spelled(), "" }

func (b *btfTypes) dimensions(t *Type) ([]int64, error) {
	s, err := b.Type(btf.ID(t.id))
	if err != nil {
		return nil, b.Error(err)
	}
	if s.Kind != btf.KindArray {
		return nil, nil
	}
	return []int64{arrayCount(&s)}, nil
}

// arrayCount returns the number of elements of an array. BTF has no other way than 0 to say that nobody knows.
func arrayCount(s *btf.Type) int64 {
	if _, n := s.Array(); n != 0 {
		return int64(n)
	}
	return -1
}

// taggedKinds are kinds of types that BTF does not have, by the tags that packs have for them.
var taggedKinds = map[string]Kind{
	packfile.TagClass: Class, packfile.TagComplex: Complex, packfile.TagMemberPointer: MemberPointer,
	packfile.TagOther: Other,
}

// At returns the type with a number.
func (b *btfTypes) At(id btf.ID) (*Type, error) { return b.typeIn(id, 0) }

// typeIn is typeAt at a recursion depth: an array's size needs its element's.
func (b *btfTypes) typeIn(id btf.ID, depth int) (*Type, error) {
	if id == 0 {
		return VoidType, nil
	}
	if depth > maxDepth {
		return nil, b.Error(&btf.Error{Msg: fmt.Sprintf("types are nested more than %d deep", maxDepth)})
	}
	b.mu.Lock()
	t := b.known[id]
	b.mu.Unlock()
	if t != nil {
		return t, nil
	}
	t, err := b.read(id, depth)
	if err != nil {
		return nil, b.Error(err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.known == nil {
		b.known = make(map[btf.ID]*Type)
	}
	if other := b.known[id]; other != nil {
		return other, nil // one type is one pointer
	}
	b.known[id] = t
	return t, nil
}

// stored returns a type as it is stored, without the tags on it (btf_type_tag) but packfile.TagAtomic, and
// whether one of these says that a pointer to it is a reference.
func (b *btfTypes) stored(id btf.ID) (s btf.Type, reference dw.Tag, err error) {
	for range maxDepth {
		if s, err = b.Type(id); err != nil || s.Kind != btf.KindTypeTag || s.Named(packfile.TagAtomic) {
			return s, reference, err
		}
		switch {
		case s.Named(packfile.TagReference):
			reference = dw.TagReferenceType
		case s.Named(packfile.TagRvalueReference):
			reference = dw.TagRvalueRefType
		}
		id = s.Elem
	}
	return s, 0, &btf.Error{Msg: "tags of a type that do not end"}
}

var btfQualifiers = map[btf.Kind]dw.Tag{
	btf.KindConst: dw.TagConstType, btf.KindVolatile: dw.TagVolatileType, btf.KindRestrict: dw.TagRestrictType,
}

func (b *btfTypes) read(id btf.ID, depth int) (*Type, error) {
	s, _, err := b.stored(id)
	if err != nil {
		return nil, err
	}
	t := &Type{src: b, id: uint64(s.ID), elem: uint64(s.Elem), Size: int64(s.Size)}
	if t.Name, err = s.Name(); err != nil {
		return nil, err
	}
	switch s.Kind {
	case btf.KindVoid:
		return VoidType, nil
	case btf.KindInt:
		b.readInt(t, &s)
	case btf.KindFloat:
		t.Kind, t.tag = Float, dw.TagBaseType
	case btf.KindEnum, btf.KindEnum64:
		t.Kind, t.tag, t.Signed = Enum, dw.TagEnumerationType, s.Flag
		if !b.Signs() { // 0xefffffff and a negative number look alike
			s.Enumerators(func(_ func(string) bool, _ func() (string, error), v int64) bool {
				t.Signed = t.Signed || v < 0
				return !t.Signed
			})
		}
		err = b.readTags(t)
	case btf.KindPointer:
		t.Kind, t.tag, t.Size = Pointer, dw.TagPointerType, int64(b.WordSize)
		reference := dw.Tag(0)
		if _, reference, err = b.stored(s.Elem); reference != 0 {
			t.tag = reference
		}
	case btf.KindStruct:
		t.Kind, t.tag = Struct, dw.TagStructType
		err = b.readTags(t)
	case btf.KindUnion:
		t.Kind, t.tag = Union, dw.TagUnionType
		err = b.readTags(t)
	case btf.KindForward:
		t.Kind, t.tag, t.Size = Struct, dw.TagStructType, -1
		if s.Flag {
			t.Kind, t.tag = Union, dw.TagUnionType
		}
	case btf.KindArray:
		t.Kind, t.tag = Array, dw.TagArrayType
		made, _ := s.Array()
		t.elem = uint64(made)
		el, err := b.typeIn(made, depth+1)
		if err != nil {
			return nil, err
		}
		if t.Size, err = sizeOf(el, []int64{arrayCount(&s)}, depth+1); err != nil {
			return nil, err
		}
	case btf.KindFuncProto:
		t.Kind, t.tag, t.Size = Func, dw.TagSubroutineType, -1
	case btf.KindTypedef:
		t.Kind, t.tag, t.Size = Typedef, dw.TagTypedef, -1
	case btf.KindTypeTag:
		t.Kind, t.tag, t.Size, t.Name = Qualified, dw.TagAtomicType, -1, ""
	case btf.KindConst, btf.KindVolatile, btf.KindRestrict:
		t.Kind, t.tag, t.Size = Qualified, btfQualifiers[s.Kind], -1
	default:
		return nil, &btf.Error{Msg: "what is asked for as a type is none"}
	}
	return t, err
}

// readInt sets what a type of numbers is. BTF of kernels does not tell characters from numbers, nor
// whether a plain char is signed: pahole (1.24) writes that of DW_ATE_signed alone.
func (b *btfTypes) readInt(t *Type, s *btf.Type) {
	signed, char, boolean, _, _ := s.Int()
	t.Kind, t.Signed, t.tag = Int, signed, dw.TagBaseType
	switch {
	case boolean:
		t.Kind, t.Signed = Bool, false
	case char:
		t.Kind = Char
	case s.Size == 1 && (t.Name == "char" || t.Name == "signed char"):
		t.Kind, t.Signed = Char, signed || t.Name == "signed char"
	case s.Size == 1 && t.Name == "unsigned char":
		t.Kind = Char
	}
}

func (b *btfTypes) readTags(t *Type) error {
	tags, err := b.Tags(btf.ID(t.id))
	for _, tag := range tags {
		if k, ok := taggedKinds[tag]; ok {
			t.Kind = k
		}
		t.plain = t.plain || tag == packfile.TagPlain
	}
	if t.Kind == MemberPointer {
		t.Signed = true
	}
	return err
}

func (b *btfTypes) members(t *Type) (out []Member, err error) {
	s, err := b.Type(btf.ID(t.id))
	if err != nil {
		return nil, b.Error(err)
	}
	if s.Kind != btf.KindStruct && s.Kind != btf.KindUnion {
		return nil, nil
	}
	for i := range s.Members() {
		f := s.Member(i)
		m := Member{BitOffset: uint64(f.BitOffset), BitSize: uint64(f.BitSize)}
		if m.Name, err = f.Name(); err != nil {
			return nil, b.Error(err)
		}
		if m.Type, err = b.At(f.Type); err != nil {
			return nil, err
		}
		if !s.Flag {
			if err := b.oldBits(&m); err != nil {
				return nil, err
			}
		}
		out = append(out, m)
	}
	return out, nil
}

// oldBits sets the bits of a bit-field whose type has them: as pahole wrote them before Linux 5.1.
func (b *btfTypes) oldBits(m *Member) error {
	r, err := m.Type.resolve(0)
	if err != nil || r.src != source(b) || r.Kind != Int && r.Kind != Bool && r.Kind != Char {
		return err
	}
	s, err := b.Type(btf.ID(r.id))
	if err != nil || s.Kind != btf.KindInt {
		return err
	}
	if _, _, _, off, bits := s.Int(); uint32(bits) != 8*s.Size {
		m.BitOffset, m.BitSize = m.BitOffset+uint64(off), uint64(bits)
	}
	return nil
}

func (b *btfTypes) enumerators(t *Type, f func(name func() (string, error), v int64) (more bool)) error {
	s, err := b.Type(btf.ID(t.id))
	if err != nil {
		return b.Error(err)
	}
	if s.Kind == btf.KindEnum || s.Kind == btf.KindEnum64 {
		s.Enumerators(func(_ func(string) bool, text func() (string, error), v int64) bool { return f(text, v) })
	}
	return nil
}

// btfKinds are the kinds of BTF that define a type of a kind that a definition names.
var btfKinds = map[string][]btf.Kind{
	"struct": {btf.KindStruct}, "class": {btf.KindStruct}, "union": {btf.KindUnion}, "enum": {btf.KindEnum, btf.KindEnum64},
	"": {btf.KindTypedef, btf.KindInt, btf.KindFloat, btf.KindStruct, btf.KindUnion, btf.KindEnum, btf.KindEnum64},
}

// Named returns the first type with a name, "struct page" or "loff_t", or nil. A pack says which one it is if there
// are several.
func (b *btfTypes) Named(text string) (found *Type, err error) {
	kind, name := cutKind(text)
	kinds := btfKinds[kind]
	id := btf.ID(0)
	tagged, err := b.Tagged(packfile.TagFirst)
	if err != nil {
		return nil, b.Error(err)
	}
	for _, x := range tagged {
		t, err := b.Type(x)
		if err != nil {
			return nil, b.Error(err)
		}
		if slices.Contains(kinds, t.Kind) && t.Named(name) {
			return b.At(x)
		}
	}
	err = b.Each(func(t *btf.Type) bool {
		if slices.Contains(kinds, t.Kind) && t.Named(name) {
			id = t.ID
		}
		return id == 0
	})
	if err != nil || id == 0 {
		return nil, b.Error(err)
	}
	return b.At(id)
}

func (b *btfTypes) complete(t *Type) (*Type, error) {
	kind := "struct"
	if t.Kind == Union {
		kind = "union"
	}
	full, err := b.Named(kind + " " + t.Name)
	if err != nil || full == nil || full.plain {
		return t, err // in C++ and the like a name without what is around it means nothing; who has written the pack has searched
	}
	return full, nil
}

// Enumerator returns the value of the first enumerator with a name.
func (b *btfTypes) Enumerator(name string) (value int64, found bool, err error) {
	err = b.Each(func(t *btf.Type) bool {
		if t.Kind == btf.KindEnum || t.Kind == btf.KindEnum64 {
			t.Enumerators(func(is func(string) bool, _ func() (string, error), v int64) bool {
				if is(name) {
					value, found = v, true
				}
				return !found
			})
		}
		return !found
	})
	return value, found, b.Error(err)
}
