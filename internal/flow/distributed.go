package flow

import (
	"cmp"
	"slices"
)

// GCC makes two loops of one (-ftree-loop-distribution): each has some of its instructions, and both have the markers of all its statements. A body of which
// one has the code runs there; where a body without code runs is not known.

// Distributed reports whether a way into a body, of those that were found last, may be one only by markers that are in a loop, or in what is left of its last
// turn, beside the loop with the code: nothing of the body is there, and another way is in a loop before or behind it that has instructions of the body, if any
// has. parts reports whether some blocks may be parts of one loop with others.
func (s *Solver) Distributed(in []Way, k int, parts func(blocks, others []int32) bool) bool {
	from := s.g.Block(in[k].Insn)
	here, loops := s.around(from)
	if s.hasOwn(here) || !loops && !s.endsIn(from, in[k].Insn) {
		return false
	}
	bare := !slices.ContainsFunc(in, func(w Way) bool {
		there, _ := s.around(s.g.Block(w.Insn))
		return s.hasOwn(there)
	})
	return slices.ContainsFunc(in, func(w Way) bool {
		b := s.g.Block(w.Insn)
		there, is := s.around(b)
		return is && (bare || s.hasOwn(there)) && !slices.Contains(there, from) && !slices.Contains(here, b) &&
			(s.leads(here, b) || s.leads(there, from)) && parts(here, there)
	})
}

// around returns the blocks of the innermost loop that has a block, or that block.
func (s *Solver) around(n int32) (blocks []int32, loops bool) {
	var inner blockSet
	for e, of := range s.turns {
		if of == nil {
			of = s.g.loop(e[0], e[1])
			s.turns[e] = of
		}
		// Of two of one size always the same one.
		if d := 0; of.has(n) {
			if inner != nil {
				d = cmp.Or(cmp.Compare(of.size(), inner.size()), slices.Compare(of, inner))
			}
			if inner == nil || d < 0 {
				inner = of
			}
		}
	}
	if inner == nil {
		return []int32{n}, false
	}
	return slices.Collect(inner.all), true
}

// hasOwn reports whether some blocks have an instruction of the body.
func (s *Solver) hasOwn(blocks []int32) bool {
	return slices.ContainsFunc(blocks, func(n int32) bool {
		for at := s.g.Blocks[n].First; at < s.g.Blocks[n].Last; at++ {
			if s.own != nil && s.own(at) {
				return true
			}
		}
		return false
	})
}

// endsIn reports whether a run that begins at an instruction of a block ends there.
func (s *Solver) endsIn(n, insn int32) bool {
	return slices.ContainsFunc(s.of(n), func(m Mark) bool { return m.Kind == MarkExit && m.Insn >= insn })
}

// leads reports whether execution comes from blocks to another one without another turn of a loop.
func (s *Solver) leads(from []int32, to int32) bool {
	seen := make(map[int32]bool)
	for work := slices.Clone(from); len(work) > 0; {
		n := work[len(work)-1]
		work = work[:len(work)-1]
		for _, b := range s.g.Blocks[n].Succs {
			if _, turn := s.turns[[2]int32{n, b}]; turn || seen[b] {
				continue
			}
			if b == to {
				return true
			}
			seen[b] = true
			work = append(work, b)
		}
	}
	return false
}
