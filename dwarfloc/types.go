package dwarfloc

import (
	"cmp"
	"sync/atomic"

	"github.com/bpfprologue/bpfprologue/internal/btf"
	"github.com/bpfprologue/bpfprologue/internal/dw"
)

// TypeKind says what values a type has.
//
//   - TypeVoid has no values. It stands for a missing DW_AT_type
//   - TypeInt: an integer, signed or unsigned
//   - TypeBool: a truth value
//   - TypeChar: a character: an integer that is printed as text
//   - TypeEnum: an enumeration: see [Type.Enumerator]
//   - TypePointer: an address of an object or a function, C++ references included
//   - TypeFloat: a floating-point number
//   - TypeComplex: a complex number: a real and an imaginary part
//   - TypeStruct has members one after another: see [Type.Members]
//   - TypeUnion has members in the same place
//   - TypeClass: a struct that the program calls a class
//   - TypeArray has elements of one type: see [Type.Count]
//   - TypeFunc: a function, which a pointer can point to
//   - TypeTypedef: another name for a type: see [Type.Resolve]
//   - TypeQualified: a type that is const, volatile, restrict or _Atomic
//   - TypeMemberPointer: a C++ pointer to a member
//   - TypeOther: any other type, such as a decimal number
type TypeKind uint8

const (
	// TypeVoid has no values. It stands for a missing DW_AT_type.
	TypeVoid TypeKind = iota
	// TypeInt is an integer, signed or unsigned.
	TypeInt
	// TypeBool is a truth value.
	TypeBool
	// TypeChar is a character: an integer that is printed as text.
	TypeChar
	// TypeEnum is an enumeration: see [Type.Enumerator].
	TypeEnum
	// TypePointer is an address of an object or a function, C++ references included.
	TypePointer
	// TypeFloat is a floating-point number.
	TypeFloat
	// TypeComplex is a complex number: a real and an imaginary part.
	TypeComplex
	// TypeStruct has members one after another: see [Type.Members].
	TypeStruct
	// TypeUnion has members in the same place.
	TypeUnion
	// TypeClass is a struct that the program calls a class.
	TypeClass
	// TypeArray has elements of one type: see [Type.Count].
	TypeArray
	// TypeFunc is a function, which a pointer can point to.
	TypeFunc
	// TypeTypedef is another name for a type: see [Type.Resolve].
	TypeTypedef
	// TypeQualified is a type that is const, volatile, restrict or _Atomic.
	TypeQualified
	// TypeMemberPointer is a C++ pointer to a member.
	TypeMemberPointer
	// TypeOther is any other type, such as a decimal number.
	TypeOther
)

// Type is a type in the image's debug information. The type that it is made of is
// read by Elem.
type Type struct {
	Kind   TypeKind
	Name   string // "" for a type without a name of its own
	Size   int64  // bytes, or -1 if unknown; see ByteSize for typedefs
	Signed bool   // for integers, characters and enumerations

	u    *unit
	off  uint64 // entry
	tag  dw.Tag
	elem dw.Value
	// byValue and byReference are set if DW_AT_calling_convention of a C++ class says how
	// it is passed.
	byValue, byReference bool
	skip                 int   // dimensions of an array that have been indexed
	to                   *Type // of a pointer that is not in the debug information

	// For a type in BTF, u is nil.
	b     *btfTypes
	id    btf.ID
	made  btf.ID // what it is made of
	count int64  // elements of an array, or -1
	plain bool   // it is spelled without "struct"

	real atomic.Pointer[Type] // cached result of Resolve
}

// voidType stands for a missing DW_AT_type.
var voidType = &Type{Kind: TypeVoid, Name: "void", Size: -1}

// maxTypeDepth bounds chains of typedefs, qualifiers and array elements.
const maxTypeDepth = 64

// typeOf returns the type that a reference names.
func (u *unit) typeOf(v dw.Value) (*Type, error) { return u.typeIn(v, 0) }

// typeIn is typeOf at a recursion depth: an array's size needs its element's, and in a
// damaged file these types can form a cycle.
func (u *unit) typeIn(v dw.Value, depth int) (*Type, error) {
	if v.Form == 0 {
		return voidType, nil
	}
	t, off, err := u.Ref(v)
	if err != nil {
		return nil, err
	}
	if depth > maxTypeDepth {
		return nil, u.Data.Errorf(".debug_info", off, "types are nested more than %d deep", maxTypeDepth)
	}
	return u.img.of(t).typeAt(off, depth)
}

