package dwarfloc

import (
	"github.com/bpfprologue/bpfprologue/internal/dw"
)

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
