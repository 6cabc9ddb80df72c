package body

import (
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/flow"
)

// solve returns the runs of a body by the positions of its instructions, in two steps: runs that
// begin first on any path tell at which positions runs begin.
// kin are the bodies that share code with it.
func (c *Code) solve(i int32, kin map[int32]kinship) flow.Runs {
	if kin != nil {
		return c.solveMerged(i, kin)
	}
	runs := c.solver.Solve(c.pieces(i, nil, nil), nil)
	starts := make(map[rowPlace]bool)
	for _, w := range runs.In {
		if r := c.rowAt(w.Insn); r != nil && !c.onlyLeaves(i, w.Insn) {
			starts[c.placeOf(r, w.Insn)] = true
		}
	}
	// LLVM and Go say where the lowest address of a body is, not where it is entered.
	if n, ok := c.graph.At(c.bodies[i].start); ok && c.bodies[i].live && c.u.GNU() {
		first := c.past(int32(n))
		if r := c.rowAt(first); r != nil {
			starts[c.placeOf(r, first)] = true
		}
	}
	return c.without(i, c.withRemainders(i, c.withoutSpeculated(i, c.withoutPreparations(i, c.pieces(i, nil, starts)))))
}

// pieces returns the marks of a body by its instructions. starts are the positions at which a
// run begins when execution comes back to the body, and kin the bodies that share code with it.
func (c *Code) pieces(i int32, kin map[int32]kinship, starts map[rowPlace]bool) []flow.Mark {
	b := &c.bodies[i]
	g := c.graph
	var out []flow.Mark
	for n := range g.Blocks {
		block := &g.Blocks[n]
		piece := false // an instruction of the body was in the block before
		within := false
		var first rowPlace // of the last piece that began a run
		var shape, global uint64
		begun := block.First // the first instruction of that piece
		owned := false       // an instruction of the body's own text, not of what is inlined into it, was since then
		pending := -1        // an instruction of the caller after a piece
		other := int32(-1)   // the body before that shares code with this one
		var copies struct{ known, turns bool }
		for at := block.First; at < block.Last; at++ {
			in := &g.Insns[at]
			if in.Kind == flow.Nop {
				continue
			}
			r := c.rowAt(at)
			if r != nil && i > 0 && c.entryRow(r) || c.isLent(i, at) {
				continue
			}
			if own := c.owner[at]; own < i || own >= b.end {
				if r != nil && r.Line == 0 {
					continue // of no position: merged from several
				}
				if c.copiesAlone(i, int32(n)) {
					continue // it is of the way to there that is another turn of the body's own loop
				}
				if m := c.member(kin, own); m >= 0 {
					if m != other && r != nil && starts[c.placeIn(kin, i, r, at)] {
						out = append(out, flow.Mark{Insn: at, Kind: flow.MarkExit})
						piece, within, pending = false, false, -1
					}
					if other = m; kin[m] == sharer {
						out = append(out, flow.Mark{Insn: at, Kind: flow.MarkTwin})
						piece, within, pending = false, false, -1
						continue
					}
				}
				if piece && within && pending < 0 {
					pending = int(at)
				} else if !piece && !within && pending < 0 {
					out = append(out, flow.Mark{Insn: at, Kind: flow.MarkAway})
					pending = int(at)
				}
				within = false
				continue
			}
			// LLVM reloads what it has spilled where it is needed, without a position, and counts that to the body around.
			if r != nil && r.Line == 0 && (kin != nil && c.bodies[i].merged || !piece && (in.Kind == flow.Jump || !c.acts(at))) {
				continue
			}
			var pos rowPlace
			if r != nil {
				pos = c.placeIn(kin, i, r, at)
			}
			begins := starts[pos]
			row := r != nil && r.Addr == in.Addr
			switch {
			case !piece:
				kind := flow.MarkInside
				if begins {
					kind = flow.MarkEnter
				}
				if begins && c.behindTest(i, int32(n), at) || c.onlyLeaves(i, at) {
					kind = flow.MarkPerhaps
				}
				out = append(out, flow.Mark{Insn: at, Kind: kind})
				first, shape, global, owned, begun = pos, c.shape(at), c.global(at), false, at
			case begins && (row || global != 0 && c.global(at) == global) && !c.u.IsGo() && pos == first && c.shape(at) == shape && (owned || first.own == i || !c.owns(i, block)) &&
				c.repeated(i, block, begun, at),
				begins && row && pending >= 0 && !starts[first] && !c.u.IsGo():
				// A copy: the caller's loop is unrolled. A body that begins with another one has
				// something of its own in each copy: otherwise a loop of its own is unrolled. Go's
				// compiler unrolls none. Where nothing of the caller's is between two copies, and the body has nothing further behind them,
				// it may be either; and where GCC may have put what is between two parts of one sum there.
				gone, kind := at, flow.MarkPerhaps
				switch {
				case pending >= 0 && (!c.u.GNU() || c.actsFrom(i, begun, at)):
					gone, kind = int32(pending), flow.MarkEnter
				case !copies.known:
					copies.known, copies.turns = true, c.goesOnBehind(i, int32(n), begun, at)
					fallthrough
				default:
					if copies.turns {
						kind = flow.MarkInside
					}
				}
				if kind != flow.MarkInside {
					out = append(out, flow.Mark{Insn: gone, Kind: flow.MarkAway}, flow.Mark{Insn: at, Kind: kind})
				}
				owned, begun = false, at
			}
			owned = owned || c.owner[at] == i
			piece, within, pending = true, true, -1
		}
		if piece && pending >= 0 {
			out = append(out, flow.Mark{Insn: int32(pending), Kind: flow.MarkAway})
		}
	}
	return out
}

