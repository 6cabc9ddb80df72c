package body

import (
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/flow"
	"github.com/bpfprologue/bpfprologue/internal/image"
	"github.com/bpfprologue/bpfprologue/internal/insn"
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

// BeginsAgain reports whether the function, while it runs, may come back to its first instruction, at a link-time address: the head of a loop,
// which a call of itself at its end may have become. It may if MayRepeat says so of the instruction: most functions begin with what no loop does.
func (u *Unit) BeginsAgain(rec int32, entry uint64) (bool, error) {
	if from, err := u.sourcesOf(insn.For(u.Image.Instructions()), rec, entry); err != nil || len(from) == 0 {
		return false, err
	}
	c, err := u.InstructionsIn(new(Code), rec)
	return err == nil && c.leadsTo(entry), err
}

// BeginsAgainAlone is BeginsAgain of a function that Alone follows.
func BeginsAgainAlone(f *image.File, parts []dw.Range, entry uint64) bool {
	return MayRepeat(f, entry) && Alone(f, parts).leadsTo(entry)
}

// MayRepeat reports whether a loop may begin with the instruction at a function's entry: that is no call, neither a mark of where jumps may lead
// nor room for what is patched in, and does not change the stack pointer.
func MayRepeat(f *image.File, entry uint64) bool {
	arch := insn.For(f.Instructions())
	if arch == nil {
		return false
	}
	code, err := instruction(f, entry)
	in, ok := arch.Next(code)
	if err != nil || !ok || in.Nop || in.Call {
		return false
	}
	w, ok := arch.Writes(code)
	return ok && !w.Registers.Has(uint64(f.Arch().SP))
}

// leadsTo reports whether a branch or a jump of the function leads to an instruction.
func (c *Code) leadsTo(addr uint64) bool {
	if c.graph == nil {
		return false
	}
	n, ok := c.graph.At(addr)
	return ok && c.graph.Paths(c.graph.Block(int32(n))) > 0
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

// Spares reports whether no instruction of the function writes a register. What the function calls may.
func (c *Code) Spares(register uint64) bool {
	w := c.Changes()
	return w.Known && !c.mayPatch && register < followed && !w.Registers.Has(register)
}

// CallsTo returns the link-time addresses of what the function calls. known is false if it also calls what a register or memory says, or if its
// code is not known.
func (c *Code) CallsTo() (to []uint64, known bool) {
	known = c.Changes().Known
	if !known || !c.changes.Calls {
		return nil, known
	}
	for i := range c.graph.Insns {
		in, ok := c.arch.Next(c.graph.Bytes(int32(i)))
		if !ok || in.Call && in.Target == 0 {
			return nil, false
		}
		if in.Call {
			to = append(to, c.graph.Insns[i].Addr+uint64(in.Target))
		}
	}
	slices.Sort(to)
	return slices.Compact(to), true
}
