package resolve

import (
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/loc"
)

// Spent asks for a branch or a store of the body's that needs the whole number. LLVM leaves out an extension or a mask of what is passed if nothing that the
// body computes of it depends on the bits, and what is compared or stored depends on all. Another parameter in the same register may be what is compared.
func (e *evidence) Spent() (bool, error) {
	l := &e.v.Loc
	if l.Kind != loc.KindRegister && l.Kind != loc.KindValue || l.Expr.Op != ops.Reg {
		return false, nil
	}
	size, err := e.v.Type.ByteSize()
	if err != nil || size < 1 || size > 8 {
		return false, nil //nolint:nilerr // the type is asked for elsewhere
	}
	c, err := e.ev.codeOf(e.s)
	if err != nil || c.Graph == nil {
		return false, err
	}
	i, ok := c.BodyOf(e.s.Rec)
	if !ok || !c.Held().Spent(l.Expr.K, e.s.At.Addr, uint8(8*size), func(insn int32) bool { return c.Bodies[i].Has(c.Owner[insn]) }) {
		return false, nil
	}
	another, err := e.ForAnother()
	return !another, err
}
