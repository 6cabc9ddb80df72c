// Package types says what a type is and how it is spelled, whatever describes it: debug information or BTF.
//
//	t, err := v.Type.Resolve() // without typedefs and qualifiers
//	if t.IsRecord() {
//		m, ok, err := t.Find("f_path")
//		fmt.Println(m.Type, m.BitOffset/8)
//	}
//
// Types come from variables and members (package dwarfloc). What a type is made of is
// read when it is asked for: members, elements and enumerators are not in memory before. A type may be used by several
// goroutines. Once its image is closed, methods return an error that wraps os.ErrClosed for what has not been read.
//
// Debug information and BTF are the two sources. Package dwarfloc makes them.
package types

import (
	"cmp"
	"sync/atomic"

	"github.com/bpfprologue/bpfprologue/internal/dw"
)

// Kind says what values a type has.
//
//   - Void has no values. It stands for a missing DW_AT_type
//   - Int: an integer, signed or unsigned
//   - Bool: a truth value
//   - Char: a character: an integer that is printed as text
//   - Enum: an enumeration: see [Type.Enumerator]
//   - Pointer: an address of an object or a function, C++ references included
//   - Float: a floating-point number
//   - Complex: a complex number: a real and an imaginary part
//   - Struct has members one after another: see [Type.Members]
//   - Union has members in the same place
//   - Class: a struct that the program calls a class
//   - Array has elements of one type: see [Type.Count]
//   - Func: a function, which a pointer can point to
//   - Typedef: another name for a type: see [Type.Resolve]
//   - Qualified: a type that is const, volatile, restrict or _Atomic
//   - MemberPointer: a C++ pointer to a member
//   - Other: any other type, such as a decimal number
type Kind uint8

const (
	// Void has no values. It stands for a missing DW_AT_type.
	Void Kind = iota
	// Int is an integer, signed or unsigned.
	Int
	// Bool is a truth value.
	Bool
	// Char is a character: an integer that is printed as text.
	Char
	// Enum is an enumeration: see [Type.Enumerator].
	Enum
	// Pointer is an address of an object or a function, C++ references included.
	Pointer
	// Float is a floating-point number.
	Float
	// Complex is a complex number: a real and an imaginary part.
	Complex
	// Struct has members one after another: see [Type.Members].
	Struct
	// Union has members in the same place.
	Union
	// Class is a struct that the program calls a class.
	Class
	// Array has elements of one type: see [Type.Count].
	Array
	// Func is a function, which a pointer can point to.
	Func
	// Typedef is another name for a type: see [Type.Resolve].
	Typedef
	// Qualified is a type that is const, volatile, restrict or _Atomic.
	Qualified
	// MemberPointer is a C++ pointer to a member.
	MemberPointer
	// Other is any other type, such as a decimal number.
	Other
)

// Type is a type in the image's debug information. The type that it is made of is
// read by Elem.
type Type struct {
	Name   string // "" for a type without a name of its own
	Size   int64  // bytes, or -1 if unknown; see ByteSize for typedefs
	Kind   Kind
	Signed bool // for integers, characters and enumerations

	// ByValue and ByReference are set if the debug information of a C++ class says how it is passed
	// (DW_AT_calling_convention).
	ByValue, ByReference bool

	// A kernel's units have many types: their order keeps one at 96 bytes.
	plain    bool // in BTF: it is spelled without "struct"
	tag      dw.Tag
	elemForm dw.Form
	skip     int32  // dimensions of an array that have been indexed
	src      source // nil for a type that no image has, such as void
	id       uint64 // for src: the offset of an entry, or a number in BTF
	elem     uint64 // with elemForm, what DW_AT_type or DW_AT_signature has; in BTF a number

	real, next atomic.Pointer[Type]   // cached results of Resolve and Elem; next is set of a pointer that is not in the image
	text       atomic.Pointer[string] // and of String: spelling them made a fifth of all objects that a large answer allocates
}

