package types

import (
	"sync"

	"github.com/bpfprologue/bpfprologue/internal/dw"
)

// unitTypes are the types of one unit of the debug information: a source of types.
type unitTypes struct {
	*dw.Unit
	all *dwarfTypes

	mu    sync.Mutex
	known map[uint64]*Type  // by the offset of their entry
	whole map[uint64]*Type  // what completeByScope has found, likewise
	names map[uint64]string // of what it only declares; nil before it is asked for
}

func (u *unitTypes) guard(f func() error) error { return u.all.o.Guard(f) }

func (u *unitTypes) elem(t *Type, depth int) (*Type, error) { return u.typeIn(t.made(), depth) }

// made is the reference to the type that a type is made of.
func (t *Type) made() dw.Value { return dw.Value{U: t.elem, Form: t.elemForm} }

func (u *unitTypes) definedElsewhere(t *Type) bool {
	return (t.IsRecord() || t.Kind == Enum) && t.elemForm == dw.FormRefSig8
}

func (u *unitTypes) damaged(t *Type, what string) error {
	return u.Data.Errorf(".debug_info", t.id, "%s", what)
}

// typeIn returns the type that a reference names, at a recursion depth: an array's size needs its element's, and
// in a damaged file these types can form a cycle.
func (u *unitTypes) typeIn(v dw.Value, depth int) (*Type, error) {
	if v.Form == 0 {
		return VoidType, nil
	}
	t, off, err := u.Ref(v)
	if err != nil {
		return nil, err
	}
	if depth > maxDepth {
		return nil, u.Data.Errorf(".debug_info", off, "types are nested more than %d deep", maxDepth)
	}
	return u.all.of(t).typeAt(off, depth)
}

func (u *unitTypes) typeAt(off uint64, depth int) (*Type, error) {
	u.mu.Lock()
	t := u.known[off]
	u.mu.Unlock()
	if t != nil {
		return t, nil
	}
	t, err := u.readType(off, depth)
	if err != nil {
		return nil, err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.known == nil {
		u.known = make(map[uint64]*Type)
	}
	u.known[off] = t
	return t, nil
}

func (u *unitTypes) readType(off uint64, depth int) (*Type, error) {
	e, err := u.Entry(off)
	if err != nil {
		return nil, err
	}
	if e.IsEnd() {
		return nil, u.Data.Errorf(".debug_info", off, "a type reference names the end of a list of entries")
	}
	t := &Type{src: u, id: off, tag: e.Tag(), Size: -1}
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
			t.ByReference, t.ByValue = v.U == dw.CallByReference, v.U == dw.CallByValue
		case dw.AttrType:
			if !declared {
				t.elem, t.elemForm = v.U, v.Form
			}
		case dw.AttrSignature:
			t.elem, t.elemForm, declared = v.U, v.Form, true
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
			t.Kind = Bool
		case dw.EncSigned:
			t.Kind, t.Signed = Int, true
		case dw.EncSignedChar:
			t.Kind, t.Signed = Char, true
		case dw.EncUnsignedChar, dw.EncUTF:
			t.Kind = Char
		case dw.EncUnsigned, dw.EncAddress:
			t.Kind = Int
		case dw.EncFloat:
			t.Kind = Float
		case dw.EncComplexFloat:
			t.Kind = Complex
		default:
			t.Kind = Other
		}
	case dw.TagEnumerationType:
		t.Kind = Enum
		t.Signed, err = u.enumSigned(t, e, depth)
	case dw.TagPointerType, dw.TagReferenceType, dw.TagRvalueRefType:
		t.Kind = Pointer
		if t.Size < 0 {
			t.Size = int64(u.AddrSize)
		}
	case dw.TagPtrToMember:
		// Itanium C++ ABI, section 2.3: an offset, or for a function an address or an index
		// and an offset.
		if t.Size < 0 {
			t.Size = int64(u.AddrSize)
			if el, err := u.typeIn(t.made(), depth+1); err == nil && el.Kind == Func {
				t.Size *= 2
			}
		}
		t.Kind, t.Signed = MemberPointer, true
	case dw.TagStructType:
		t.Kind = Struct
	case dw.TagClassType, dw.TagInterfaceType:
		t.Kind = Class
	case dw.TagUnionType:
		t.Kind = Union
	case dw.TagArrayType:
		t.Kind = Array
		if t.Size < 0 {
			t.Size, err = u.arraySize(t, e, depth)
		}
	case dw.TagSubroutineType:
		t.Kind = Func
	case dw.TagTypedef, dw.TagTemplateAlias:
		t.Kind = Typedef
	case dw.TagConstType, dw.TagVolatileType, dw.TagRestrictType, dw.TagAtomicType:
		t.Kind = Qualified
	case dw.TagUnspecifiedType:
		t.Kind = Void
	default:
		t.Kind = Other
	}
	return t, err
}

// enumSigned reports whether an enumeration is signed. GCC gives the underlying type;
// otherwise a negative enumerator shows it.
func (u *unitTypes) enumSigned(t *Type, e dw.Entry, depth int) (bool, error) {
	if t.elemForm != 0 {
		el, err := u.typeIn(t.made(), depth+1)
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
func (u *unitTypes) arraySize(t *Type, e dw.Entry, depth int) (int64, error) {
	el, err := u.typeIn(t.made(), depth+1)
	if err != nil {
		return -1, err
	}
	dims, err := readDims(e)
	if err != nil {
		return -1, err
	}
	return sizeOf(el, dims, depth+1)
}

// readDims returns the number of elements in each dimension, or -1 if it is unknown.
func readDims(e dw.Entry) ([]int64, error) {
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
		return len(dims) < maxDepth, err
	})
	return dims, err
}

func (u *unitTypes) dimensions(t *Type) ([]int64, error) {
	e, err := u.Entry(t.id)
	if err != nil {
		return nil, err
	}
	dims, err := readDims(e)
	return dims[min(int(t.skip), len(dims)):], err
}
