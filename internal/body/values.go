package body

import (
	"github.com/bpfprologue/bpfprologue/internal/insn"
	"github.com/bpfprologue/bpfprologue/internal/symbolic"
)

// What registers hold where blocks begin, joined over all paths from the function's entry, to a fixed point.

// origins says of a function's registers what made the numbers in them: an instruction that computes, or only adds a constant. What
// moves, loads and returns numbers makes none.
type origins struct{ computed, offset insn.Registers }

// passage is what a block does to origins: some registers get new ones, the others those that another register had.
type passage struct {
	made origins
	from [followed]int8 // the register whose number one holds behind the block, or -1
	bits [followed]width
}

// width is how many lower bits of a register may not be 0: so many at most, and no more than another register had.
type width struct {
	bits uint8
	of   int8 // or noOther, or anything
}

const (
	noOther  = -1
	anything = -2 // nothing is known, as of what a call returns
)

func widthOf(s *symbolic.State, v symbolic.Value) width {
	bits, of, inherits := s.Bits(v)
	if !inherits || of >= followed {
		return width{bits, noOther}
	}
	return width{bits, int8(of)}
}

// after returns the width where registers had others before. given is that of what the function is given.
func (w width) after(in *[followed]uint8, given uint8) uint8 {
	switch w.of {
	case noOther:
		return w.bits
	case anything:
		return given
	}
	return min(w.bits, in[w.of])
}

// followed is how many registers are followed, by their DWARF numbers.
const followed = 32

// passages follows each block on its own.
func (c *Code) passages() []passage {
	out := make([]passage, len(c.graph.Blocks))
	s := c.arch.State()
	for b := range out {
		block, p := &c.graph.Blocks[b], &out[b]
		s.Restart()
		for n := block.First; n < block.Last; n++ {
			s.Step(c.graph.Bytes(n), c.graph.Insns[n].Addr)
		}
		for r := range p.from {
			p.from[r] = -1
			n, ok := s.Register(uint64(r))
			if p.bits[r] = (width{64, anything}); ok {
				p.bits[r] = widthOf(s, n)
			}
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

// passed returns what each block does, which is found once.
func (c *Code) passed() []passage {
	if c.passes == nil {
		c.passes = c.passages()
	}
	return c.passes
}

// stateAt follows the block that has an address, up to there. ok is false if no instruction that is reached is at the address.
func (c *Code) stateAt(at uint64) (s *symbolic.State, block int32, ok bool) {
	if c.graph == nil {
		return nil, 0, false
	}
	n, ok := c.graph.At(at)
	if !ok {
		return nil, 0, false
	}
	block = c.graph.Block(int32(n))
	s = c.arch.State()
	for i := c.graph.Blocks[block].First; i < int32(n); i++ {
		s.Step(c.graph.Bytes(i), c.graph.Insns[i].Addr)
	}
	return s, block, true
}

// Bits returns how many lower bits of a register may not be 0 at a link-time address, on any path.
func (c *Code) Bits(register, at uint64) uint8 { return c.bitsOf(register, at, 64) }

// Given reports whether a register has at a link-time address other upper bits than those of a number of 32 because the function was given it, as
// an argument or by a call that returned: nobody says what is there above a number that has fewer bits.
func (c *Code) Given(register, at uint64) bool {
	return c.bitsOf(register, at, 64) > 32 && c.bitsOf(register, at, 32) <= 32
}

// bitsOf is Bits where what the function is given has so many bits.
func (c *Code) bitsOf(register, at uint64, given uint8) uint8 {
	s, block, ok := c.stateAt(at)
	if !ok || register >= followed {
		return 64
	}
	v, ok := s.Register(register)
	if !ok {
		return given
	}
	if c.bits[given/64] == nil {
		c.bits[given/64] = c.findBits(given)
	}
	return widthOf(s, v).after(&c.bits[given/64][block], given)
}

// findBits follows the registers' bits to a fixed point.
func (c *Code) findBits(given uint8) [][followed]uint8 {
	blocks := c.graph.Blocks
	bits := make([][followed]uint8, len(blocks))
	pass := c.passed()
	entry := c.graph.Entry()
	if entry < 0 {
		return bits
	}
	for r := range bits[entry] {
		bits[entry][r] = given
	}
	for work := []int32{entry}; len(work) > 0; {
		b := work[len(work)-1]
		work = work[:len(work)-1]
		for _, to := range blocks[b].Succs {
			changed, in := false, &bits[to]
			for r := range in {
				if out := pass[b].bits[r].after(&bits[b], given); out > in[r] {
					in[r], changed = out, true
				}
			}
			if changed {
				work = append(work, to)
			}
		}
	}
	return bits
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
		pass := c.passed()
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
	s, block, ok := c.stateAt(at)
	if !ok || register >= followed {
		return false, false
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
