package resolve

import (
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/index"
)

// Outside asks the code around the body.
func (e *evidence) Outside(only bool) (bool, error) {
	r, ok, err := e.inRegister()
	return ok && r.ComputedOutside(r.own, r.register, r.at, only), err
}

// MadeInside asks the code before the probe.
func (e *evidence) MadeInside() (bool, error) {
	r, ok, err := e.inRegister()
	return ok && r.MadeInside(r.own, r.register, r.at), err
}

// KeptOutside looks for a store of the whole number that is not the body's: then it is a variable of others that has no name here, as an element of an array.
func (e *evidence) KeptOutside() (bool, error) {
	r, ok, err := e.inRegister()
	return ok && r.Held().StoredBefore(r.register, r.at, r.bits, func(insn int32) bool { return !r.has(insn) }), err
}

// severalOf is the key of whether a function has several bodies in the unit, by the function's record.
type severalOf int32

// Several counts the bodies in the unit.
func (e *evidence) Several() (bool, error) {
	u, function := e.s.U, e.s.U.Recs[e.s.Rec].Root
	return entries.Remembered(&u.Derived, severalOf(function), func() (bool, error) {
		n := 0
		for i := range u.Recs {
			if r := &u.Recs[i]; r.Root == function && r.Flags&index.HasPC != 0 {
				n++
			}
		}
		return function >= 0 && n > 1, nil
	})
}
