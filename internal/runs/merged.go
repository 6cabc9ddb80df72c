package runs

import (
	"math/bits"
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/flow"
	"github.com/bpfprologue/bpfprologue/internal/insn"
)

// LLVM merges equal instructions of several instances of a function: it takes them out of the
// beginnings of both sides of a branch, and out of their ends. Since LLVM 17 what results has an
// instance of its own, called at the place that the calls have in common: at a line without a
// column, or at line 0 (DILocation::getMergedLocation, llvm/lib/IR/DebugInfoMetadata.cpp). A
// run begins in it and goes on in another instance, or the other way around, and instructions of line
// 0 in it are of no run.

// covers reports whether calls at another place can be merged into one at this place.
func covers(p, x *body.CallPlace) bool {
	return p.Line == 0 || p.Line == x.Line && (p.Column == 0 || p.Column == x.Column)
}

// maxSharing bounds how many bodies of one function are compared with each other.
const maxSharing = 128

// shares reports whether two bodies are of one function, and one of them is what was merged of the
// other and further ones.
func (c *Code) shares(i, k int32) bool {
	if !c.Bodies[i].Merged && !c.Bodies[k].Merged {
		return false
	}
	for i != k {
		x, y := &c.Bodies[i], &c.Bodies[k]
		if x.Parent < 0 || y.Parent < 0 || c.FunctionOf(i) != c.FunctionOf(k) || !covers(&x.Call, &y.Call) && !covers(&y.Call, &x.Call) {
			return false
		}
		i, k = x.Parent, y.Parent
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
	if !c.AnyMerged {
		return nil
	}
	if c.sameText == nil {
		c.sameText = make(map[body.Function][]int32)
		for x := range c.Bodies {
			f := c.FunctionOf(int32(x))
			c.sameText[f] = append(c.sameText[f], int32(x))
		}
	}
	same := c.sameText[c.FunctionOf(i)]
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
	for ; own >= 0; own = c.Bodies[own].Parent {
		if kin[own] != stranger {
			return own
		}
	}
	return -1
}

// placeIn is placeOf for bodies that share code: places of the same source text are equal in all of them.
func (c *Code) placeIn(kin map[int32]kinship, i int32, r *dw.Row, n int32) body.Place {
	p := c.PlaceOf(r, n)
	switch m := c.member(kin, p.Own); {
	case kin == nil:
	case m == p.Own:
		p.Own = i
	case m >= 0 || c.Bodies[i].Has(p.Own) && p.Own != i:
		p.Own = -2 - c.Unit.Recs[c.Bodies[p.Own].Rec].Root
	}
	return p
}

// piecesOf returns the marks of a body that shares code with kin, without those of pieces that LLVM moved before a test of the caller's: where none of the bodies is on the
// other side of it, as Rules.Speculated says of one body.
func (c *Code) piecesOf(i int32, kin map[int32]kinship, starts map[body.Place]bool) []flow.Mark {
	g := c.Graph
	return slices.DeleteFunc(c.pieces(i, kin, starts), func(m flow.Mark) bool {
		return m.Kind <= flow.MarkInside && c.Speculated(i, m.Insn) && slices.ContainsFunc(g.Blocks[g.Block(m.Insn)].Succs, func(to int32) bool {
			for n := g.Blocks[to].First; n < g.Blocks[to].Last; n++ {
				if c.oneOf(kin, i, n) >= 0 {
					return false
				}
			}
			return true
		})
	})
}

// goesOnIn reports whether a run that has begun in other bodies goes on in a body, at the first instruction of a block, where runs of another one begin that has lost what it
// begins with. Paths come there from instructions of bodies one of which shares code with the other: i and its kin. None of these has code at that place of the source
// but what was merged: a body that has it itself has been there already, and what follows is another run, unless it needs what was computed at that very place. The caller may
// compute between the two what it passes and the beginning of the body does not need: at the line of the call in which the run has begun, or the rest needs what the bodies have computed.
// A path may come from the caller too, whose test LLVM has put together with that of one of the bodies: there a run begins. perhaps is set if one goes on
// and another one begins, by the path on which execution comes there.
func (c *Code) goesOnIn(kin map[int32]kinship, i, in, block, at int32) (goesOn, perhaps bool) {
	g := c.Graph
	if g.Paths(block) == 0 {
		return false, false
	}
	if c.comparedFor(kin, i, at) || c.needsMade(kin, i, in, at) {
		return true, false
	}
	passes := c.Past(g.Blocks[block].First) != at || !g.OnlyBehind(block, func(last int32) bool { return c.oneOf(kin, i, c.beforePadding(last)) >= 0 })
	needs := !passes || c.needsKin(kin, i, at)
	place := c.placeIn(kin, i, c.RowAt(at), at)
	var begun []int32 // the bodies in which the run has begun
	lost := true      // none of them has code at the place
	outside := false  // there is a path from the caller
	seen := make(map[int32]bool)
	var comes func(block, end int32, line body.CallPlace) bool
	comes = func(block, end int32, line body.CallPlace) bool {
		for n := end - 1; n >= g.Blocks[block].First; n-- {
			if from := c.oneOf(kin, i, n); from >= 0 {
				call := &c.Bodies[from].Call
				begun, lost = append(begun, from), lost && !c.hasPlace(kin, i, from, place)
				return (needs || line.Line == 0 || line.Line == call.Line && line.File == call.File) && from != in && c.shares(from, in)
			}
			if k := g.Insns[n].Kind; k != flow.Nop && k != flow.Jump && (k != flow.Plain || c.Acts(n)) {
				outside = true
				return true
			}
			if at := c.lineIn(c.Bodies[i].Parent, n); at.Line != 0 && g.Insns[n].Kind == flow.Plain {
				if line.Line != 0 && line != at {
					at.File = ^uint32(0) // of several lines
				}
				line = at
			}
		}
		return g.OnlyBehind(block, func(last int32) bool {
			p := g.Block(last)
			if seen[p] {
				return true
			}
			seen[p] = true
			return comes(p, last+1, line)
		})
	}
	if !comes(block, at, body.CallPlace{}) || len(begun) == 0 {
		return false, false
	}
	rest := func(b int32) bool { return c.isRestOf(kin, i, b, at) }
	if outside {
		return lost && !slices.ContainsFunc(begun, func(b int32) bool { return !rest(b) }), false
	}
	if goesOn = lost || c.needsRest(kin, i, at, begun); goesOn {
		return true, false
	}
	return false, slices.ContainsFunc(begun, rest)
}

// comparedFor reports whether an instruction is a branch for which one of the bodies that share code compares in front of it: LLVM takes the comparison out of the beginnings of both, and leaves each its
// branch, with the place of both. A run that begins there would compare itself. What the caller compares is not meant.
func (c *Code) comparedFor(kin map[int32]kinship, i, at int32) bool {
	g := c.Graph
	if g.Insns[at].Kind != flow.Branch || at == g.Blocks[g.Block(at)].First {
		return false
	}
	before := c.beforePadding(at - 1)
	reads, _, ok := c.Arch.Accesses(g.Bytes(at))
	w, known := c.Arch.Writes(g.Bytes(before))
	return (!ok || reads == 0) && known && w == (insn.Writes{}) && g.Insns[before].Kind == flow.Plain && c.oneOf(kin, i, before) >= 0
}

// needsMade reports whether a piece of bodies that share code, from an instruction of one of them on, uses what was merged of them has computed before, at the place of the use, wherever execution comes from: LLVM takes
// a load out of both sides of the caller's test, and what needs it stays behind the test, on each side. What is computed once for runs in a loop, or one behind the other, is used again, without it,
// where execution comes from such a use.
func (c *Code) needsMade(kin map[int32]kinship, i, in, at int32) bool {
	made := uint64(0)
	for n := at; n < c.Graph.Blocks[c.Graph.Block(at)].Last && c.oneOf(kin, i, n) >= 0; n++ {
		row := c.RowAt(n)
		reads, writes, ok := c.Arch.Accesses(c.Graph.Bytes(n))
		if !ok || row == nil || row.Line == 0 {
			return false
		}
		place := c.placeIn(kin, i, row, n)
		like := func(n int32) bool {
			r := c.RowAt(n)
			return r != nil && c.oneOf(kin, i, n) >= 0 && c.placeIn(kin, i, r, n) == place
		}
		for left := uint64(reads) &^ made; left != 0; left &= left - 1 {
			maker := int32(-1)
			merged := func(n int32) bool {
				by := c.oneOf(kin, i, n)
				if by < 0 || !c.Bodies[by].Merged || by != in && !c.shares(by, in) || !like(n) || maker >= 0 && maker != n {
					return false
				}
				maker = n
				return true
			}
			if c.writtenBy(at, left&-left, merged) && maker >= 0 {
				return c.usedOnce(at, maker, like)
			}
		}
		made |= uint64(writes.Registers)
	}
	return false
}

// usedOnce reports whether execution comes to a piece from no other one of such instructions, nor again from itself, without the one that makes what it uses.
func (c *Code) usedOnce(at, maker int32, such func(n int32) bool) bool {
	g := c.Graph
	own, from := g.Block(at), g.Block(maker)
	if own == from || g.Repeats(own, from) {
		return false
	}
	for n := range int32(len(c.Owner)) {
		b := g.Block(n)
		if n == maker || b == own && n >= at || !such(n) {
			continue
		}
		reached := b == own || b == from && n > maker
		g.Ahead(b, func(to int32) bool {
			reached = reached || to == own
			return to == own || to == from
		})
		if reached {
			return false
		}
	}
	return true
}

// isRestOf reports whether a piece of merged code, from an instruction on, can be the rest of a body, i or one of its kin: the body has computed something, and has no code at any of the places of the
// piece. One that only jumps there has not begun, and one that has some of them has made that already.
func (c *Code) isRestOf(kin map[int32]kinship, i, of, at int32) bool {
	if !c.HasSuch(of, func(n int32) bool { return c.Graph.Insns[n].Kind != flow.Jump && c.Graph.Insns[n].Kind != flow.Nop }) {
		return false
	}
	for last := c.Graph.Blocks[c.Graph.Block(at)].Last; at < last && c.oneOf(kin, i, at) >= 0; at++ {
		if r := c.RowAt(at); r != nil && r.Line != 0 && c.hasPlace(kin, i, of, c.placeIn(kin, i, r, at)) {
			return false
		}
	}
	return true
}

// lineIn returns the line of a body's text that an instruction of it is at, or the call of what is inlined there that has the instruction. Its number is 0 if there is none.
func (c *Code) lineIn(caller, n int32) (line body.CallPlace) {
	own := c.Owner[n]
	if own == caller {
		if r := c.RowAt(n); r != nil {
			line = body.CallPlace{File: r.File, Line: r.Line}
		}
		return line
	}
	for ; own >= 0; own = c.Bodies[own].Parent {
		if b := &c.Bodies[own]; b.Parent == caller {
			return body.CallPlace{File: b.Call.File, Line: b.Call.Line}
		}
	}
	return body.CallPlace{File: ^uint32(0), Line: ^uint32(0)}
}

// beforePadding returns an instruction, or the last one before it in its block that is no padding.
func (c *Code) beforePadding(n int32) int32 {
	for g := c.Graph; g.Insns[n].Kind == flow.Nop && n > 0 && g.Block(n-1) == g.Block(n); {
		n--
	}
	return n
}

// oneOf returns the body around an instruction that is i or one of its kin, or -1.
func (c *Code) oneOf(kin map[int32]kinship, i, n int32) int32 {
	if c.Bodies[i].Has(c.Owner[n]) {
		return i
	}
	return c.member(kin, c.Owner[n])
}

// needsKin reports whether instructions of a body, from one on in its block, read a register that instructions of bodies that share code have written last, wherever execution comes
// from.
func (c *Code) needsKin(kin map[int32]kinship, i, at int32) bool {
	end := at
	for last := c.Graph.Blocks[c.Graph.Block(at)].Last; end < last && c.oneOf(kin, i, end) >= 0; end++ {
	}
	return c.writtenBy(at, c.Graph.Needs(c.Arch, at, end), func(n int32) bool { return c.oneOf(kin, i, n) >= 0 })
}

// writtenBy reports whether such instructions alone have written one of some registers last, wherever execution comes from.
func (c *Code) writtenBy(at int32, registers uint64, such func(n int32) bool) bool {
	for ; registers != 0; registers &= registers - 1 {
		reg := uint16(bits.TrailingZeros64(registers))
		if c.Graph.WrittenBy(c.Arch, at, reg, slices.Contains(c.Unit.Image.Arch().Preserved, reg), such) {
			return true
		}
	}
	return false
}

// needsRest reports whether a piece of merged code, from an instruction on, goes on with what some bodies have begun: it reads what instructions of bodies that share code, at its own place of the source
// too, have computed wherever execution comes from, and up to there nothing in the bodies is alike. A run computes that itself. What one run leaves to the next one, as a sum, the instruction
// changes itself, or there is one like it in each body.
func (c *Code) needsRest(kin map[int32]kinship, i, at int32, begun []int32) bool {
	made := uint64(0)
	for n := at; n < c.Graph.Blocks[c.Graph.Block(at)].Last && c.oneOf(kin, i, n) >= 0; n++ {
		reads, writes, ok := c.Arch.Accesses(c.Graph.Bytes(n))
		in, known := c.Arch.Next(c.Graph.Bytes(n))
		call := known && in.Call
		if call { // it gets what it is passed in some of the registers that it need not keep
			reads = (1<<body.Followed - 1) &^ (c.Preserved() | 1<<c.Unit.Image.Arch().SP)
		}
		row := c.RowAt(n)
		if !ok && !call || row == nil {
			return false
		}
		place := c.placeIn(kin, i, row, n)
		kindred := func(n int32) bool {
			r := c.RowAt(n)
			return r != nil && c.oneOf(kin, i, n) >= 0 && c.placeIn(kin, i, r, n) == place
		}
		for k, own := range c.Owner {
			if k := int32(k); k != n && c.Shape(k) == c.Shape(n) && slices.ContainsFunc(begun, func(b int32) bool { return c.Bodies[b].Has(own) }) && kindred(k) {
				return false
			}
		}
		if c.writtenBy(at, uint64(reads&^writes.Registers)&^made, kindred) {
			return true
		}
		if call {
			return false
		}
		made |= uint64(writes.Registers)
	}
	return false
}

// hasPlace reports whether an instruction of a body, i or one of its kin, is at a place, and no jump: one to what was merged has the place of that.
func (c *Code) hasPlace(kin map[int32]kinship, i, of int32, place body.Place) bool {
	b := &c.Bodies[of]
	for n, own := range c.Owner {
		if own < of || own >= b.End || c.Graph.Insns[n].Kind == flow.Jump {
			continue
		}
		if r := c.RowAt(int32(n)); r != nil && c.placeIn(kin, i, r, int32(n)) == place {
			return true
		}
	}
	return false
}
