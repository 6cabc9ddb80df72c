package argument

import (
	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/compute"
	"github.com/bpfprologue/bpfprologue/internal/syntax"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/prologue"
	"github.com/bpfprologue/bpfprologue/types"
)

// slice makes the argument the elements that a slice refers to. ok is false for other types.
func (a *argument) slice(t *types.Type) (ok bool, err error) {
	first, length, el, err := compute.SliceOf(a.variable, t)
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
	t, err := v.Type.Complete()
	if err != nil {
		return nil, err
	}
	_, _, el, err := compute.SliceOf(v, t)
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
