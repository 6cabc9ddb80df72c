package held

import "github.com/bpfprologue/bpfprologue/internal/symbolic"

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
