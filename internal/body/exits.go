package body

import (
	"fmt"

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
	known, err := c.Unit.Image.patched()
	if err != nil {
		return o, err
	}
	start, g := c.Bodies[0].Start, c.Graph
	second, two := c.Unit.Image.LocalEntry(start)
	for i := range g.Insns {
		in, ok := c.Arch.Next(g.Bytes(int32(i)))
		switch to := g.Insns[i].Addr + uint64(in.Target); {
		case !ok:
			o.Lost = true
		case in.Call:
		case in.Branches && (to == start || two && to == second):
			o.Again = true
		case in.Branches && to != known.returns && !dw.Covers(c.Ranges, to):
			o.To = append(o.To, to)
		case in.Lost && g.Insns[i].Kind == flow.Leave:
			o.Lost = true
		}
	}
	return o, nil
}

// Exit is a jump or branch out of a function's code.
type Exit struct{ From, To uint64 }

// Exits returns the branches and jumps that lead out of the code.
func (c *Code) Exits() (out []Exit) {
	for i := range c.Graph.Insns {
		from := c.Graph.Insns[i].Addr
		in, ok := c.Arch.Next(c.Graph.Bytes(int32(i)))
		if to := from + uint64(in.Target); ok && in.Branches && !in.Call && !dw.Covers(c.Ranges, to) {
			out = append(out, Exit{from, to})
		}
	}
	return out
}

// Leave is an instruction at which a function is left.
type Leave struct {
	Addr  uint64 // link-time address
	Jumps bool   // it is a jump to another function, which returns in its place
}

// Leaves returns the instructions at which the function is left. If it may be left at one that may also go on, why says so.
func (c *Code) Leaves() (out []Leave, why string) {
	g := c.Graph
	for i := range g.Insns {
		kind := g.Insns[i].Kind
		if kind != flow.Leave && kind != flow.Quit && kind != flow.Plain {
			continue
		}
		in, ok := c.Arch.Next(g.Bytes(int32(i)))
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
	if c.Graph == nil || c.Why != "" {
		return 0, false
	}
	begin, end, ok := c.Graph.AfterCheck()
	if !ok || c.Graph.Insns[begin].Addr != entry {
		return 0, false
	}
	return c.Graph.Insns[end].Addr, true
}

// BeginsAgain reports whether the function, while it runs, may come back to its first instruction, at a link-time address: the head of a loop,
// which a call of itself at its end may have become. It may if MayRepeat says so of the instruction: most functions begin with what no loop does.
func (u *Unit) BeginsAgain(rec int32, entry uint64) (bool, error) {
	if from, err := u.SourcesOf(rec, entry); err != nil || len(from) == 0 {
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
	if c.Graph == nil {
		return false
	}
	n, ok := c.Graph.At(addr)
	return ok && c.Graph.Paths(c.Graph.Block(int32(n))) > 0
}
