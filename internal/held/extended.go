package held

import "github.com/bpfprologue/bpfprologue/internal/symbolic"

// ExtendedAway reports whether an instruction puts the lower half of what a register holds at a link-time address, with zeros above it, in another register: on some path to there, or
// from there on.
func (h *Registers) ExtendedAway(register, at uint64) bool {
	if h == nil || h.graph.Why != "" || register >= Followed || h.arch.Bits() != 64 {
		return false
	}
	n, ok := h.graph.At(at)
	if !ok {
		return false
	}
	site, block, blocks := int32(n), h.graph.Block(int32(n)), h.graph.Blocks
	x := extension{h, h.arch.State(), register}
	before := make([]bool, len(blocks))
	work := make([]int32, 0, len(blocks))
	for b := range blocks {
		work = append(work, int32(b))
	}
	for len(work) > 0 {
		b := work[len(work)-1]
		work = work[:len(work)-1]
		if x.behind(blocks[b].First, blocks[b].Last, before[b]) {
			work = spread(before, work, blocks[b].Succs)
		}
	}
	if x.behind(blocks[block].First, site, before[block]) {
		return true
	}
	away, kept := x.ahead(site, blocks[block].Last)
	reached := make([]bool, len(blocks))
	for work = append(work, block); len(work) > 0 && !away; {
		b := work[len(work)-1]
		work = work[:len(work)-1]
		if b != block || reached[b] {
			away, kept = x.ahead(blocks[b].First, blocks[b].Last)
		}
		if kept {
			work = spread(reached, work, blocks[b].Succs)
		}
	}
	return away
}

// spread marks blocks, and adds those that were not marked to what is left to do.
func spread(marked []bool, work, blocks []int32) []int32 {
	for _, b := range blocks {
		if !marked[b] {
			marked[b] = true
			work = append(work, b)
		}
	}
	return work
}

// extension looks for what ExtendedAway asks about.
type extension struct {
	h        *Registers
	s        *symbolic.State
	register uint64
}

// each follows instructions until one that changes the register, if f returns false for it, or one that extends it.
func (x *extension) each(first, last int32, f func(changed, extended bool) bool) {
	s, g := x.s, x.h.graph
	s.Restart()
	if first == last {
		return
	}
	v, _ := s.Register(x.register)
	low := s.Low(v, 32)
	for n := first; n < last; n++ {
		var was [Followed]symbolic.Value
		for r := range was {
			was[r], _ = s.Register(uint64(r))
		}
		s.Step(g.Bytes(n), g.Insns[n].Addr)
		extended := false
		for r := range was {
			is, _ := s.Register(uint64(r))
			extended = extended || low != v && is == low && is != was[r] && uint64(r) != x.register
		}
		is, _ := s.Register(x.register)
		changed := is != v
		if changed {
			v, low = is, s.Low(is, 32)
		}
		if !f(changed, extended) {
			return
		}
	}
}

// behind reports whether it is extended behind some instructions, where it was before them or not.
func (x *extension) behind(first, last int32, away bool) bool {
	x.each(first, last, func(changed, extended bool) bool {
		away = away && !changed || extended
		return true
	})
	return away
}

// ahead reports whether some instructions extend it, and if not, whether they leave it.
func (x *extension) ahead(first, last int32) (away, kept bool) {
	kept = true
	x.each(first, last, func(changed, extended bool) bool {
		away, kept = extended, !changed
		return !away && kept
	})
	return away, kept
}
