package resolve

import (
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/index"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/loc"
)

// Outside asks the code around the body.
func (e *evidence) Outside(only bool) (bool, error) {
	l := &e.v.Loc
	if l.Kind != loc.KindRegister && l.Kind != loc.KindValue || l.Expr.Op != ops.Reg {
		return false, nil
	}
	c, err := e.ev.codeOf(e.s)
	if err != nil {
		return false, err
	}
	i, ok := c.BodyOf(e.s.Rec)
	return ok && c.ComputedOutside(i, l.Expr.K, e.s.At.Addr, only), nil
}

// KeptOutside looks for a store of the whole number that is not the body's: then it is a variable of others that has no name here, as an element of an array.
func (e *evidence) KeptOutside() (bool, error) {
	size, err := e.v.Type.ByteSize()
	l := &e.v.Loc
	if err != nil || size < 1 || size > 8 || l.Kind != loc.KindRegister && l.Kind != loc.KindValue || l.Expr.Op != ops.Reg {
		return false, nil //nolint:nilerr // the type is asked for elsewhere
	}
	c, err := e.ev.codeOf(e.s)
	if err != nil {
		return false, err
	}
	i, ok := c.BodyOf(e.s.Rec)
	return ok && c.Held().StoredBefore(l.Expr.K, e.s.At.Addr, uint8(8*size), func(insn int32) bool { return !c.Bodies[i].Has(c.Owner[insn]) }), nil
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