// behindTest reports whether a piece of a body is in a block to which only a test of the body's leads, and begins with no copy of an instruction before that: LLVM loads
// behind a test what the caller passes, if only one side needs it, and the body may go on there.
func (c *Code) behindTest(i, block, at int32) (behind bool) {
	if c.u.GNU() || c.u.IsGo() || c.graph.Paths(block) != 1 {
		return false
	}
	c.graph.OnlyBehind(block, func(last int32) bool {
		behind = c.graph.Insns[last].Kind == flow.Branch && c.bodies[i].has(c.owner[last])
		for k := c.graph.Blocks[c.graph.Block(last)].First; k < last; k++ {
			behind = behind && (!c.bodies[i].has(c.owner[k]) || c.shape(k) != c.shape(at))
		}
		return true
	})
	return behind
}

// onlyLeaves reports whether all that is left of a piece of a body is a jump out of the body: LLVM copies the end of a block to paths that go on alike, also to those of
// others, and the jump keeps the position of a run's end. It may also be all that is left of a run.
func (c *Code) onlyLeaves(i, at int32) bool {
	return !c.u.GNU() && !c.u.IsGo() && c.graph.Insns[at].Kind == flow.Jump && !c.entersAny(i, c.graph.Blocks[c.graph.Block(at)].Succs)
}

// entryRow reports whether a row is that of the beginning of a function out of line, which says nothing of its instructions: LLVM counts those that save registers to a body
// that begins behind them, and gives no other row to those without a position that come next.
func (c *Code) entryRow(r *dw.Row) bool {
	return r.Column == 0 && !c.u.GNU() && !c.u.IsGo() && len(c.ranges) > 0 && r.Addr == c.ranges[0].Lo
}

// step is what copies of an instruction have in common.
type step struct {
	place rowPlace
	shape uint64
}

// stepAt returns the step of an instruction. ok is false if it has no position.
func (c *Code) stepAt(n int32) (s step, ok bool) {
	r := c.rowAt(n)
	if r == nil {
		return s, false
	}
	return step{c.placeOf(r, n), c.shape(n)}, true
}

// maxCopy bounds how many instructions of a copy are compared.
const maxCopy = 64

