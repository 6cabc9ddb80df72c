package held

import "github.com/bpfprologue/bpfprologue/internal/symbolic"

// inPart says of a register what it can have: what it had where the function begins, or that above so many lower bits.
type inPart struct {
	untouched bool
	bits      uint8 // the fewest that are set, or 0
}

// after returns what follows an instruction, which leaves a number in the register, of so many bits.
func (p inPart) after(s *symbolic.State, register uint64, all uint8) inPart {
	v, _ := s.Register(register)
	if of, bits, is := s.Input(v); is && of == register && bits == all {
		return p
	}
	bits, is := s.IsPart(v)
	switch {
	case !is || !p.untouched && p.bits == 0:
		return inPart{}
	case p.bits > 0:
		bits = min(bits, p.bits)
	}
	return inPart{bits: bits}
}

// SetInPart returns how many lower bits of a register instructions have set at a link-time address, where on some path the others are what it had where the function begins,
// or 0. "setb %r14b" sets 8.
func (h *Registers) SetInPart(register, at uint64) uint8 {
	if h == nil || h.graph.Why != "" || register >= Followed {
		return 0
	}
	site, ok := h.graph.At(at)
	h.passed()
	if entry := h.graph.Entry(); !ok || entry < 0 || !h.parts.Has(register) {
		return 0
	}
	blocks, s := h.graph.Blocks, h.arch.State()
	in := make([]inPart, len(blocks))
	in[h.graph.Entry()].untouched = true
	through := func(b int32, until int32) inPart {
		s.Restart()
		p := in[b]
		for i := blocks[b].First; i < min(until, blocks[b].Last); i++ {
			s.Step(h.graph.Bytes(i), h.graph.Insns[i].Addr)
			p = p.after(s, register, h.arch.Bits())
		}
		return p
	}
	for work := []int32{h.graph.Entry()}; len(work) > 0; {
		b := work[len(work)-1]
		work = work[:len(work)-1]
		p := in[b]
		if of := &h.passes[b]; of.from[register] != int8(register) || of.same[register] != h.arch.Bits() {
			p = through(b, blocks[b].Last)
		}
		for _, to := range blocks[b].Succs {
			is := in[to]
			is.untouched = is.untouched || p.untouched
			if p.bits > 0 && (is.bits == 0 || p.bits < is.bits) {
				is.bits = p.bits
			}
			if is != in[to] {
				in[to] = is
				work = append(work, to)
			}
		}
	}
	return through(h.graph.Block(int32(site)), int32(site)).bits
}
