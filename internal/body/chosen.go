package body

import (
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/flow"
)

// ChosenCopy reports whether an instruction before a link-time address, in code that only goes on at the next one, and in none of some ranges, has chosen between another value
// and what a register has, in a second register that had the same, and none reads the first one any more: it is the second one that the code goes on with. What a call reads is
// not known.
func (c *Code) ChosenCopy(register, at uint64, without []dw.Range) bool {
	if c.Graph == nil || c.Why != "" {
		return false
	}
	n, ok := c.Graph.At(at)
	if !ok {
		return false
	}
	var since Registers
	for i := int32(n) - 1; i >= c.Graph.Blocks[c.Graph.Block(int32(n))].First; i-- {
		code, addr := c.Graph.Bytes(i), c.Graph.Insns[i].Addr
		w, ok := c.Arch.Writes(code)
		if !ok || w.Registers.Has(register) {
			return false
		}
		for r := range uint64(Followed) {
			if w.Registers.Has(r) && !since.Has(r) && c.Arch.Chooses(code, r) && !dw.Covers(without, addr) && c.Held().Alike(register, addr).Has(r) {
				return c.idle(register, int32(n))
			}
		}
		since |= w.Registers
	}
	return false
}

// idle reports whether no instruction reads a register on any path from one on, before it is set. A call sets those that it need not preserve.
func (c *Code) idle(register uint64, from int32) bool {
	g := c.Graph
	kept, result := c.Preserved().Has(register), slices.Contains(c.Unit.Image.Arch().Results, uint16(register))
	return g.AllPaths(g.Block(from), func(b int32) (settled, ok bool) {
		at := max(from, g.Blocks[b].First)
		for from = 0; at < g.Blocks[b].Last; at++ { // a path that comes back begins with the block
			code, kind := g.Bytes(at), g.Insns[at].Kind
			if in, known := c.Arch.Next(code); !known || in.Call && !kept {
				return true, known
			}
			if kind == flow.Leave || kind == flow.Quit {
				return true, !result
			}
			reads, w, known := c.Arch.Accesses(code)
			if known && reads.Has(register) || !known && kind == flow.Plain {
				return true, false
			}
			if w.Registers.Has(register) {
				return true, true
			}
		}
		return len(g.Blocks[b].Succs) == 0, true
	})
}
