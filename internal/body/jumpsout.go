package body

import (
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/flow"
)

// Out is how a function goes on in others without returning: by jumps at its end (tail calls). What it jumps to takes its frame's place,
// and returns to its caller.
type Out struct {
	To    []uint64 // link-time addresses
	Lost  bool     // it also jumps to where a register or memory says, or its code is not known
	Again bool     // it jumps to its own first instruction
}

// JumpsOut returns how the function goes on in others.
func (c *Code) JumpsOut() (o Out, err error) {
	if c.Why != "" {
		return Out{Lost: true}, nil
	}
	known, err := c.u.Image.patched()
	if err != nil {
		return o, err
	}
	start, g := c.bodies[0].start, c.graph
	second, two := c.u.Image.LocalEntry(start)
	for i := range g.Insns {
		in, ok := c.arch.Next(g.Bytes(int32(i)))
		switch to := g.Insns[i].Addr + uint64(in.Target); {
		case !ok:
			o.Lost = true
		case in.Call:
		case in.Branches && (to == start || two && to == second):
			o.Again = true
		case in.Branches && to != known.returns && !dw.Covers(c.ranges, to):
			o.To = append(o.To, to)
		case in.Lost && g.Insns[i].Kind == flow.Leave:
			o.Lost = true
		}
	}
	return o, nil
}

// Changes is what the function's instructions change, and nothing that it calls.
type Changes struct {
	Registers Registers
	Calls     bool
	Known     bool // else there may be more
}

// Changes returns what the function's instructions change, those apart that leave it.
func (c *Code) Changes() Changes {
	if c.changes.read {
		return c.changes.Changes
	}
	c.changes.read = true
	out := &c.changes.Changes
	if out.Known = c.Why == ""; !out.Known {
		return *out
	}
	for i := range c.graph.Insns {
		if c.graph.Insns[i].Kind == flow.Leave {
			continue // what follows is not the function any more
		}
		code := c.graph.Bytes(int32(i))
		in, ok := c.arch.Next(code)
		if ok && !in.Call && (in.Branches || in.Trap || in.Nop || in.Lost) {
			continue // it only goes on elsewhere
		}
		w, known := c.arch.Writes(code)
		out.Known = out.Known && ok && (known || in.Call)
		out.Calls = out.Calls || in.Call
		out.Registers |= w.Registers
	}
	return *out
}

// Keeps reports whether a register has everywhere in the function what it had where that was called: no instruction writes it, and nothing
// is called. GCC's callers rely on it (-fipa-ra).
func (c *Code) Keeps(register uint64) bool {
	w := c.Changes()
	return w.Known && !w.Calls && !c.mayPatch && register < followed && !w.Registers.Has(register)
}
