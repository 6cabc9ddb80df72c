package body

import "github.com/bpfprologue/bpfprologue/internal/symbolic"

// State is what places hold on a path through the code.
type State = symbolic.State

// Number is what a place holds there.
type Number = symbolic.Value

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
	s := c.arch.State()
	f(s)
	for n := int32(first); n <= last; n++ {
		s.Step(c.graph.Bytes(n), c.graph.Insns[n].Addr)
	}
	f(s)
	return true
}
