package body

import (
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/flow"
	"github.com/bpfprologue/bpfprologue/internal/image"
	"github.com/bpfprologue/bpfprologue/internal/insn"
	"github.com/bpfprologue/bpfprologue/internal/noreturn"
)

// Alone follows a function of which nothing is known but where its code is, in parts, the first of which it begins with, and the symbols of
// what it calls. A call that does not return is otherwise known only at the end of a part, and a jump to a part that is not among them leaves
// the function.
func Alone(f *image.File, parts []dw.Range) *Code {
	arch := insn.For(f.Instructions())
	if arch == nil {
		return &Code{Why: "instructions of " + f.Arch().Name + " are not decoded"}
	}
	x := functionIn(f, arch, parts[0].Lo, apart(parts))
	if x == nil {
		return &Code{Why: "the file does not have the function's code"}
	}
	x.Ends = func(addr uint64, in *insn.Insn) (ends, out bool) {
		if in.Target == 0 {
			return false, true
		}
		sym := f.SymbolAt(addr+uint64(in.Target), "")
		if sym == nil || sym.Addr != addr+uint64(in.Target) {
			return false, true
		}
		check, is := noreturn.Functions[sym.Name]
		return is || noreturn.Go(sym.Name), !check
	}
	c := &Code{arch: arch, ranges: apart(parts), graph: new(flow.Graph).Follow(x)}
	c.Why = c.graph.Why
	return c
}

// Exit is a jump or branch out of a function's code.
type Exit struct{ From, To uint64 }

// Exits returns the branches and jumps that lead out of the code.
func (c *Code) Exits() (out []Exit) {
	for i := range c.graph.Insns {
		from := c.graph.Insns[i].Addr
		in, ok := c.arch.Next(c.graph.Bytes(int32(i)))
		if to := from + uint64(in.Target); ok && in.Branches && !in.Call && !dw.Covers(c.ranges, to) {
			out = append(out, Exit{from, to})
		}
	}
	return out
}

// Begins reports whether an instruction that the function runs begins at an address. known is false if the function cannot be followed.
func (c *Code) Begins(addr uint64) (is, known bool) {
	if c.graph == nil || c.Why != "" {
		return false, false
	}
	_, is = c.graph.At(addr)
	return is, true
}
