package held

import (
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/symbolic"
)

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
	if h.away[register] == nil {
		h.away[register] = h.extensions(register)
	}
	away, site, block := h.away[register], int32(n), h.graph.Block(int32(n))
	x := extension{h, h.arch.State(), register}
	if x.behind(h.graph.Blocks[block].First, site, away.behind[block]) {
		return true
	}
	is, kept := x.ahead(site, h.graph.Blocks[block].Last)
	return is || kept && slices.ContainsFunc(h.graph.Blocks[block].Succs, func(to int32) bool { return away.ahead[to] })
}

// extensions says for each block whether a register's lower half is extended where the block begins: on some path to there, or from there on.
type extensions struct{ behind, ahead []bool }

// extensions follows each block once.
func (h *Registers) extensions(register uint64) *extensions {
	blocks := h.graph.Blocks
	x := extension{h, h.arch.State(), register}
	out := &extensions{make([]bool, len(blocks)), make([]bool, len(blocks))}
	through := make([]bool, len(blocks))   // what is extended in front of the block is behind it
	before := make([][]int32, len(blocks)) // those that lead to each block and leave the register
	var forth, back []int32                // blocks that are not done
	for b := range blocks {
		block := &blocks[b]
		behind, ahead, kept := false, false, true
		through[b] = true
		x.each(block.First, block.Last, func(changed, extended bool) bool {
			behind = behind && !changed || extended
			through[b] = through[b] && !changed || extended
			ahead = ahead || kept && extended
			kept = kept && !changed
			return true
		})
		if behind {
			forth = spread(out.behind, forth, block.Succs)
		}
		if ahead {
			back = spread(out.ahead, back, []int32{int32(b)})
		}
		for _, to := range block.Succs {
			if kept {
				before[to] = append(before[to], int32(b))
			}
		}
	}
	for len(forth) > 0 {
		b := forth[len(forth)-1]
		if forth = forth[:len(forth)-1]; through[b] {
			forth = spread(out.behind, forth, blocks[b].Succs)
		}
	}
	for len(back) > 0 {
		b := back[len(back)-1]
		back = spread(out.ahead, back[:len(back)-1], before[b])
	}
	return out
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
