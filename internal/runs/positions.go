package runs

import (
	"github.com/bpfprologue/bpfprologue/internal/body"
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
	starts := make(map[body.Place]bool)
	for _, w := range runs.In {
		if r := c.RowAt(w.Insn); r != nil && !c.OnlyLeaves(i, w.Insn) && !c.NotItsPlace(i, w.Insn) {
			starts[c.PlaceOf(r, w.Insn)] = true
		}
	}
	// LLVM and Go say where the lowest address of a body is, not where it is entered.
	if n, ok := c.Graph.At(c.Bodies[i].Start); ok && c.Bodies[i].Live && c.Unit.GNU() {
		first := c.Past(int32(n))
		if r := c.RowAt(first); r != nil && !c.InMidst(i, first) {
			starts[c.PlaceOf(r, first)] = true
		}
	}
	return c.Runs(c.solver, i, c.pieces(i, nil, starts))
}

// pieces returns the marks of a body by its instructions. starts are the positions at which a
// run begins when execution comes back to the body, and kin the bodies that share code with it.
func (c *Code) pieces(i int32, kin map[int32]kinship, starts map[body.Place]bool) []flow.Mark {
	b := &c.Bodies[i]
	g := c.Graph
	var out []flow.Mark
	for n := range g.Blocks {
		block := &g.Blocks[n]
		piece := false // an instruction of the body was in the block before
		within := false
		var first body.Place // of the last piece that began a run
		var shape, global uint64
		begun := block.First // the first instruction of that piece
		owned := false       // an instruction of the body's own text, not of what is inlined into it, was since then
		pending := -1        // an instruction of the caller after a piece
		other := int32(-1)   // the body before that shares code with this one
		var copies struct{ known, turns bool }
		var alone struct{ known, copies bool }
		for at := block.First; at < block.Last; at++ {
			in := &g.Insns[at]
			if in.Kind == flow.Nop {
				continue
			}
			r := c.RowAt(at)
			if r != nil && i > 0 && c.EntryRow(r) || c.IsLent(i, at) {
				continue
			}
			if own := c.Owner[at]; own < i || own >= b.End {
				if r != nil && (r.Line == 0 || in.Kind == flow.Plain && c.Sunk(i, at, r) && !c.Acts(at)) || c.Unframes(i, at) {
					continue // of no position: merged from several, or of no statement
				}
				if !alone.known {
					alone.known, alone.copies = true, c.CopiesAlone(i, int32(n))
				}
				if alone.copies {
					continue // it is of the way to there that is another turn of the body's own loop
				}
				if m := c.member(kin, own); m >= 0 {
					if m != other && r != nil && starts[c.placeIn(kin, i, r, at)] {
						if goesOn, _ := c.goesOnIn(kin, i, m, int32(n), at); !goesOn {
							out = append(out, flow.Mark{Insn: at, Kind: flow.MarkExit})
							piece, within, pending = false, false, -1
						}
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
			if r != nil && r.Line == 0 && (kin != nil && c.Bodies[i].Merged || !piece && (in.Kind == flow.Jump || !c.Acts(at))) {
				continue
			}
			var pos body.Place
			if r != nil {
				pos = c.placeIn(kin, i, r, at)
			}
			begins, perhaps := starts[pos], false
			if begins && kin != nil && !piece {
				var goesOn bool
				goesOn, perhaps = c.goesOnIn(kin, i, i, int32(n), at)
				begins = !goesOn
			}
			row := r != nil && r.Addr == in.Addr
			switch {
			case !piece:
				kind := flow.MarkInside
				if begins || starts != nil && kin == nil && (c.loadsFor(i, at, starts) || c.UsedAgain(i, at, func(n int32) bool { return starts[c.PlaceOf(c.RowAt(n), n)] })) {
					kind = flow.MarkEnter
				}
				if perhaps || begins && c.BehindTest(i, int32(n), at) || c.OnlyLeaves(i, at) {
					kind = flow.MarkPerhaps
				}
				out = append(out, flow.Mark{Insn: at, Kind: kind})
				first, shape, global, owned, begun = pos, c.Shape(at), c.Global(at), false, at
			case begins && (row || global != 0 && c.Global(at) == global) && !c.Unit.IsGo() && pos == first && c.Shape(at) == shape && (owned || first.Own == i || !c.Owns(i, block)) &&
				c.Repeated(i, block, begun, at),
				begins && row && pending >= 0 && !starts[first] && !c.Unit.IsGo():
				// A copy: the caller's loop is unrolled. A body that begins with another one has
				// something of its own in each copy: otherwise a loop of its own is unrolled. Go's
				// compiler unrolls none. Where nothing of the caller's is between two copies, and the body has nothing further behind them,
				// it may be either; and where GCC may have put what is between two parts of one sum there.
				gone, kind := at, flow.MarkPerhaps
				switch {
				case pending >= 0 && (!c.Unit.GNU() || c.ActsFrom(i, begun, at)):
					if gone = int32(pending); !c.TurnsOn(i, int32(n)) && (!c.Unit.GNU() || c.ActsAgain(i, begun, at)) {
						kind = flow.MarkEnter
					}
				case !copies.known:
					copies.known, copies.turns = true, c.GoesOnBehind(i, int32(n), begun, at)
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
			owned = owned || c.Owner[at] == i
			piece, within, pending = true, true, -1
		}
		if piece && pending >= 0 {
			out = append(out, flow.Mark{Insn: int32(pending), Kind: flow.MarkAway})
		}
	}
	return out
}

// loadsFor reports whether a block of LLVM's code, to which only instructions that are not a body's lead, begins with some of the body that only load or compute what another
// one in it needs, for the same line, at whose position runs begin elsewhere: one turn of a caller's loop has in a register what others load. A turn of the body's
// own loop, behind instructions of the caller's, looks the same.
func (c *Code) loadsFor(i, first int32, starts map[body.Place]bool) bool {
	n := c.Graph.Block(first)
	line := c.RowAt(first)
	if c.Unit.GNU() || c.Unit.IsGo() || line == nil || line.Line == 0 || first != c.Past(c.Graph.Blocks[n].First) ||
		!c.Graph.OnlyBehind(n, func(last int32) bool { return !c.Bodies[i].Has(c.Owner[last]) }) {
		return false
	}
	for at := first; at < c.Graph.Blocks[n].Last; at++ {
		r := c.RowAt(at)
		if r == nil || !c.Bodies[i].Has(c.Owner[at]) || r.Line != 0 && (r.File != line.File || r.Line != line.Line) {
			return false
		}
		if starts[c.PlaceOf(r, at)] {
			return at > first
		}
		if c.Graph.Insns[at].Kind != flow.Plain || c.Acts(at) {
			return false
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
	for _, w := range c.solver.Solve(c.piecesOf(i, c.kinOf(i), nil), nil).In {
		in = append(in, w.Insn)
	}
	c.begins[i] = in
	return in
}

// solveMerged is solve for a body that shares code with others.
func (c *Code) solveMerged(i int32, kin map[int32]kinship) flow.Runs {
	starts := make(map[body.Place]bool)
	note := func(x int32) {
		for _, n := range c.beginsOf(x) {
			if r := c.RowAt(n); r != nil {
				starts[c.placeIn(kin, i, r, n)] = true
			}
		}
	}
	note(i)
	for x := range kin {
		note(x)
	}
	return c.solver.Solve(c.piecesOf(i, kin, starts), nil)
}
