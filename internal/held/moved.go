package held

import (
	"github.com/bpfprologue/bpfprologue/internal/insn"
	"github.com/bpfprologue/bpfprologue/internal/symbolic"
)

// Where a function's instructions move what it was called with.

// copied is what a register holds: so many lower bits of what another one did where the function begins, or nothing of that.
type copied struct {
	of   int8
	bits uint8 // 0 is none
}

// moves returns what registers hold where blocks begin, the same on all paths, which is found once.
func (h *Registers) moves() [][Followed]copied {
	if h.copies != nil {
		return h.copies
	}
	blocks, pass, entry := h.graph.Blocks, h.passed(), h.graph.Entry()
	h.copies = make([][Followed]copied, len(blocks))
	if entry < 0 {
		return h.copies
	}
	for r := range h.copies[entry] {
		h.copies[entry][r] = copied{int8(r), h.arch.Bits()}
	}
	seen := make([]bool, len(blocks))
	seen[entry] = true
	for work := []int32{entry}; len(work) > 0; {
		b := work[len(work)-1]
		work = work[:len(work)-1]
		var out [Followed]copied
		for r, of := range pass[b].from {
			if of >= 0 {
				out[r] = h.copies[b][of]
				out[r].bits = min(out[r].bits, pass[b].same[r])
			}
		}
		for _, to := range blocks[b].Succs {
			in, changed := &h.copies[to], !seen[to]
			if changed {
				*in = out
			}
			for r := range in {
				both := copied{in[r].of, min(in[r].bits, out[r].bits)}
				if in[r].of != out[r].of {
					both = copied{}
				}
				changed = changed || both.bits != in[r].bits
				in[r] = both
			}
			if seen[to] = true; changed {
				work = append(work, to)
			}
		}
	}
	return h.copies
}

// Holds returns a register that has at a link-time address, on all paths, what another one had where the function begins: so many lower bits of it, the most that
// one has.
func (h *Registers) Holds(was, at uint64) (register uint64, bits uint8, ok bool) {
	s, block, ok := h.stateAt(at)
	if !ok || h.graph.Why != "" || was >= Followed {
		return 0, 0, false
	}
	in := &h.moves()[block]
	for r := range uint64(Followed) {
		v, known := s.Register(r)
		if !known {
			continue
		}
		if of, same, is := s.Input(v); is && of < Followed && in[of].of == int8(was) && min(in[of].bits, same) > bits {
			register, bits = r, min(in[of].bits, same)
		}
	}
	return register, bits, bits > 0
}

// Keeps reports whether a register has, at each instruction from one link-time address to another and on all paths there, so many lower bits of what another one had
// where the function begins. What nothing leads to, as padding in front of a label, is no such instruction. GCC's notes may begin at the last byte of a call.
func (h *Registers) Keeps(register, was uint64, bits uint8, from, to uint64) bool {
	if h == nil || h.graph.Why != "" || was >= Followed {
		return false
	}
	insns := h.graph.Insns
	first, ok := h.graph.At(from)
	if !ok && first > 0 && insns[first-1].Addr+uint64(insns[first-1].Size) > from && !h.calls(int32(first-1)) {
		return false
	}
	if first == len(insns) {
		return true
	}
	s := h.arch.State()
	for b := h.graph.Block(int32(first)); int(b) < len(h.graph.Blocks); b++ {
		block, in := &h.graph.Blocks[b], &h.moves()[b]
		s.Restart()
		for n := block.First; n < block.Last; n++ {
			at := insns[n].Addr
			if at >= to {
				return true
			}
			if at >= from {
				v, _ := s.Register(register)
				of, same, is := s.Input(v)
				if !is || of >= Followed || in[of].of != int8(was) || min(in[of].bits, same) < bits {
					return false
				}
			}
			s.Step(h.graph.Bytes(n), at)
		}
	}
	return true
}

// Alike returns the registers that have at a link-time address, on all paths, the lower half at least of what a register has: it was moved from one to the other, or both are what
// one was where the function begins.
func (h *Registers) Alike(register, at uint64) (out insn.Registers) {
	s, block, ok := h.stateAt(at)
	if !ok || register >= Followed {
		return 0
	}
	out = 1 << register
	of, is := movedFrom(s, register)
	if !is {
		return out
	}
	was := h.moves()[block][of]
	for r := range uint64(Followed) {
		from, is := movedFrom(s, r)
		if !is {
			continue
		}
		if its := h.moves()[block][from]; from == of || was.bits >= 32 && its.bits >= 32 && its.of == was.of {
			out |= 1 << r
		}
	}
	return out
}

// calls reports whether an instruction is a call.
func (h *Registers) calls(n int32) bool {
	in, _ := h.arch.Next(h.graph.Bytes(n))
	return in.Call
}

// Was returns which register had, where the function begins, what one has at a link-time address, on all paths, or the lower half of it at least.
func (h *Registers) Was(register, at uint64) (of uint64, ok bool) {
	s, block, ok := h.stateAt(at)
	if !ok || register >= Followed {
		return 0, false
	}
	from, ok := movedFrom(s, register)
	if !ok {
		return 0, false
	}
	was := h.moves()[block][from]
	return uint64(was.of), was.bits >= 32
}

// movedFrom returns which register had, where a block begins, what one has now, or the lower half of it at least.
func movedFrom(s *symbolic.State, register uint64) (of uint64, ok bool) {
	v, _ := s.Register(register)
	of, same, is := s.Input(v)
	return of, is && same >= 32 && of < Followed
}