func (u *unit) typeAt(off uint64, depth int) (*Type, error) {
	u.typeMu.Lock()
	t := u.types[off]
	u.typeMu.Unlock()
	if t != nil {
		return t, nil
	}
	t, err := u.readType(off, depth)
	if err != nil {
		return nil, err
	}
	u.typeMu.Lock()
	defer u.typeMu.Unlock()
	if u.types == nil {
		u.types = make(map[uint64]*Type)
	}
	u.types[off] = t
	return t, nil
}

func (u *unit) readType(off uint64, depth int) (*Type, error) {
	e, err := u.Entry(off)
	if err != nil {
		return nil, err
	}
	if e.IsEnd() {
		return nil, u.Data.Errorf(".debug_info", off, "a type reference names the end of a list of entries")
	}
	t := &Type{u: u, off: off, tag: e.Tag(), Size: -1}
	var name dw.Value
	var enc uint64
	declared := false // its definition is in a type unit
	err = e.Attrs(func(a dw.Attr, v dw.Value) {
		switch a {
		case dw.AttrName:
			name = v
		case dw.AttrByteSize:
			if v.IsConstant() && v.U < 1<<40 {
				t.Size = int64(v.U)
			}
		case dw.AttrBitSize:
			if t.Size < 0 && v.IsConstant() && v.U < 1<<40 {
				t.Size = int64((v.U + 7) / 8)
			}
		case dw.AttrEncoding:
			enc = v.U
		case dw.AttrCallingConv:
			t.byReference, t.byValue = v.U == dw.CallByReference, v.U == dw.CallByValue
		case dw.AttrType:
			if !declared {
				t.elem = v
			}
		case dw.AttrSignature:
			t.elem, declared = v, true
		case dw.AttrDeclaration:
			if v.U != 0 {
				t.Size = -1
			}
		}
	})
	if err != nil {
		return nil, err
	}
	t.Name = u.Text(name)
	switch t.tag {
	case dw.TagBaseType:
		switch enc {
		case dw.EncBoolean:
			t.Kind = TypeBool
		case dw.EncSigned:
			t.Kind, t.Signed = TypeInt, true
		case dw.EncSignedChar:
			t.Kind, t.Signed = TypeChar, true
		case dw.EncUnsignedChar, dw.EncUTF:
			t.Kind = TypeChar
		case dw.EncUnsigned, dw.EncAddress:
			t.Kind = TypeInt
		case dw.EncFloat:
			t.Kind = TypeFloat
		case dw.EncComplexFloat:
			t.Kind = TypeComplex
		default:
			t.Kind = TypeOther
		}
	case dw.TagEnumerationType:
		t.Kind = TypeEnum
		t.Signed, err = t.enumSigned(e, depth)
	case dw.TagPointerType, dw.TagReferenceType, dw.TagRvalueRefType:
		t.Kind = TypePointer
		if t.Size < 0 {
			t.Size = int64(u.AddrSize)
		}
	case dw.TagPtrToMember:
		// Itanium C++ ABI, section 2.3: an offset, or for a function an address or an index
		// and an offset.
		if t.Size < 0 {
			t.Size = int64(u.AddrSize)
			if el, err := u.typeIn(t.elem, depth+1); err == nil && el.Kind == TypeFunc {
				t.Size *= 2
			}
		}
		t.Kind, t.Signed = TypeMemberPointer, true
	case dw.TagStructType:
		t.Kind = TypeStruct
	case dw.TagClassType, dw.TagInterfaceType:
		t.Kind = TypeClass
	case dw.TagUnionType:
		t.Kind = TypeUnion
	case dw.TagArrayType:
		t.Kind = TypeArray
		if t.Size < 0 {
			t.Size, err = t.arraySize(e, depth)
		}
	case dw.TagSubroutineType:
		t.Kind = TypeFunc
	case dw.TagTypedef, dw.TagTemplateAlias:
		t.Kind = TypeTypedef
	case dw.TagConstType, dw.TagVolatileType, dw.TagRestrictType, dw.TagAtomicType:
		t.Kind = TypeQualified
	case dw.TagUnspecifiedType:
		t.Kind = TypeVoid
	default:
		t.Kind = TypeOther
	}
	return t, err
}

