package held

import (
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/symbolic"
)

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

// mostStraight bounds how many blocks are followed that are behind each other alone.
const mostStraight = 8

// StoredBefore reports whether instructions of a set, wherever execution comes from to a link-time address, in code to which only one path leads, have stored so many lower bits of the
// number that a register holds there, and not to the frame.
func (h *Registers) StoredBefore(register, at uint64, bits uint8, such func(insn int32) bool) bool {
	n, ok := h.graph.At(at)
	if !ok {
		return false
	}
	var stored []symbolic.Value
	stores := int32(0)
	s, _ := h.stepTo(int32(n), func(s *symbolic.State, i int32) {
		if v, written, ok := s.Written(); s.Stores() != stores && ok && written >= bits && such(i) {
			stored = append(stored, s.Low(v, bits))
		}
		stores = s.Stores()
	})
	v, ok := s.Register(register)
	return ok && slices.Contains(stored, s.Low(v, bits))
}

// straightTo returns the blocks of the code to which only one path leads, up to an instruction.
func (h *Registers) straightTo(n int32) []int32 {
	straight := []int32{h.graph.Block(n)}
	for len(straight) < mostStraight {
		before, ok := h.graph.OnlyBefore(h.graph.Blocks[straight[0]].First)
		if !ok || slices.Contains(straight, h.graph.Block(before)) {
			break
		}
		straight = slices.Insert(straight, 0, h.graph.Block(before))
	}
	return straight
}
