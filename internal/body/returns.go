package body

import (
	"fmt"

	"github.com/bpfprologue/bpfprologue/internal/flow"
)

// Leave is an instruction at which a function is left.
type Leave struct {
	Addr  uint64 // link-time address
	Jumps bool   // it is a jump to another function, which returns in its place
}

// Leaves returns the instructions at which the function is left. If it may be left at one that may also go on, why says so.
func (c *Code) Leaves() (out []Leave, why string) {
	g := c.graph
	for i := range g.Insns {
		kind := g.Insns[i].Kind
		if kind != flow.Leave && kind != flow.Quit && kind != flow.Plain {
			continue
		}
		in, ok := c.arch.Next(g.Bytes(int32(i)))
		switch {
		case kind == flow.Leave:
			out = append(out, Leave{g.Insns[i].Addr, ok && (in.Branches || in.Lost)})
		case kind == flow.Quit || ok && in.Branches && !in.Call:
			return nil, fmt.Sprintf("it may end at %#x, under a condition", g.Insns[i].Addr)
		}
	}
	return out, ""
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
