// Package madeof says of which registers, and of which slots of the frame, a value is made, and what instructions do with those.
package madeof

import (
	"math/bits"
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/loc"
)

// Places are the registers, and the slots of the frame, of which a value is made.
type Places struct {
	Registers body.Registers
	Slots     []body.Slot
	Computed  bool // it is more than what one of them has
	Known     bool // it is made of nothing else
}

// Of returns what an expression reads, where the frame is at a fixed distance from the stack pointer.
func Of(e *loc.Expr, stack uint64) (p Places) {
	p.Known = e != nil && p.read(e, stack)
	// So far from a register is a variable in the frame, or a member: that is passed twice as one is.
	distance := p.Known && e.Op == ops.Add && e.A.Op == ops.Reg && e.B.Op == ops.Const
	p.Computed = p.Known && e.Op != ops.Reg && e.Op != ops.Deref && !distance
	return p
}

func (p *Places) read(e *loc.Expr, stack uint64) bool {
	switch e.Op {
	case ops.Reg:
		p.Registers |= 1 << min(e.K, body.Followed)
		return e.K != stack && e.K < body.Followed
	case ops.Deref:
		n := len(p.Slots)
		p.Slots = SlotAt(p.Slots, e.A, int64(e.Size))
		return len(p.Slots) > n && p.Slots[n].Base == stack
	case ops.Caller, ops.Task, ops.Text, ops.Glob:
		return false
	}
	for _, x := range []*loc.Expr{e.A, e.B, e.C} {
		if x != nil && !p.read(x, stack) {
			return false
		}
	}
	return true
}

// Has reports whether others have something in common with these.
func (p *Places) Has(o Places) bool {
	return p.Registers&o.Registers != 0 || slices.ContainsFunc(o.Slots, func(m body.Slot) bool {
		return slices.ContainsFunc(p.Slots, m.Overlaps)
	})
}

// Written reports whether an instruction writes one of them. Memory that is not at a fixed distance from the slots' register is other memory.
func (p *Places) Written(c *body.Code, at int32) (wrote, known bool) {
	arch, code := c.Arch, c.Graph.Bytes(at)
	if in, ok := arch.Next(code); ok && (in.Branches || in.Nop || in.Call) {
		return false, true
	}
	w, known := arch.Writes(code)
	if !known || p.Registers&w.Registers != 0 {
		return known, known
	}
	for _, m := range p.Slots {
		if w.Registers.Has(m.Base) {
			return true, true
		}
		if o, _, ok := arch.Operand(code); ok && w.Memory && o.Overlaps(m) {
			return true, true
		}
	}
	return false, true
}

// Copied returns from where an instruction copies a number, or lower bits of one. ok is false if it does something else.
func Copied(c *body.Code, at int32) (from Places, ok bool) {
	arch, code := c.Arch, c.Graph.Bytes(at)
	reads, w, known := arch.Accesses(code)
	m, stores, slot := arch.Operand(code)
	switch {
	case !known:
		return from, false
	case stores:
		from.Registers = reads &^ (1 << m.Base)
		return from, from.Registers.One()
	case slot && w.Registers.One() && reads == 1<<m.Base:
		from.Slots = []body.Slot{m}
		return from, true
	case slot || w.Memory || !w.Registers.One():
		return from, false
	}
	s := arch.State()
	s.Step(code, 0)
	v, ok := s.Register(uint64(bits.TrailingZeros64(uint64(w.Registers))))
	if !ok {
		return from, false
	}
	register, _, ok := s.Input(v)
	from.Registers = 1 << register
	return from, ok
}

// SlotAt appends the memory at an address if that is a register plus a constant.
func SlotAt(out []body.Slot, e *loc.Expr, size int64) []body.Slot {
	switch {
	case e.Op == ops.Reg:
		return append(out, body.Slot{Base: e.K, Size: size})
	case e.Op == ops.Add && e.A.Op == ops.Reg && e.B.Op == ops.Const:
		return append(out, body.Slot{Base: e.A.K, Off: int64(e.B.K), Size: size})
	}
	return out
}
