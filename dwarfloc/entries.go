package dwarfloc

import (
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/index"
)

// eachOrigin calls take, if not nil, with the attributes of an entry, then with those of its
// origin, and so on, while more, if not nil, returns true. It returns the last entry read.
func eachOrigin(e dw.Entry, take func(dw.Attr, dw.Value), more func() bool) (dw.Entry, error) {
	for range index.MaxOrigins {
		var origin dw.Value
		err := e.Attrs(func(a dw.Attr, v dw.Value) {
			if a == dw.AttrAbstractOrigin || a == dw.AttrSpecification {
				origin = v
			}
			if take != nil {
				take(a, v)
			}
		})
		if err != nil || origin.Form == 0 || more != nil && !more() {
			return e, err
		}
		if e, err = e.Unit.Target(origin); err != nil {
			return e, err
		}
	}
	return e, nil
}

// eachParam calls f with each formal parameter of a function's entry, as it is described
// there, until f returns false.
func (img *Image) eachParam(e dw.Entry, f func(x *varEntry) (more bool, err error)) error {
	return e.Children(func(c dw.Entry) (bool, error) {
		if c.Tag() != dw.TagFormalParameter {
			return true, nil
		}
		x, err := img.of(c.Unit).readVar(c)
		if err != nil {
			return false, err
		}
		return f(&x)
	})
}
