package resolve

import (
	"math/bits"
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/loc"
)

// places are the registers, and the slots of the frame, of which a value is made.
type places struct {
	registers body.Registers
	slots     []body.Slot
	computed  bool // it is more than what one of them has
	known     bool // it is made of nothing else
}

// placesOf returns what an expression reads, where the frame is at a fixed distance from the stack pointer.
func placesOf(e *loc.Expr, stack uint64) (p places) {
	p.known = e != nil && p.read(e, stack)
	// So far from a register is a variable in the frame, or a member: that is passed twice as one is.
	distance := p.known && e.Op == ops.Add && e.A.Op == ops.Reg && e.B.Op == ops.Const
	p.computed = p.known && e.Op != ops.Reg && e.Op != ops.Deref && !distance
	return p
}

func (p *places) read(e *loc.Expr, stack uint64) bool {
	switch e.Op {
	case ops.Reg:
		p.registers |= 1 << min(e.K, body.Followed)
		return e.K != stack && e.K < body.Followed
	case ops.Deref:
		n := len(p.slots)
		p.slots = slotAt(p.slots, e.A, int64(e.Size))
		return len(p.slots) > n && p.slots[n].Base == stack
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

// has reports whether others have something in common with these.
func (p *places) has(o places) bool {
	return p.registers&o.registers != 0 || slices.ContainsFunc(o.slots, func(m body.Slot) bool {
		return slices.ContainsFunc(p.slots, m.Overlaps)
	})
}

// written reports whether an instruction writes one of them. Memory that is not at a fixed distance from the slots' register is other memory.
func (p *places) written(c *body.Code, at int32) (wrote, known bool) {
	arch, code := c.Arch, c.Graph.Bytes(at)
	if in, ok := arch.Next(code); ok && (in.Branches || in.Nop || in.Call) {
		return false, true
	}
	w, known := arch.Writes(code)
	if !known || p.registers&w.Registers != 0 {
		return known, known
	}
	for _, m := range p.slots {
		if w.Registers.Has(m.Base) {
			return true, true
		}
		if o, _, ok := arch.Operand(code); ok && w.Memory && o.Overlaps(m) {
			return true, true
		}
	}
	return false, true
}

// copied returns from where an instruction copies a number, or lower bits of one. ok is false if it does something else.
func copied(c *body.Code, at int32) (from places, ok bool) {
	arch, code := c.Arch, c.Graph.Bytes(at)
	reads, w, known := arch.Accesses(code)
	m, stores, slot := arch.Operand(code)
	switch {
	case !known:
		return from, false
	case stores:
		from.registers = reads &^ (1 << m.Base)
		return from, from.registers.One()
	case slot && w.Registers.One() && reads == 1<<m.Base:
		from.slots = []body.Slot{m}
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
	from.registers = 1 << register
	return from, ok
}
