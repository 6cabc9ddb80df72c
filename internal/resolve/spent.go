package resolve

import (
	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/madeof"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/loc"
)

// inRegister is a number that a register has at the probe.
type inRegister struct {
	*body.Code
	own      int // the body's index
	register uint64
	at       uint64 // link-time address where it has the number: the probe's, or that of the only instruction that stores it to where it is in the frame
	bits     uint8  // of the number's type
}

// has reports whether an instruction is the body's.
func (r *inRegister) has(insn int32) bool { return r.Bodies[r.own].Has(r.Owner[insn]) }

// inRegister returns the number, if it is one of a known size, and the code is known.
func (e *evidence) inRegister() (r inRegister, ok bool, err error) {
	l := &e.v.Loc
	if l.Kind != loc.KindMemory && (l.Kind != loc.KindRegister && l.Kind != loc.KindValue || l.Expr.Op != ops.Reg) {
		return r, false, nil
	}
	size, err := e.v.Type.ByteSize()
	if err != nil || size < 1 || size > 8 {
		return r, false, nil //nolint:nilerr // the type is asked for elsewhere
	}
	r.register, r.at, r.bits = l.Expr.K, e.s.At.Addr, uint8(8*size)
	if r.Code, err = e.ev.codeOf(e.s); err != nil || r.Graph == nil {
		return r, false, err
	}
	if l.Kind == loc.KindMemory {
		stores := 0
		known := e.storedFrom(r.Code, size, func(register, at uint64) {
			stores, r.register, r.at = stores+1, register, at
		})
		if !known || stores != 1 {
			return r, false, nil
		}
	}
	r.own, ok = r.BodyOf(e.s.Rec)
	return r, ok, nil
}

// storedFrom is body.Code.StoredFrom of the slot that the location is.
func (e *evidence) storedFrom(c *body.Code, size int64, f func(register, at uint64)) (known bool) {
	var few [1]body.Slot
	slot := madeof.SlotAt(few[:0], e.v.Loc.Expr, size)
	return len(slot) == 1 && c.StoredFrom(e.s.At.Addr, slot[0], f)
}

// Spent asks for a branch or a store of the body's that needs the whole number. LLVM leaves out an extension or a mask of what is passed if nothing that the
// body computes of it depends on the bits, and what is compared or stored depends on all. Another parameter in the same register may be what is compared.
// In memory a number has as many bits as its type.
func (e *evidence) Spent() (bool, error) {
	if e.v.Loc.Kind == loc.KindMemory {
		return true, nil
	}
	r, ok, err := e.inRegister()
	if !ok || err != nil || !r.Held().Spent(r.register, r.at, r.bits, r.has) {
		return false, err
	}
	another, err := e.ForAnother()
	return !another, err
}
