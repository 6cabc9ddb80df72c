package body

import (
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/dw"
)

// LLVM merges equal instructions of several instances of a function: it takes them out of the
// beginnings of both sides of a branch, and out of their ends. Since LLVM 17 what results has an
// instance of its own, called at the place that the calls have in common: at a line without a
// column, or at line 0 (DILocation::getMergedLocation, llvm/lib/IR/DebugInfoMetadata.cpp). A
// run begins in it and goes on in another instance, or the other way around, and instructions of line
// 0 in it are of no run.

// covers reports whether calls at another place can be merged into one at this place.
func (p *callPlace) covers(x *callPlace) bool {
	return p.line == 0 || p.line == x.line && (p.column == 0 || p.column == x.column)
}

// maxSharing bounds how many bodies of one function are compared with each other.
const maxSharing = 128

// shares reports whether two bodies are of one function, and one of them is what was merged of the
// other and further ones.
func (c *Code) shares(i, k int32) bool {
	if !c.bodies[i].merged && !c.bodies[k].merged {
		return false
	}
	for i != k {
		x, y := &c.bodies[i], &c.bodies[k]
		if x.parent < 0 || y.parent < 0 || c.functionOf(i) != c.functionOf(k) || !x.call.covers(&y.call) && !y.call.covers(&x.call) {
			return false
		}
		i, k = x.parent, y.parent
	}
	return true
}

// kinship is what another body is to one that shares code with bodies.
type kinship uint8

const (
	stranger kinship = iota
	// sharer is one in which runs of the body can begin, go on or end.
	sharer
	// rival is one that shares code with a sharer: its runs are others.
	rival
)

// kinOf returns the bodies that share code with a body, or nil if there is none.
func (c *Code) kinOf(i int32) map[int32]kinship {
	if !c.anyMerged {
		return nil
	}
	if c.sameText == nil {
		c.sameText = make(map[sameFunction][]int32)
		for x := range c.bodies {
			f := c.functionOf(int32(x))
			c.sameText[f] = append(c.sameText[f], int32(x))
		}
	}
	same := c.sameText[c.functionOf(i)]
	if len(same) > maxSharing {
		return nil
	}
	var sharers []int32
	for _, x := range same {
		if x != i && c.shares(i, x) {
			sharers = append(sharers, x)
		}
	}
	if sharers == nil {
		return nil
	}
	kin := make(map[int32]kinship)
	for _, x := range same {
		if x != i && slices.ContainsFunc(sharers, func(y int32) bool { return x != y && c.shares(x, y) }) {
			kin[x] = rival
		}
	}
	for _, x := range sharers {
		kin[x] = sharer
	}
	return kin
}

// member returns the body around an instruction that is one of kin, or -1.
func (c *Code) member(kin map[int32]kinship, own int32) int32 {
	for ; own >= 0; own = c.bodies[own].parent {
		if kin[own] != stranger {
			return own
		}
	}
	return -1
}

// placeIn is placeOf for bodies that share code: places of the same source text are equal in all of them.
func (c *Code) placeIn(kin map[int32]kinship, i int32, r *dw.Row, n int32) rowPlace {
	p := c.placeOf(r, n)
	switch m := c.member(kin, p.own); {
	case kin == nil:
	case m == p.own:
		p.own = i
	case m >= 0 || c.bodies[i].has(p.own) && p.own != i:
		p.own = -2 - c.u.Recs[c.bodies[p.own].rec].Root
	}
	return p
}
