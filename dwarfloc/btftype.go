package dwarfloc

import (
	"fmt"
	"slices"
	"sync"

	"github.com/bpfprologue/bpfprologue/image"
	"github.com/bpfprologue/bpfprologue/internal/btf"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/packfile"
)

// btfTypes are the types of an image that has them as BTF.
type btfTypes struct {
	*btf.Types
	img     *Image
	section string // that they are in, for errors

	mu    sync.Mutex
	known map[btf.ID]*Type
}

// taggedKinds are kinds of types that BTF does not have, by the tags that packs have for them.
var taggedKinds = map[string]TypeKind{
	packfile.TagClass: TypeClass, packfile.TagComplex: TypeComplex, packfile.TagMemberPointer: TypeMemberPointer,
	packfile.TagOther: TypeOther,
}

// errorf returns an error about the types.
func (b *btfTypes) errorf(err error) error {
	if e, ok := err.(*btf.Error); ok {
		return &image.FormatError{Path: b.img.Path(), Section: b.section, Offset: e.Offset, Msg: e.Msg}
	}
	return err
}

// typeAt returns the type with a number.
func (b *btfTypes) typeAt(id btf.ID) (*Type, error) { return b.typeIn(id, 0) }

// typeIn is typeAt at a recursion depth: an array's size needs its element's.
func (b *btfTypes) typeIn(id btf.ID, depth int) (*Type, error) {
	if id == 0 {
		return voidType, nil
	}
	if depth > maxTypeDepth {
		return nil, b.errorf(&btf.Error{Msg: fmt.Sprintf("types are nested more than %d deep", maxTypeDepth)})
	}
	b.mu.Lock()
	t := b.known[id]
	b.mu.Unlock()
	if t != nil {
		return t, nil
	}
	t, err := b.read(id, depth)
	if err != nil {
		return nil, b.errorf(err)
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
	for range maxTypeDepth {
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
	t := &Type{b: b, id: s.ID, made: s.Elem, Size: int64(s.Size)}
	if t.Name, err = s.Name(); err != nil {
		return nil, err
	}
	switch s.Kind {
	case btf.KindVoid:
		return voidType, nil
	case btf.KindInt:
		b.readInt(t, &s)
	case btf.KindFloat:
		t.Kind, t.tag = TypeFloat, dw.TagBaseType
	case btf.KindEnum, btf.KindEnum64:
		t.Kind, t.tag, t.Signed = TypeEnum, dw.TagEnumerationType, s.Flag
		if !b.Signs() { // 0xefffffff and a negative number look alike
			s.Enumerators(func(_ func(string) bool, _ func() (string, error), v int64) bool {
				t.Signed = t.Signed || v < 0
				return !t.Signed
			})
		}
		err = b.readTags(t)
	case btf.KindPointer:
		t.Kind, t.tag, t.Size = TypePointer, dw.TagPointerType, int64(b.img.Arch().WordSize)
		reference := dw.Tag(0)
		if _, reference, err = b.stored(s.Elem); reference != 0 {
			t.tag = reference
		}
	case btf.KindStruct:
		t.Kind, t.tag = TypeStruct, dw.TagStructType
		err = b.readTags(t)
	case btf.KindUnion:
		t.Kind, t.tag = TypeUnion, dw.TagUnionType
		err = b.readTags(t)
	case btf.KindForward:
		t.Kind, t.tag, t.Size = TypeStruct, dw.TagStructType, -1
		if s.Flag {
			t.Kind, t.tag = TypeUnion, dw.TagUnionType
		}
	case btf.KindArray:
		t.Kind, t.tag = TypeArray, dw.TagArrayType
		var n uint32
		t.made, n = s.Array()
		t.count = int64(n)
		if n == 0 {
			t.count = -1 // BTF has no other way to say that nobody knows
		}
		t.Size, err = t.arrayBytes(depth + 1)
	case btf.KindFuncProto:
		t.Kind, t.tag, t.Size = TypeFunc, dw.TagSubroutineType, -1
	case btf.KindTypedef:
		t.Kind, t.tag, t.Size = TypeTypedef, dw.TagTypedef, -1
	case btf.KindTypeTag:
		t.Kind, t.tag, t.Size, t.Name = TypeQualified, dw.TagAtomicType, -1, ""
	case btf.KindConst, btf.KindVolatile, btf.KindRestrict:
		t.Kind, t.tag, t.Size = TypeQualified, btfQualifiers[s.Kind], -1
	default:
		return nil, &btf.Error{Msg: "what is asked for as a type is none"}
	}
	return t, err
}

// readInt sets what a type of numbers is. BTF of kernels does not tell characters from numbers, nor
// whether a plain char is signed: pahole (1.24) writes that of DW_ATE_signed alone.
func (b *btfTypes) readInt(t *Type, s *btf.Type) {
	signed, char, boolean, _, _ := s.Int()
	t.Kind, t.Signed, t.tag = TypeInt, signed, dw.TagBaseType
	switch {
	case boolean:
		t.Kind, t.Signed = TypeBool, false
	case char:
		t.Kind = TypeChar
	case s.Size == 1 && (t.Name == "char" || t.Name == "signed char"):
		t.Kind, t.Signed = TypeChar, signed || t.Name == "signed char"
	case s.Size == 1 && t.Name == "unsigned char":
		t.Kind = TypeChar
	}
}

func (b *btfTypes) readTags(t *Type) error {
	tags, err := b.Tags(t.id)
	for _, tag := range tags {
		if k, ok := taggedKinds[tag]; ok {
			t.Kind = k
		}
		t.plain = t.plain || tag == packfile.TagPlain
	}
	if t.Kind == TypeMemberPointer {
		t.Signed = true
	}
	return err
}

// arrayBytes returns the size of an array.
func (t *Type) arrayBytes(depth int) (int64, error) {
	el, err := t.b.typeIn(t.made, depth)
	if err != nil {
		return -1, err
	}
	r, err := el.resolve(depth)
	if err != nil || r.Size < 0 || t.count < 0 || r.Size != 0 && t.count > 1<<40/r.Size {
		return -1, err
	}
	return r.Size * t.count, nil
}

// members is Members.
func (b *btfTypes) members(t *Type) (out []Member, err error) {
	s, err := b.Type(t.id)
	if err != nil {
		return nil, b.errorf(err)
	}
	if s.Kind != btf.KindStruct && s.Kind != btf.KindUnion {
		return nil, nil
	}
	for i := range s.Members() {
		f := s.Member(i)
		m := Member{BitOffset: uint64(f.BitOffset), BitSize: uint64(f.BitSize)}
		if m.Name, err = f.Name(); err != nil {
			return nil, b.errorf(err)
		}
		if m.Type, err = b.typeAt(f.Type); err != nil {
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
	if err != nil || r.b != b || r.Kind != TypeInt && r.Kind != TypeBool && r.Kind != TypeChar {
		return err
	}
	s, err := b.Type(r.id)
	if err != nil || s.Kind != btf.KindInt {
		return err
	}
	if _, _, _, off, bits := s.Int(); uint32(bits) != 8*s.Size {
		m.BitOffset, m.BitSize = m.BitOffset+uint64(off), uint64(bits)
	}
	return nil
}

// enumerators calls f for the enumerators of an enumeration.
func (b *btfTypes) enumerators(id btf.ID, f func(name func(string) bool, text func() (string, error), v int64) bool) error {
	s, err := b.Type(id)
	if err != nil {
		return b.errorf(err)
	}
	if s.Kind == btf.KindEnum || s.Kind == btf.KindEnum64 {
		s.Enumerators(f)
	}
	return nil
}

// btfKinds are the kinds of BTF that define a type of a kind that a definition names.
var btfKinds = map[string][]btf.Kind{
	"struct": {btf.KindStruct}, "class": {btf.KindStruct}, "union": {btf.KindUnion}, "enum": {btf.KindEnum, btf.KindEnum64},
	"": {btf.KindTypedef, btf.KindInt, btf.KindFloat, btf.KindStruct, btf.KindUnion, btf.KindEnum, btf.KindEnum64},
}

// named returns the first type with a name, or nil. A pack says which one it is if there are several.
func (b *btfTypes) named(kind, name string) (found *Type, err error) {
	kinds := btfKinds[kind]
	id := btf.ID(0)
	tagged, err := b.Tagged(packfile.TagFirst)
	if err != nil {
		return nil, b.errorf(err)
	}
	for _, x := range tagged {
		t, err := b.Type(x)
		if err != nil {
			return nil, b.errorf(err)
		}
		if slices.Contains(kinds, t.Kind) && t.Named(name) {
			return b.typeAt(x)
		}
	}
	err = b.Each(func(t *btf.Type) bool {
		if slices.Contains(kinds, t.Kind) && t.Named(name) {
			id = t.ID
		}
		return id == 0
	})
	if err != nil || id == 0 {
		return nil, b.errorf(err)
	}
	return b.typeAt(id)
}

// complete returns the definition of a type that is only declared, or t itself.
func (b *btfTypes) complete(t *Type) (*Type, error) {
	kind := "struct"
	if t.Kind == TypeUnion {
		kind = "union"
	}
	full, err := b.named(kind, t.Name)
	if err != nil || full == nil {
		return t, err
	}
	return full, nil
}

// enumerator returns the value of the first enumerator with a name.
func (b *btfTypes) enumerator(name string) (value int64, found bool, err error) {
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
	return value, found, b.errorf(err)
}
