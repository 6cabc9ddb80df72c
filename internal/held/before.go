package held

import (
	"math/bits"

	"github.com/bpfprologue/bpfprologue/internal/symbolic"
)

// Before follows the code to which only one path leads, up to a link-time address. from is where that begins.
func (h *Registers) Before(at uint64) (s *symbolic.State, from uint64, ok bool) {
	if h == nil {
		return nil, 0, false
	}
	n, ok := h.graph.At(at)
	if !ok {
		return nil, 0, false
	}
	s, first := h.stepTo(int32(n), func(*symbolic.State, int32) {})
	return s, h.graph.Insns[first].Addr, true
}

// stepTo follows the code to which only one path leads, up to an instruction, and calls behind after each one on the way. first is that with which it begins.
func (h *Registers) stepTo(n int32, behind func(s *symbolic.State, insn int32)) (s *symbolic.State, first int32) {
	s = h.arch.State()
	straight := h.straightTo(n)
	for _, b := range straight {
		for i := h.graph.Blocks[b].First; i < h.graph.Blocks[b].Last && i != n; i++ {
			s.Step(h.graph.Bytes(i), h.graph.Insns[i].Addr)
			behind(s, i)
		}
	}
	return s, h.graph.Blocks[straight[0]].First
}

// Choice follows the code to which only one path leads, up to an instruction that chooses, and the straight code behind that, up to a link-time address. of are the numbers between which
// it chooses.
func (h *Registers) Choice(register, chosen, at uint64) (s *symbolic.State, of []symbolic.Value) {
	n, ok := h.graph.At(at)
	from, is := h.graph.At(chosen)
	if !ok || !is {
		return nil, nil
	}
	s, _ = h.stepTo(int32(from), func(*symbolic.State, int32) {})
	code := h.graph.Bytes(int32(from))
	reads, _, _ := h.arch.Accesses(code)
	for reads |= 1 << register; reads != 0; reads &= reads - 1 {
		if v, ok := s.Register(uint64(bits.TrailingZeros64(uint64(reads)))); ok {
			of = append(of, v)
		}
	}
	if m, _, is := h.arch.Operand(code); is {
		if v, ok := s.Register(m.Base); ok {
			of = append(of, s.Load(s.Plus(v, s.Constant(uint64(m.Off)), 1), uint8(8*m.Size)))
		}
	}
	for i := from; i < n; i++ {
		s.Step(h.graph.Bytes(int32(i)), h.graph.Insns[i].Addr)
	}
	return s, of
}
