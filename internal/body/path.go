package body

import "github.com/bpfprologue/bpfprologue/internal/insn"

// State is what places hold on a path through the code.
type State = insn.State

// Number is what a place holds there.
type Number = insn.Number

// Leading returns the link-time address where the straight code begins that leads to an instruction: the beginning of the basic block
// that has the instruction before it. ok is false if that is not known, or if execution may come from elsewhere too.
func (c *Code) Leading(to uint64) (from uint64, ok bool) {
	n, ok := c.leads(to)
	if !ok {
		return 0, false
	}
	return c.graph.Insns[c.graph.Blocks[c.graph.Block(n)].First].Addr, true
}

// leads returns the instruction from which alone execution comes to another.
func (c *Code) leads(to uint64) (before int32, ok bool) {
	if c.Why != "" {
		return 0, false
	}
	at, ok := c.graph.At(to)
	if !ok {
		return 0, false
	}
	return c.graph.OnlyBefore(int32(at))
}

// Follow follows the straight code that leads to an instruction, from another on that is in it. f is called with the state at both. ok is
// false if that is not known.
func (c *Code) Follow(from, to uint64, f func(s *State)) (ok bool) {
	last, ok := c.leads(to)
	if !ok {
		return false
	}
	first, ok := c.graph.At(from)
	if !ok || int32(first) > last || c.graph.Block(int32(first)) != c.graph.Block(last) {
		return false
	}
	s, ok := c.arch.State()
	if !ok {
		return false
	}
	f(s)
	for n := int32(first); n <= last; n++ {
		s.Step(c.graph.Bytes(n), c.graph.Insns[n].Addr)
	}
	f(s)
	return true
}

// Computes reports whether an instruction of the straight code that leads to another computes the number that a register holds there.
// known is false if the code is not followed, or comes together from several sides.
func (c *Code) Computes(register uint64, at uint64) (computes, known bool) {
	from, ok := c.Leading(at)
	if !ok {
		return false, false
	}
	end := false
	known = c.Follow(from, at, func(s *State) {
		if n, ok := s.Register(register); ok && end {
			computes = s.Computes(n)
		}
		end = true
	})
	return computes, known
}