// source is where a type was read: debug information, or BTF. Each answers for a type of its own.
type source interface {
	// guard runs a function that reads the image: a fault in its mapping becomes an error.
	guard(f func() error) error
	// elem is Type.Elem, at a recursion depth.
	elem(t *Type, depth int) (*Type, error)
	// definedElsewhere reports whether the type only names another one, which defines it.
	definedElsewhere(t *Type) bool
	// complete is Type.Complete for a record without a size.
	complete(t *Type) (*Type, error)
	members(t *Type) ([]Member, error)
	// dimensions returns the number of elements in each dimension of an array, -1 where it is not known.
	dimensions(t *Type) ([]int64, error)
	// enumerators calls f for each value of an enumeration, until f returns false. name is valid in f.
	enumerators(t *Type, f func(name func() (string, error), v int64) (more bool)) error
	variants(t *Type) (*Member, []Variant, error)
	parameter(t *Type, name string) (*Type, error)
	declared(t *Type) (file string, line int, err error)
	// tagged reports whether the language spells "struct" before the name.
	tagged(t *Type) bool
	// memberPointer spells a pointer to a member.
	memberPointer(t *Type, depth int) (prefix, suffix string)
	damaged(t *Type, what string) error
}

// VoidType stands for a missing DW_AT_type.
var VoidType = &Type{Kind: Void, Name: "void", Size: -1}

// maxDepth bounds chains of typedefs, qualifiers and array elements, and how deeply what is made of types nests.
const maxDepth = 64

// Elem returns the type that a type is made of: what a pointer points to, an array's
// element, what a typedef or a qualifier applies to, a function's result, or an
// enumeration's underlying type.
func (t *Type) Elem() (*Type, error) {
	if el := t.next.Load(); el != nil {
		return el, nil
	}
	if t.src == nil {
		return VoidType, nil
	}
	var el *Type
	err := t.guard(func() (err error) {
		el, err = t.src.elem(t, 0)
		return err
	})
	if err == nil {
		t.next.Store(el)
	}
	return el, err
}

// guard runs a function that reads the image that has the type, and turns a fault in the image's mapping into
// an error. Guards nest.
func (t *Type) guard(f func() error) error {
	if t.src == nil {
		return f()
	}
	return t.src.guard(f)
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
	for range maxDepth {
		named := r.Kind == Typedef || r.Kind == Qualified
		if !named && (r.src == nil || !r.src.definedElsewhere(r)) {
			t.real.Store(r)
			return r, nil
		}
		next := r.next.Load()
		if next == nil {
			var err error
			if next, err = r.src.elem(r, depth); err != nil {
				return nil, err
			}
		}
		r = next
	}
	return nil, t.src.damaged(t, "typedefs that do not end")
}

// IsConst reports whether the type, or what a typedef names, is const.
func (t *Type) IsConst() bool {
	for range maxDepth {
		if t.Kind == Qualified && t.tag == dw.TagConstType {
			return true
		}
		if t.Kind != Typedef && t.Kind != Qualified {
			return false
		}
		next, err := t.Elem()
		if err != nil {
			return false
		}
		t = next
	}
	return false
}

// IsRecord reports whether it is a structure, a union or a class.
func (t *Type) IsRecord() bool {
	return t.Kind == Struct || t.Kind == Union || t.Kind == Class
}

// Reference returns the type without typedefs and qualifiers, and whether it is a C++ reference.
func (t *Type) Reference() (r *Type, is bool, err error) {
	if r, err = t.Resolve(); err != nil {
		return nil, false, err
	}
	return r, r.tag == dw.TagReferenceType || r.tag == dw.TagRvalueRefType, nil
}

// ByteSize returns the size in bytes, through typedefs and qualifiers, of a structure that its unit only declares by its
// definition: see Complete. It is -1 if unknown, as for void, an incomplete structure or an array without a length.
func (t *Type) ByteSize() (int64, error) {
	if t.Size >= 0 {
		return t.Size, nil
	}
	r, err := t.Complete()
	if err != nil {
		return -1, err
	}
	return r.Size, nil
}

