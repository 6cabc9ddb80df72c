package argument

import (
	"strings"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/compute"
	"github.com/bpfprologue/bpfprologue/internal/syntax"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/prologue"
	"github.com/bpfprologue/bpfprologue/types"
)

// sliceTypes are the types of Go and Rust that refer to elements in a row: a prefix of their
// names, the members that lead to the address of the first one, and to their number.
var sliceTypes = []struct {
	prefix        string
	first, length []string
}{
	{"[]", []string{"array"}, []string{"len"}},
	{"&[", []string{"data_ptr"}, []string{"length"}},
	{"&mut [", []string{"data_ptr"}, []string{"length"}},
	{"Box<[", []string{"data_ptr"}, []string{"length"}},
	{"Vec<", []string{"buf", "inner", "ptr", "pointer", "pointer"}, []string{"len"}},
	{"Vec<", []string{"buf", "ptr", "pointer", "pointer"}, []string{"len"}},
}

// slice makes the argument the elements that a slice refers to. ok is false for other types.
func (a *argument) slice(t *types.Type) (ok bool, err error) {
	first, length, el, err := sliceOf(a.variable, t)
	if err != nil || el == nil {
		return false, err
	}
	size, err := el.ByteSize()
	if err != nil || size <= 0 || int(size) > a.MaxBytes {
		return false, err
	}
	whole := a.variable
	switch {
	case !length.Located():
		a.lose(loc.Reason{Code: length.Reason.Code, Detail: "the number of elements is not located"})
	case !first.Located():
		a.lose(first.Reason)
	default:
		a.variable = first
		if a.follow(); a.Loc.Kind != loc.KindMemory {
			a.variable = whole
			return false, nil
		}
		a.variable, a.Reason, a.Length = reached(whole), loc.Reason{}, length.Loc
	}
	a.Kind, a.Size, a.Signed = prologue.KindSlice, int(size), false
	return true, nil
}

// Element returns the type of the elements of a slice.
func Element(v *dwarfloc.Variable) (*types.Type, error) {
	if v.Elements.Kind != loc.KindNone {
		return v.Type, nil
	}
	t, err := v.Type.Resolve()
	if err != nil {
		return nil, err
	}
	_, _, el, err := sliceOf(v, t)
	return el, err
}

// elements makes the argument the elements of a range: as they are, or bytes as a string.
func (a *argument) elements(t *types.Type, o *Options) error {
	v := a.variable
	a.Length, a.MaxBytes, a.Signed = v.Elements, o.StringBytes, false
	switch {
	case a.want.Kind == syntax.TypeString || a.want.Kind == syntax.TypeUString:
		if !character(t) && t.Kind != types.Void {
			a.mismatch("%q is elements of %v, and a string has characters", a.Name, v.Type)
		}
		if a.Kind, a.Size = prologue.KindString, 0; a.want.Kind == syntax.TypeUString {
			a.Kind = prologue.KindUserString
		}
	case a.want.Kind != syntax.TypeNone && a.want.Kind != syntax.TypeBytes:
		a.mismatch("elements of an array have their own type, or string or hex, not %v", a.want)
	case a.Size <= 0 || a.Size > a.MaxBytes:
		a.mismatch("there is no room for elements of %d bytes", a.Size)
	default:
		a.Kind = prologue.KindSlice
	}
	return nil
}

// sliceOf returns the pointer to a slice's elements, their number and their type; el is nil
// if t is no slice. Since Rust 1.82 a Vec has a pointer to u8; its parameter T is the type of
// the elements.
func sliceOf(v *dwarfloc.Variable, t *types.Type) (first, length *dwarfloc.Variable, el *types.Type, err error) {
	for i := range sliceTypes {
		x := &sliceTypes[i]
		if !strings.HasPrefix(unqualified(t.Name), x.prefix) {
			continue
		}
		if first, err = compute.Follow(v, steps(x.first)); err != nil {
			return nil, nil, nil, err
		}
		if length, err = compute.Follow(v, steps(x.length)); err != nil {
			return nil, nil, nil, err
		}
		if first.Wrong != nil || length.Wrong != nil {
			continue
		}
		if is, err := isLength(length); err != nil || !is {
			return nil, nil, nil, err
		}
		p, err := first.Type.Resolve()
		if err != nil || p.Kind != types.Pointer {
			return nil, nil, nil, err
		}
		if el, err = p.Elem(); err != nil {
			return nil, nil, nil, err
		}
		if x.prefix == "Vec<" {
			if el, err = t.Parameter("T"); err != nil {
				return nil, nil, nil, err
			}
		}
		return first, length, el, nil
	}
	return nil, nil, nil, nil
}

// unqualified returns the name of a type without its modules: "Box<[u16]>" for
// "alloc::boxed::Box<[u16]>".
func unqualified(name string) string {
	end := strings.IndexAny(name, "<[&")
	if end < 0 {
		end = len(name)
	}
	if i := strings.LastIndex(name[:end], "::"); i >= 0 {
		return name[i+2:]
	}
	return name
}
