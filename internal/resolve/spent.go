package resolve

import (
	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/loc"
)

// inRegister is a number that a register has at the probe.
type inRegister struct {
	*body.Code
	own      int // the body's index
	register uint64
	bits     uint8 // of the number's type
}

// has reports whether an instruction is the body's.
func (r *inRegister) has(insn int32) bool { return r.Bodies[r.own].Has(r.Owner[insn]) }

// inRegister returns the number, if it is one of a known size, and the code is known.
func (e *evidence) inRegister() (r inRegister, ok bool, err error) {
	l := &e.v.Loc
	if l.Kind != loc.KindRegister && l.Kind != loc.KindValue || l.Expr.Op != ops.Reg {
		return r, false, nil
	}
	size, err := e.v.Type.ByteSize()
	if err != nil || size < 1 || size > 8 {
		return r, false, nil //nolint:nilerr // the type is asked for elsewhere
	}
	r.register, r.bits = l.Expr.K, uint8(8*size)
	if r.Code, err = e.ev.codeOf(e.s); err != nil || r.Graph == nil {
		return r, false, err
	}
	r.own, ok = r.BodyOf(e.s.Rec)
	return r, ok, nil
}

// Spent asks for a branch or a store of the body's that needs the whole number. LLVM leaves out an extension or a mask of what is passed if nothing that the
// body computes of it depends on the bits, and what is compared or stored depends on all. Another parameter in the same register may be what is compared.
func (e *evidence) Spent() (bool, error) {
	r, ok, err := e.inRegister()
	if !ok || err != nil || !r.Held().Spent(r.register, e.s.At.Addr, r.bits, r.has) {
		return false, err
	}
	another, err := e.ForAnother()
	return !another, err
}