// repeated reports whether instructions of a body from one instruction of a block on may be a copy
// of those from an earlier one on. They are none if they change a variable at a position that the earlier
// ones do not have, and lack something of the earlier ones. GCC gives all instructions of an expression its position, and orders them with
// those of others: then those are none behind which the body does what can be seen, if it did nothing between the two.
func (c *Code) repeated(i int32, block *flow.Block, from, at int32) bool {
	if c.u.GNU() {
		return c.actsFrom(i, from, at) || !c.actsFrom(i, at, block.Last)
	}
	each := func(from, to int32, f func(n int32, s step)) {
		for n := from; n < min(to, block.Last); n++ {
			if s, ok := c.stepAt(n); ok && c.bodies[i].has(c.owner[n]) && c.graph.Insns[n].Kind != flow.Nop {
				f(n, s)
			}
		}
	}
	first, known := make(map[step]bool), make(map[rowPlace]bool)
	each(from, min(at, from+maxCopy), func(_ int32, s step) { first[s], known[s.place] = true, true })
	other := false
	each(at, at+2*min(at-from, maxCopy)+8, func(n int32, s step) {
		delete(first, s)
		if !known[s.place] && c.global(n) != 0 {
			w, ok := c.arch.Writes(c.graph.Bytes(n))
			other = other || ok && w.Memory
		}
	})
	return !other || len(first) == 0
}

// actsFrom reports whether a body does what can be seen from one instruction to another.
func (c *Code) actsFrom(i, from, to int32) bool {
	for at := from; at < to; at++ {
		if c.bodies[i].has(c.owner[at]) && c.acts(at) {
			return true
		}
	}
	return false
}

// goesOnBehind reports whether a body goes on, behind copies that begin in a block and of which the first one is from one instruction to
// another, with what the copies do not have: then they are turns of a loop of the body's, and not runs.
func (c *Code) goesOnBehind(i, n, from, to int32) bool {
	g := c.graph
	own := func(at int32) *dw.Row {
		if !c.bodies[i].has(c.owner[at]) {
			return nil
		}
		return c.rowAt(at)
	}
	first, known := c.stepAt(from)
	for at := to + 1; known && at < g.Blocks[n].Last; at++ { // the last copy
		if s, ok := c.stepAt(at); ok && s == first && own(at) != nil {
			to = at
		}
	}
	copied := make(map[rowPlace]bool)
	for at := from; at < to; at++ {
		if r := own(at); r != nil {
			copied[c.placeOf(r, at)] = true
		}
	}
	seen := map[int32]bool{n: true}
	for work := []int32{n}; len(work) > 0; {
		b := &g.Blocks[work[0]]
		at := b.First
		if work[0] == n {
			at = to
		}
		work = work[1:]
		left := false
		for ; at < b.Last && !left; at++ {
			r := c.rowAt(at)
			switch own := c.bodies[i].has(c.owner[at]); {
			case r == nil || r.Line == 0 || g.Insns[at].Kind == flow.Nop:
			case !own:
				left = true
			case !copied[c.placeOf(r, at)] && c.acts(at):
				return true
			}
		}
		for _, to := range b.Succs {
			if !left && !seen[to] {
				seen[to] = true
				work = append(work, to)
			}
		}
	}
	return false
}

// beginsOf returns the instructions at which runs of a body begin first on any path.
func (c *Code) beginsOf(i int32) []int32 {
	if in, ok := c.begins[i]; ok {
		return in
	}
	if c.begins == nil {
		c.begins = make(map[int32][]int32)
	}
	in := []int32{}
	for _, w := range c.solver.Solve(c.pieces(i, c.kinOf(i), nil), nil).In {
		in = append(in, w.Insn)
	}
	c.begins[i] = in
	return in
}

// solveMerged is solve for a body that shares code with others.
func (c *Code) solveMerged(i int32, kin map[int32]kinship) flow.Runs {
	starts := make(map[rowPlace]bool)
	note := func(x int32) {
		for _, n := range c.beginsOf(x) {
			if r := c.rowAt(n); r != nil {
				starts[c.placeIn(kin, i, r, n)] = true
			}
		}
	}
	note(i)
	for x := range kin {
		note(x)
	}
	return c.solver.Solve(c.pieces(i, kin, starts), nil)
}
