// Package held says what registers hold at an instruction of a function, joined over all paths from its entry, to a fixed point: how many bits, what
// made the number, and which of what the function was called with it is.
package held

import (
	"github.com/bpfprologue/bpfprologue/internal/flow"
	"github.com/bpfprologue/bpfprologue/internal/insn"
	"github.com/bpfprologue/bpfprologue/internal/symbolic"
)

// Registers are those of a function. Each question is answered for all of its code once.
type Registers struct {
	graph *flow.Graph
	arch  *insn.Arch

	passes []passage
	parts  insn.Registers // those of which an instruction sets the lowest bits alone, as they are behind a block
	made   []origins
	bits   [2][][Followed]uint8 // see bitsOf, where what is given has 32 bits, or 64
	copies [][Followed]copied
	away   [Followed]*extensions // see ExtendedAway
}

// Of returns the registers of a function that a graph is of.
func Of(graph *flow.Graph, arch *insn.Arch) *Registers { return &Registers{graph: graph, arch: arch} }

// origins says of a function's registers what made the numbers in them: an instruction that computes, or only adds a constant. What
// moves, loads and returns numbers makes none.
type origins struct{ computed, offset insn.Registers }

// passage is what a block does to origins: some registers get new ones, the others those that another register had.
type passage struct {
	made origins
	from [Followed]int8  // the register whose number one holds behind the block, or -1
	same [Followed]uint8 // and how many lower bits of it
	bits [Followed]width
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
	if !inherits || of >= Followed {
		return width{bits, noOther}
	}
	return width{bits, int8(of)}
}

// after returns the width where registers had others before. given is that of what the function is given.
func (w width) after(in *[Followed]uint8, given uint8) uint8 {
	switch w.of {
	case noOther:
		return w.bits
	case anything:
		return given
	}
	return min(w.bits, in[w.of])
}

// Followed is how many registers are followed, by their DWARF numbers.
const Followed = 32

// passages follows each block on its own.
func (h *Registers) passages() []passage {
	out := make([]passage, len(h.graph.Blocks))
	s := h.arch.State()
	for b := range out {
		block, p := &h.graph.Blocks[b], &out[b]
		s.Restart()
		for n := block.First; n < block.Last; n++ {
			s.Step(h.graph.Bytes(n), h.graph.Insns[n].Addr)
		}
		for r := range p.from {
			p.from[r] = -1
			n, ok := s.Register(uint64(r))
			if _, part := s.IsPart(n); part {
				h.parts |= 1 << r
			}
			if p.bits[r] = (width{64, anything}); ok {
				p.bits[r] = widthOf(s, n)
			}
			switch computes, offset := s.Computes(n); {
			case offset:
				p.made.offset |= 1 << r
			case computes:
				p.made.computed |= 1 << r
			default:
				if of, same, ok := s.Input(n); ok {
					p.from[r], p.same[r] = int8(of), same
				}
			}
		}
	}
	return out
}

// passed returns what each block does, which is found once.
func (h *Registers) passed() []passage {
	if h.passes == nil {
		h.passes = h.passages()
	}
	return h.passes
}

// stateAt follows the block that has an address, up to there. ok is false if no instruction that is reached is at the address.
func (h *Registers) stateAt(at uint64) (s *symbolic.State, block int32, ok bool) {
	if h == nil {
		return nil, 0, false
	}
	n, ok := h.graph.At(at)
	if !ok {
		return nil, 0, false
	}
	block = h.graph.Block(int32(n))
	s = h.arch.State()
	for i := h.graph.Blocks[block].First; i < int32(n); i++ {
		s.Step(h.graph.Bytes(i), h.graph.Insns[i].Addr)
	}
	return s, block, true
}

// Bits returns how many lower bits of a register may not be 0 at a link-time address, on any path.
func (h *Registers) Bits(register, at uint64) uint8 { return h.bitsOf(register, at, 64) }

// Given reports whether a register has at a link-time address other upper bits than those of a number of 32 because the function was given it, as
// an argument or by a call that returned: nobody says what is there above a number that has fewer bits.
func (h *Registers) Given(register, at uint64) bool {
	return h.bitsOf(register, at, 64) > 32 && h.bitsOf(register, at, 32) <= 32
}

// bitsOf is Bits where what the function is given has so many bits.
func (h *Registers) bitsOf(register, at uint64, given uint8) uint8 {
	s, block, ok := h.stateAt(at)
	if !ok || register >= Followed {
		return 64
	}
	v, ok := s.Register(register)
	if !ok {
		return given
	}
	if h.bits[given/64] == nil {
		h.bits[given/64] = h.findBits(given)
	}
	return widthOf(s, v).after(&h.bits[given/64][block], given)
}

// findBits follows the registers' bits to a fixed point.
func (h *Registers) findBits(given uint8) [][Followed]uint8 {
	blocks := h.graph.Blocks
	bits := make([][Followed]uint8, len(blocks))
	pass := h.passed()
	entry := h.graph.Entry()
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
func (h *Registers) origins(block int32) origins {
	if h.made == nil {
		blocks := h.graph.Blocks
		h.made = make([]origins, len(blocks))
		pass := h.passed()
		work := make([]int32, 0, len(blocks))
		for b := len(blocks) - 1; b >= 0; b-- {
			work = append(work, int32(b))
		}
		for len(work) > 0 {
			b := work[len(work)-1]
			work = work[:len(work)-1]
			out := pass[b].behind(h.made[b])
			for _, to := range blocks[b].Succs {
				in := &h.made[to]
				if in.computed|out.computed != in.computed || in.offset|out.offset != in.offset {
					in.computed, in.offset = in.computed|out.computed, in.offset|out.offset
					work = append(work, to)
				}
			}
		}
	}
	return h.made[block]
}

// Computes reports whether an instruction of the function, on any path to a link-time address, computes the number that a register holds
// there, and if it only adds a constant, as the address of a member is made.
func (h *Registers) Computes(register uint64, at uint64) (computes, offset bool) {
	s, block, ok := h.stateAt(at)
	if !ok || register >= Followed {
		return false, false
	}
	holds, _ := s.Register(register)
	if computes, offset = s.Computes(holds); computes {
		return computes, offset
	}
	of, _, ok := s.Input(holds)
	if !ok {
		return false, false
	}
	in := h.origins(block)
	offset = in.offset.Has(of)
	return offset || in.computed.Has(of), offset && !in.computed.Has(of)
}
