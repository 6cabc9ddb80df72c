package resolve

import (
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/types"
)

// number is what a register has at a link-time address.
type number struct{ register, at uint64 }

// Made asks what registers hold, and what those held that were stored to a slot of the frame. Code that is not optimized stores there what it passes, however that was made.
func (e *evidence) Made() (bool, error) {
	memory := e.v.Loc.Kind == loc.KindMemory
	if memory && !e.s.U.Body.Lists() {
		return false, nil
	}
	c, err := e.ev.codeOf(e.s)
	if err != nil {
		return false, err
	}
	var of []number
	if size, err := e.v.Type.ByteSize(); memory && err == nil && size > 0 && size <= 8 {
		e.storedFrom(c, size, func(r, at uint64) { of = append(of, number{r, at}) })
	} else if !memory {
		e.v.Loc.Exprs(func(x *loc.Expr) {
			if x.Op == ops.Reg {
				of = append(of, number{x.K, e.s.At.Addr})
			}
		})
	}
	t, err := e.v.Type.Resolve()
	points := err == nil && t.Kind == types.Pointer
	return slices.ContainsFunc(of, func(n number) bool {
		computes, offset := c.Held().Computes(n.register, n.at)
		return computes && (!offset || !points) // the address of a member is what callers pass
	}), nil
}