// enumSigned reports whether an enumeration is signed. GCC gives the underlying type;
// otherwise a negative enumerator shows it.
func (t *Type) enumSigned(e dw.Entry, depth int) (bool, error) {
	if t.elem.Form != 0 {
		el, err := t.u.typeIn(t.elem, depth+1)
		if err != nil {
			return false, err
		}
		el, err = el.resolve(depth + 1)
		if err != nil {
			return false, err
		}
		return el.Signed, nil
	}
	signed := false
	err := e.Children(func(c dw.Entry) (bool, error) {
		return !signed, c.Attrs(func(a dw.Attr, v dw.Value) {
			if a == dw.AttrConstValue && (v.Form == dw.FormSdata || v.Form == dw.FormImplicitConst) && int64(v.U) < 0 {
				signed = true
			}
		})
	})
	return signed, err
}

// arraySize returns the size of an array in bytes, or -1 if it is unknown.
func (t *Type) arraySize(e dw.Entry, depth int) (int64, error) {
	el, err := t.u.typeIn(t.elem, depth+1)
	if err != nil {
		return -1, err
	}
	size := el.Size
	if size < 0 {
		if el, err = el.resolve(depth + 1); err != nil {
			return -1, err
		}
		if size = el.Size; size < 0 {
			return -1, nil
		}
	}
	dims, err := t.dims(e)
	if err != nil {
		return -1, err
	}
	for _, n := range dims {
		if n < 0 || n != 0 && size > 1<<40/n {
			return -1, nil
		}
		size *= n
	}
	if len(dims) == 0 {
		return -1, nil
	}
	return size, nil
}

// dims returns the number of elements in each dimension, or -1 if it is unknown.
func (t *Type) dims(e dw.Entry) ([]int64, error) {
	var dims []int64
	err := e.Children(func(c dw.Entry) (bool, error) {
		if c.Tag() != dw.TagSubrangeType {
			return true, nil
		}
		n := int64(-1)
		err := c.Attrs(func(a dw.Attr, v dw.Value) {
			switch {
			case a == dw.AttrCount && v.IsConstant() && v.U < 1<<40:
				n = int64(v.U)
			case a == dw.AttrUpperBound && v.IsConstant() && v.U < 1<<40:
				n = int64(v.U) + 1
			}
		})
		dims = append(dims, n)
		return len(dims) < maxTypeDepth, err
	})
	return dims[min(t.skip, len(dims)):], err
}

// Elem returns the type that a type is made of: what a pointer points to, an array's
// element, what a typedef or a qualifier applies to, a function's result, or an
// enumeration's underlying type.
func (t *Type) Elem() (*Type, error) {
	if t.to != nil {
		return t.to, nil
	}
	if t.u == nil && t.b == nil {
		return voidType, nil
	}
	var el *Type
	err := t.guard(func() (err error) {
		el, err = t.elemAt(0)
		return err
	})
	return el, err
}

// elemAt is Elem at a recursion depth.
func (t *Type) elemAt(depth int) (*Type, error) {
	if t.b != nil {
		return t.b.typeIn(t.made, depth)
	}
	return t.u.typeIn(t.elem, depth)
}

// guard turns a fault in the image's mapping into an error. Guards nest, so methods that
// call guard may call each other.
func (t *Type) guard(f func() error) error {
	switch {
	case t.b != nil:
		return t.b.img.guard(f)
	case t.u == nil:
		return f()
	}
	return t.u.img.guard(f)
}

// children calls f for the entries below a type's own, until it returns false.
func (t *Type) children(f func(c dw.Entry) (more bool, err error)) error {
	return t.guard(func() error {
		e, err := t.u.Entry(t.off)
		if err != nil {
			return err
		}
		return e.Children(f)
	})
}

// Resolve returns the type without typedefs and qualifiers.
func (t *Type) Resolve() (*Type, error) {
	if r := t.real.Load(); r != nil {
		return r, nil
	}
	var r *Type
	err := t.guard(func() (err error) {
		r, err = t.resolve(0)
		return err
	})
	return r, err
}

func (t *Type) resolve(depth int) (*Type, error) {
	if r := t.real.Load(); r != nil {
		return r, nil
	}
	r := t
	for range maxTypeDepth {
		named := r.Kind == TypeTypedef || r.Kind == TypeQualified
		if elsewhere := (isRecord(r) || r.Kind == TypeEnum) && r.elem.Form == dw.FormRefSig8; !named && !elsewhere {
			t.real.Store(r)
			return r, nil
		}
		next, err := r.elemAt(depth)
		if err != nil {
			return nil, err
		}
		r = next
	}
	if t.b != nil {
		return nil, t.b.errorf(&btf.Error{Msg: "typedefs that do not end"})
	}
	return nil, t.u.Data.Errorf(".debug_info", t.off, "typedefs that do not end")
}

