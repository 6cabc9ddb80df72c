package motion

import (
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/flow"
)

// GCC computes a part of an expression at the ends of the paths to it on which it is not known yet (-ftree-pre): in front of a test of the caller's, behind one side of which
// the caller has that value for another reason. The part keeps the position that it had in the body, where the rest follows behind both sides.

// withAnticipated marks the pieces of a body that may be such a part: whether a run begins in front of the test is then not known.
func (c *Rules) withAnticipated(i int32, marks []flow.Mark) []flow.Mark {
	if !c.Unit.GNU() {
		return marks
	}
	for k := range marks {
		if m := &marks[k]; (m.Kind == flow.MarkEnter || m.Kind == flow.MarkInside) && c.anticipated(i, m.Insn, marks) {
			m.Kind = flow.MarkPerhaps
		}
	}
	return marks
}

// anticipated reports whether a piece of a body that begins at an instruction does nothing that can be seen, a branch of the caller's ends its block, and both sides of that
// lead to one place where a run begins, with nothing of the body in between: there an instruction of the body needs what the piece has computed, and
// is none of the piece's again. A run that goes on with the result of another one looks the same.
func (c *Rules) anticipated(i, first int32, marks []flow.Mark) bool {
	g, own := c.Graph, func(at int32) bool { return c.Bodies[i].Has(c.Owner[at]) }
	n := g.Block(first)
	b := &g.Blocks[n]
	if last := b.Last - 1; g.Insns[last].Kind != flow.Branch || own(last) || len(b.Succs) != 2 {
		return false
	}
	meet := int32(-1)
	for _, to := range b.Succs {
		if x := &g.Blocks[to]; g.Paths(to) == 1 && len(x.Succs) == 1 && g.Insns[x.Last-1].Kind != flow.Branch {
			for at := x.First; at < x.Last; at++ {
				if own(at) {
					return false
				}
			}
			to = x.Succs[0]
		}
		if meet >= 0 && to != meet {
			return false
		}
		meet = to
	}
	begins := c.Past(g.Blocks[meet].First)
	if g.Paths(meet) != 2 || !slices.ContainsFunc(marks, func(m flow.Mark) bool { return m.Insn == begins && m.Kind == flow.MarkEnter }) {
		return false
	}
	var made uint64 // registers that the piece writes last
	piece := make(map[step]bool)
	for at := b.First; at < b.Last-1; at++ {
		k := g.Insns[at].Kind
		w, ok := c.Arch.Writes(g.Bytes(at))
		if !ok || own(at) && (at < first || k != flow.Plain && k != flow.Nop || c.Acts(at)) {
			return false
		}
		if made &^= uint64(w.Registers); own(at) {
			made |= uint64(w.Registers)
			if s, ok := c.stepAt(at); ok {
				piece[s] = true
			}
		}
	}
	for at := begins; at < g.Blocks[meet].Last && made != 0; at++ {
		reads, w, ok := c.Arch.Accesses(g.Bytes(at))
		if !ok {
			return false
		}
		if own(at) && uint64(reads)&made != 0 {
			s, known := c.stepAt(at)
			return known && !piece[s]
		}
		made &^= uint64(w.Registers)
	}
	return false
}