// Count returns the number of elements in an array's first dimension, or -1 if it is
// unknown, and their type, which is an array too if there are more dimensions.
func (t *Type) Count() (el *Type, n int64, err error) {
	if t.src == nil {
		return VoidType, -1, nil
	}
	err = t.guard(func() (err error) {
		if el, err = t.Elem(); err != nil {
			return err
		}
		dims, err := t.src.dimensions(t)
		if err != nil {
			return err
		}
		if n = -1; len(dims) > 0 {
			n = dims[0]
		}
		if len(dims) < 2 {
			return nil
		}
		row := &Type{Kind: t.Kind, Name: t.Name, src: t.src, id: t.id, tag: t.tag, elem: t.elem, elemForm: t.elemForm, skip: t.skip + 1}
		row.Size, err = sizeOf(el, dims[1:], 0)
		el = row
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	return el, n, nil
}

// sizeOf returns the size in bytes of an array with elements of a type, or -1 if it is unknown.
func sizeOf(el *Type, dims []int64, depth int) (int64, error) {
	size := el.Size
	if size < 0 {
		r, err := el.completed(depth)
		if err != nil {
			return -1, err
		}
		size = r.Size
	}
	if size < 0 || len(dims) == 0 {
		return -1, nil
	}
	for _, n := range dims {
		if n < 0 || n != 0 && size > 1<<40/n {
			return -1, nil
		}
		size *= n
	}
	return size, nil
}

// Complete returns the type without typedefs and qualifiers, as Resolve does, and of a structure, union, class or enumeration that its
// unit only declares the definition: from the first unit of the image, or else of the one that completes its types, that has one. In C++ the
// namespaces and classes around it belong to its name, and definitions of several sizes are none. What no unit defines
// is returned as it is. It is for whole values: what a pointer leads to need not be searched for.
func (t *Type) Complete() (*Type, error) {
	r, err := t.Resolve()
	if err != nil || !r.declaredOnly() {
		return r, err
	}
	return r.definition()
}

// definition is the source's complete in its guard, for Complete alone: there the result would be allocated with each call.
func (t *Type) definition() (full *Type, err error) {
	err = t.guard(func() (err error) {
		full, err = t.src.complete(t)
		return err
	})
	return full, err
}

// completed is Complete at a recursion depth, for a type that has been read inside of guard.
func (t *Type) completed(depth int) (*Type, error) {
	r, err := t.resolve(depth)
	if err != nil || !r.declaredOnly() {
		return r, err
	}
	return r.src.complete(r)
}

// declaredOnly reports whether the type is a record or an enumeration with a name that may be defined elsewhere.
func (t *Type) declaredOnly() bool {
	return t.src != nil && t.Size < 0 && t.Name != "" && (t.IsRecord() || t.Kind == Enum)
}

// Declared returns where the type is declared. The file's path is relative if it is below
// the compilation directory, and "" if the debug information does not say.
func (t *Type) Declared() (file string, line int, err error) {
	if t.src == nil {
		return "", 0, nil
	}
	err = t.guard(func() error {
		file, line, err = t.src.declared(t)
		return err
	})
	return file, line, err
}

// eachEnumerator calls f for each value of an enumeration, until f returns false.
func (t *Type) eachEnumerator(f func(name func() (string, error), v int64) (more bool)) error {
	if t.Kind != Enum || t.src == nil {
		return nil
	}
	return t.guard(func() error { return t.src.enumerators(t, f) })
}

// Enumerator returns the name of an enumeration's value, or "" if it has none.
func (t *Type) Enumerator(n int64) (name string, err error) {
	// Compare only the type's own bits: a short form in the debug information may lack the sign extension.
	unused := 64 - 8*min(max(t.Size, 1), 8)
	var failed error
	err = t.eachEnumerator(func(text func() (string, error), v int64) bool {
		if uint64(v^n)<<unused == 0 {
			name, failed = text()
			return false
		}
		return true
	})
	return name, cmp.Or(err, failed)
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
	var failed error
	err = t.eachEnumerator(func(text func() (string, error), v int64) bool {
		var name string
		if name, failed = text(); failed != nil {
			return false
		}
		out = append(out, Enumerator{name, v})
		return len(out) < maxEnumerators
	})
	if err = cmp.Or(err, failed); err != nil {
		return nil, err
	}
	return out, nil
}

// PointerTo returns the type of a pointer.
func PointerTo(t *Type, size int) *Type {
	p := &Type{Kind: Pointer, Size: int64(size), src: t.src, tag: dw.TagPointerType}
	p.next.Store(t)
	return p
}

// WordType is the type of an address as a number.
var WordType = &Type{Kind: Int, Name: "unsigned long", Size: 8}
