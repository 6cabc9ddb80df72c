package body

import "github.com/bpfprologue/bpfprologue/internal/insn"

// What registers hold where blocks begin, joined over all paths from the function's entry, to a fixed point.

// origins says of a function's registers what made the numbers in them: an instruction that computes, or only adds a constant. What
// moves, loads and returns numbers makes none.
type origins struct{ computed, offset insn.Registers }

// passage is what a block does to origins: some registers get new ones, the others those that another register had.
type passage struct {
	made origins
	from [followed]int8 // the register whose number one holds behind the block, or -1
}

// followed is how many registers are followed, by their DWARF numbers.
const followed = 32

// passages follows each block on its own.
func (c *Code) passages() []passage {
	out := make([]passage, len(c.graph.Blocks))
	for b := range out {
		block, p := &c.graph.Blocks[b], &out[b]
		s := c.arch.State()
		for n := block.First; n < block.Last; n++ {
			s.Step(c.graph.Bytes(n), c.graph.Insns[n].Addr)
		}
		for r := range p.from {
			p.from[r] = -1
			n, _ := s.Register(uint64(r))
			switch computes, offset := s.Computes(n); {
			case offset:
				p.made.offset |= 1 << r
			case computes:
				p.made.computed |= 1 << r
			default:
				if of, ok := s.Input(n); ok {
					p.from[r] = int8(of)
				}
			}
		}
	}
	return out
}

// behind returns the origins behind a block.
func (p *passage) behind(in origins) origins {
	out := p.made
	for r, of := range p.from {
		if of >= 0 {
			out.computed |= in.computed >> of & 1 << r
			out.offset |= in.offset >> of & 1 << r
		}
	}
	return out
}

// origins returns what made the numbers that registers hold where a block begins, on any path.
func (c *Code) origins(block int32) origins {
	if c.made == nil {
		blocks := c.graph.Blocks
		c.made = make([]origins, len(blocks))
		pass := c.passages()
		work := make([]int32, 0, len(blocks))
		for b := len(blocks) - 1; b >= 0; b-- {
			work = append(work, int32(b))
		}
		for len(work) > 0 {
			b := work[len(work)-1]
			work = work[:len(work)-1]
			out := pass[b].behind(c.made[b])
			for _, to := range blocks[b].Succs {
				in := &c.made[to]
				if in.computed|out.computed != in.computed || in.offset|out.offset != in.offset {
					in.computed, in.offset = in.computed|out.computed, in.offset|out.offset
					work = append(work, to)
				}
			}
		}
	}
	return c.made[block]
}

// Computes reports whether an instruction of the function, on any path to a link-time address, computes the number that a register holds
// there, and if it only adds a constant, as the address of a member is made.
func (c *Code) Computes(register uint64, at uint64) (computes, offset bool) {
	if c.graph == nil || register >= followed {
		return false, false
	}
	n, ok := c.graph.At(at)
	if !ok {
		return false, false
	}
	block := c.graph.Block(int32(n))
	s := c.arch.State()
	for i := c.graph.Blocks[block].First; i < int32(n); i++ {
		s.Step(c.graph.Bytes(i), c.graph.Insns[i].Addr)
	}
	holds, _ := s.Register(register)
	if computes, offset = s.Computes(holds); computes {
		return computes, offset
	}
	of, ok := s.Input(holds)
	if !ok {
		return false, false
	}
	in := c.origins(block)
	offset = in.offset.Has(of)
	return offset || in.computed.Has(of), offset && !in.computed.Has(of)
}
