package resolve

import (
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/types"
)

// Made asks what registers hold, and what those held that were stored to a slot of the frame. Code that is not optimized stores there what it passes, however that was made.
func (e *evidence) Made() (bool, error) {
	memory := e.v.Loc.Kind == loc.KindMemory
	var registers []uint64
	e.v.Loc.Exprs(func(x *loc.Expr) {
		if x.Op == ops.Reg && !memory {
			registers = append(registers, x.K)
		}
	})
	if len(registers) == 0 && !memory || memory && !e.s.U.Body.Lists() {
		return false, nil
	}
	c, err := e.ev.codeOf(e.s)
	if err != nil {
		return false, err
	}
	t, err := e.v.Type.Resolve()
	points := err == nil && t.Kind == types.Pointer
	made := func(r, at uint64) bool {
		computes, offset := c.Held().Computes(r, at)
		return computes && (!offset || !points) // the address of a member is what callers pass
	}
	if memory {
		size, err := e.v.Type.ByteSize()
		if err != nil || size < 1 || size > 8 {
			return false, nil //nolint:nilerr // the type is asked for elsewhere
		}
		stored := false
		e.storedFrom(c, size, func(r, at uint64) { stored = stored || made(r, at) })
		return stored, nil
	}
	return slices.ContainsFunc(registers, func(r uint64) bool { return made(r, e.s.At.Addr) }), nil
}
