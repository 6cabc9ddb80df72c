package body

import (
	"github.com/bpfprologue/bpfprologue/internal/symbolic"
)

// Which instruction made the number that a register holds, if it is one of a body.

// maker is where a number in a register behind a block is from: an instruction of the block, or a register before it.
type maker struct {
	insn int32 // or -1
	from int8  // or -1
}

// makers follows the instructions of a block up to one, which is left out.
func (c *Code) makers(s *symbolic.State, block, to int32, out *[followed]maker) {
	s.Restart()
	var values [followed]symbolic.Value
	for r := range out {
		out[r] = maker{-1, int8(r)}
		values[r], _ = s.Register(uint64(r))
	}
	for n := c.graph.Blocks[block].First; n < to; n++ {
		s.Step(c.graph.Bytes(n), c.graph.Insns[n].Addr)
		before, was := values, *out
		for r := range out {
			v, _ := s.Register(uint64(r))
			if v == before[r] {
				continue
			}
			values[r], out[r] = v, maker{n, -1}
			for k := range before {
				if before[k] == v {
					out[r] = was[k]
				}
			}
		}
	}
}

// MadeIn reports whether an instruction of a record's body, or of what is inlined into that, may have made the number that a register holds at a
// link-time address, on any path. known is false if the code does not say.
func (c *Code) MadeIn(rec int32, register, at uint64) (made, known bool) {
	i, ok := c.body(rec)
	if !ok || c.Why != "" || register >= followed {
		return false, false
	}
	n, ok := c.graph.At(at)
	if !ok {
		return false, false
	}
	if c.making == nil {
		c.making = make([][followed]maker, len(c.graph.Blocks))
		s := c.arch.State()
		for b := range c.making {
			c.makers(s, int32(b), c.graph.Blocks[b].Last, &c.making[b])
		}
	}
	// For each block, the registers that hold what the body made where it begins.
	blocks, b := c.graph.Blocks, &c.bodies[i]
	in := make([]uint32, len(blocks))
	own := func(m *maker, in uint32) bool {
		if m.insn >= 0 {
			return b.has(c.owner[m.insn])
		}
		return in>>m.from&1 != 0
	}
	work := make([]int32, 0, len(blocks))
	for k := len(blocks) - 1; k >= 0; k-- {
		work = append(work, int32(k))
	}
	for len(work) > 0 {
		k := work[len(work)-1]
		work = work[:len(work)-1]
		out := uint32(0)
		for r := range c.making[k] {
			if own(&c.making[k][r], in[k]) {
				out |= 1 << r
			}
		}
		for _, to := range blocks[k].Succs {
			if in[to]|out != in[to] {
				in[to] |= out
				work = append(work, to)
			}
		}
	}
	var here [followed]maker
	block := c.graph.Block(int32(n))
	c.makers(c.arch.State(), block, int32(n), &here)
	return own(&here[register], in[block]), true
}
