package body

import "github.com/bpfprologue/bpfprologue/internal/flow"

// Leave is an instruction at which a function is left.
type Leave struct {
	Addr  uint64 // link-time address
	Jumps bool   // it is a jump to another function, which returns in its place
}

// Leaves returns the instructions at which the function is left.
func (c *Code) Leaves() (out []Leave) {
	for i := range c.graph.Insns {
		if c.graph.Insns[i].Kind != flow.Leave {
			continue
		}
		in, ok := c.arch.Next(c.graph.Bytes(int32(i)))
		out = append(out, Leave{c.graph.Insns[i].Addr, ok && (in.Branches || in.Lost)})
	}
	return out
}

// AfterCheck returns the link-time address after a check of the stack at the function's entry, which leads back to the
// entry when the stack has grown: Go's compiler begins functions so.
func (c *Code) AfterCheck(entry uint64) (addr uint64, ok bool) {
	if c.graph == nil || c.Why != "" {
		return 0, false
	}
	begin, end, ok := c.graph.AfterCheck()
	if !ok || c.graph.Insns[begin].Addr != entry {
		return 0, false
	}
	return c.graph.Insns[end].Addr, true
}
