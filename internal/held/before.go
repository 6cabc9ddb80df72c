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
	s = h.arch.State()
	straight := h.straightTo(int32(n))
	for _, b := range straight {
		for i := h.graph.Blocks[b].First; i < h.graph.Blocks[b].Last && i != int32(n); i++ {
			s.Step(h.graph.Bytes(i), h.graph.Insns[i].Addr)
		}
	}
	return s, h.graph.Insns[h.graph.Blocks[straight[0]].First].Addr, true
}