// ByteSize returns the size in bytes, through typedefs and qualifiers. It is -1 if
// unknown, as for void, an incomplete structure or an array without a length.
func (t *Type) ByteSize() (int64, error) {
	if t.Size >= 0 {
		return t.Size, nil
	}
	r, err := t.Resolve()
	if err != nil {
		return -1, err
	}
	return r.Size, nil
}

// Count returns the number of elements in an array's first dimension, or -1 if it is
// unknown, and their type, which is an array too if there are more dimensions.
func (t *Type) Count() (el *Type, n int64, err error) {
	switch {
	case t.b != nil:
		el, err = t.Elem()
		return el, t.count, err
	case t.u == nil:
		return voidType, -1, nil
	}
	err = t.guard(func() (err error) {
		if el, err = t.Elem(); err != nil {
			return err
		}
		e, err := t.u.Entry(t.off)
		if err != nil {
			return err
		}
		dims, err := t.dims(e)
		if err != nil {
			return err
		}
		if n = -1; len(dims) > 0 {
			n = dims[0]
		}
		if len(dims) < 2 {
			return nil
		}
		row := &Type{Kind: t.Kind, Name: t.Name, u: t.u, off: t.off, tag: t.tag, elem: t.elem, skip: t.skip + 1}
		el = row
		row.Size, err = row.arraySize(e, 0)
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	return el, n, nil
}

// Declared returns where the type is declared. The file's path is relative if it is below
// the compilation directory, and "" if the debug information does not say.
func (t *Type) Declared() (file string, line int, err error) {
	if t.u == nil {
		return "", 0, nil
	}
	err = t.u.img.guard(func() error {
		e, err := t.u.Entry(t.off)
		if err != nil {
			return err
		}
		return e.Attrs(func(a dw.Attr, v dw.Value) {
			switch a {
			case dw.AttrDeclFile:
				file = t.u.File(v.U)
			case dw.AttrDeclLine:
				line = int(v.U)
			}
		})
	})
	return file, line, err
}

// enumeratorOf reads an enumerator.
func enumeratorOf(c dw.Entry) (name dw.Value, v int64, err error) {
	err = c.Attrs(func(a dw.Attr, x dw.Value) {
		switch a {
		case dw.AttrName:
			name = x
		case dw.AttrConstValue:
			v = int64(x.U)
			switch x.Form {
			case dw.FormData1:
				v = int64(int8(x.U))
			case dw.FormData2:
				v = int64(int16(x.U))
			case dw.FormData4:
				v = int64(int32(x.U))
			}
		}
	})
	return name, v, err
}

// Enumerator returns the name of an enumeration's value, or "" if it has none.
func (t *Type) Enumerator(n int64) (name string, err error) {
	if t.Kind != TypeEnum {
		return "", nil
	}
	unused := 64 - 8*min(max(t.Size, 1), 8)
	if t.b != nil {
		err = t.guard(func() error {
			var failed error
			err := t.b.enumerators(t.id, func(_ func(string) bool, text func() (string, error), v int64) bool {
				if uint64(v^n)<<unused == 0 {
					name, failed = text()
					return false
				}
				return true
			})
			return cmp.Or(err, failed)
		})
		return name, err
	}
	err = t.children(func(c dw.Entry) (bool, error) {
		text, v, err := enumeratorOf(c)
		// Compare only the type's own bits: a short form may lack the sign extension.
		if err == nil && uint64(v^n)<<unused == 0 {
			name = t.u.Text(text)
		}
		return name == "", err
	})
	return name, err
}

// Enumerator is one of an enumeration's values.
type Enumerator struct {
	Name  string
	Value int64
}

// maxEnumerators bounds the values of one enumeration.
const maxEnumerators = 1 << 16

// Enumerators returns an enumeration's values in the order of their declarations. Other types have none.
func (t *Type) Enumerators() (out []Enumerator, err error) {
	if t.Kind != TypeEnum {
		return nil, nil
	}
	err = t.children(func(c dw.Entry) (bool, error) {
		if c.Tag() != dw.TagEnumerator {
			return true, nil
		}
		text, v, err := enumeratorOf(c)
		out = append(out, Enumerator{t.u.Text(text), v})
		return len(out) < maxEnumerators, err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
