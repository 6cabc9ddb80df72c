package held

// Spent reports whether instructions of a set, in straight code from a link-time address on, need all of so many lower bits of the number that a register holds there: a
// branch that compares them, or a store of them that is not to the frame, where a number is only kept. Of a number that another one is made of nothing is known: its upper
// bits may be lost on the way.
func (h *Registers) Spent(register, at uint64, bits uint8, such func(insn int32) bool) bool {
	s, block, ok := h.stateAt(at)
	if !ok {
		return false
	}
	v, ok := s.Register(register)
	n, is := h.graph.At(at)
	if !ok || !is || bits == 0 {
		return false
	}
	b, compared := &h.graph.Blocks[block], false
	for i := int32(n); i < b.Last; i++ {
		in := &h.graph.Insns[i]
		was, stores := s.Compares(v, bits), s.Stores()
		s.Step(h.graph.Bytes(i), in.Addr)
		switch {
		case such(i) && s.Stores() != stores && s.Stored(v, bits):
			return true
		case !s.Compares(v, bits):
			compared = false
		case !was:
			compared = such(i)
		}
	}
	return compared && len(b.Succs) == 2
}
