package motion

import (
	"slices"
	"sort"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/flow"
)

// GCC writes a row of the line table where the place changes, in the order of addresses, and gives instructions that have none, as many that it makes itself, the place of
// those before them. Where execution comes to a block by a jump, what stands before it is something else that ran: the place says nothing until it changes.

// borrowed reports whether an instruction may have no place but that of the one before it in the code.
func (c *Rules) borrowed(n int32) bool {
	return c.Unit.GNU() && c.placedAsBefore(n)
}

// NotItsPlace reports whether an instruction of a body of GCC's code has no place but that of an instruction before it that is not the body's: GCC gives that place to what has none,
// as to a jump to a function behind what ends the caller.
func (c *Rules) NotItsPlace(i, n int32) bool {
	r := c.RowAt(n)
	if r == nil || !c.Unit.GNU() || r.Line == c.Bodies[i].Text.Line {
		return false // a macro has them all in one line
	}
	for at := n - 1; at >= 0; at-- {
		x := c.RowAt(at)
		if x == nil || !x.SamePlace(r) {
			break
		}
		if !c.Bodies[i].Has(c.Owner[at]) {
			return true
		}
	}
	return false
}

// placedAsBefore reports whether an instruction has the place of the one before it in the code.
func (c *Rules) placedAsBefore(n int32) bool {
	if n == 0 {
		return false
	}
	x, y := c.RowAt(n-1), c.RowAt(n)
	return x != nil && y != nil && c.PlaceOf(x, n-1) == c.PlaceOf(y, n)
}

// jumpedTo reports whether the instructions of a block of GCC's code have no place but that of what stands before it and does not lead to it: GCC puts code of its
// own, such as what loads registers again, behind other code.
func (c *Rules) jumpedTo(block int32) bool {
	b := &c.Graph.Blocks[block]
	for at := b.First; at < b.Last; at++ {
		if !c.placedAsBefore(at) {
			return false
		}
	}
	return block > 0 && !c.Graph.FallsThrough(block-1)
}

// Guessed reports whether only a borrowed place says that a run of a body begins at a way in: that of the way itself, to which execution only jumps; or that of the caller's
// instructions before it, to which the body itself jumps, as for another turn of its loop; or that of another body's.
func (c *Rules) Guessed(i int32, w *flow.Way) bool {
	g := c.Graph
	if c.NotItsPlace(i, w.Insn) && g.Insns[w.Insn].Addr != c.Bodies[i].Start {
		return true
	}
	n := g.Block(w.Insn)
	first := c.Past(g.Blocks[n].First)
	if first == w.Insn {
		if c.borrowed(first) && (n == 0 || !g.FallsThrough(n-1)) {
			return true
		}
		return c.Unit.GNU() && c.turnsBack(i, n)
	}
	return c.noPlace(i, first, w.Insn) && !g.OnlyBehind(n, func(last int32) bool {
		return last+1 == g.Blocks[n].First || !c.Bodies[i].Has(c.Owner[last])
	})
}

// noPlace reports whether instructions are not a body's, and have no places of their own.
func (c *Rules) noPlace(i, from, to int32) bool {
	for at := from; at < to; at++ {
		if c.Bodies[i].Has(c.Owner[at]) || !c.borrowed(at) {
			return false
		}
	}
	return from < to
}

// turnsBack reports whether a body goes on from a block to another one, between which and the first one nothing is but instructions of the caller's, in one block, that have no
// places of their own, or copy registers: GCC copies what each turn of a loop begins with to the registers that the turn changes, and gives such copies places that say
// nothing, as that of the function. A loop of the caller's around the body, which tests for it, looks the same.
func (c *Rules) turnsBack(i, first int32) bool {
	g := c.Graph
	heads := make(map[int32]bool)
	own := func(at int32) bool { return c.Bodies[i].Has(c.Owner[at]) }
	g.OnlyBehind(first, func(last int32) bool {
		p := g.Block(last)
		b := &g.Blocks[p]
		if len(b.Succs) == 1 && p != first && (c.noPlace(i, b.First, b.Last) || c.onlyCopies(i, p) && !g.OnlyBehind(p, own)) {
			heads[p] = true // copies that only the body comes to are CopiesAlone
		}
		return true
	})
	if len(heads) == 0 {
		return false
	}
	seen := map[int32]bool{first: true}
	for work := []int32{first}; len(work) > 0; {
		b := &g.Blocks[work[0]]
		work = work[1:]
		if !own(b.Last - 1) {
			continue
		}
		for _, to := range b.Succs {
			switch {
			case heads[to] && g.Blocks[to].First != b.Last:
				return true
			case !seen[to] && own(c.Past(g.Blocks[to].First)):
				seen[to] = true
				work = append(work, to)
			}
		}
	}
	return false
}

// EntryRow reports whether a row is that of the beginning of a function out of line, which says nothing of its instructions: LLVM counts those that save registers to a body
// that begins behind them, and gives no other row to those without a position that come next.
func (c *Rules) EntryRow(r *dw.Row) bool {
	return r.Column == 0 && !c.Unit.GNU() && !c.Unit.IsGo() && len(c.Ranges) > 0 && r.Addr == c.Ranges[0].Lo
}

// Sunk reports whether an instruction of the caller's has what LLVM makes of two positions in the line of a body's call, that line without a column: it puts an instruction whose
// result only a part of the body needs in front of that, and what is merged of its position in the call and of that of the body's instruction there is in the call's
// line (MachineSinking, DILocation::getMergedLocation). Where columns are not written, the call has none either.
func (c *Rules) Sunk(i, at int32, r *dw.Row) bool {
	if r.Column != 0 || c.Unit.GNU() || c.Unit.IsGo() {
		return false
	}
	for b := &c.Bodies[i]; b.Parent >= 0; b = &c.Bodies[b.Parent] {
		if b.Parent == c.Owner[at] {
			return b.Call.Column != 0 && b.Call.Line == r.Line && b.Call.File == r.File
		}
	}
	return false
}

// OnlyLeaves reports whether all that is left of a piece of a body is a jump out of the body: LLVM copies the end of a block to paths that go on alike, also to those of
// others, and the jump keeps the position of a run's end. It may also be all that is left of a run.
func (c *Rules) OnlyLeaves(i, at int32) bool {
	return !c.Unit.GNU() && !c.Unit.IsGo() && c.Graph.Insns[at].Kind == flow.Jump && !c.entersAny(i, c.Graph.Blocks[c.Graph.Block(at)].Succs)
}

// BehindTest reports whether a piece of a body is in a block to which only a test of the body's leads, and begins with no copy of an instruction before that: LLVM loads
// behind a test what the caller passes, if only one side needs it, and the body may go on there.
func (c *Rules) BehindTest(i, block, at int32) (behind bool) {
	if c.Unit.GNU() || c.Unit.IsGo() || c.Graph.Paths(block) != 1 {
		return false
	}
	c.Graph.OnlyBehind(block, func(last int32) bool {
		behind = c.Graph.Insns[last].Kind == flow.Branch && c.Bodies[i].Has(c.Owner[last])
		for k := c.Graph.Blocks[c.Graph.Block(last)].First; k < last; k++ {
			behind = behind && (!c.Bodies[i].Has(c.Owner[k]) || c.Shape(k) != c.Shape(at))
		}
		return true
	})
	return behind
}

// OnlyComputes reports whether all that is known of a piece of a body that begins at an instruction is that it computes something for the caller, where the body
// does what can be seen: GCC gives a value that it needs at several places the position of one of them. It may also be all that is left of a run.
func (c *Rules) OnlyComputes(i, first int32) bool {
	return c.Unit.GNU() && c.idle(i, first) && c.actsAtAll(i)
}

// OnceMore reports whether a piece of a body of LLVM's code, to which execution can come from another way in, not in a loop, does nothing that can be seen where the body does, and is like nothing else in it: LLVM
// gives a value that the caller needs too the position of the body's. It may also be all that is left of a run.
func (c *Rules) OnceMore(i, first int32, in []flow.Way) bool {
	if c.Unit.GNU() || c.Unit.IsGo() || !c.idle(i, first) || !c.actsAtAll(i) {
		return false
	}
	n := c.Graph.Block(first)
	end := first
	for ; end < c.Graph.Blocks[n].Last && c.Bodies[i].Has(c.Owner[end]); end++ {
	}
	return !c.copied(first, end) && slices.ContainsFunc(in, func(w flow.Way) bool {
		if w.Insn == first {
			return false
		}
		from := c.Graph.Block(w.Insn)
		comes, _ := c.Graph.Ahead(from, func(block int32) bool { return block == n })
		if !comes {
			return false
		}
		back, _ := c.Graph.Ahead(n, func(block int32) bool { return block == from })
		return !back // in a loop each can be a run of its own
	})
}

// TwinFirst reports whether all that is known of a piece of a body is that it computes something (see OnlyComputes), and another body of the function begins on a path from there before the body does
// what can be seen: GCC computes ahead of a test what several bodies need (-fcode-hoisting), at the position of one, and merges the rest of that with theirs. A run would have done it.
func (c *Rules) TwinFirst(i, first int32) bool {
	t := c.TwinsOf(i)
	if t == nil || !c.OnlyComputes(i, first) {
		return false
	}
	found := false
	c.Graph.AllPaths(c.Graph.Block(first), func(n int32) (settled, ok bool) {
		b := &c.Graph.Blocks[n]
		from := b.First
		if n == c.Graph.Block(first) {
			from = first
		}
		for k := sort.Search(len(c.Statements), func(k int) bool { return c.Statements[k].Insn >= from }); k < len(c.Statements) && c.Statements[k].Insn < b.Last; k++ {
			if r := &c.Statements[k]; t.Starts[r.Place] && t.Has(c.Code, r.Own, i) {
				found = true
				return true, true
			}
		}
		_, acts := c.ownIn(i, n)
		return acts || len(b.Succs) == 0, true
	})
	return found
}

// Unframes reports whether an instruction of GCC's code ends the function's frame: it changes the stack pointer, and behind it in its block is nothing but a body's rest and more such, before
// the function is left. GCC puts that rest behind it, or between. No statement of the caller's is there.
func (c *Rules) Unframes(i, at int32) bool {
	g := c.Graph
	last := g.Blocks[g.Block(at)].Last - 1
	if !c.Unit.GNU() || g.Insns[last].Kind != flow.Leave {
		return false
	}
	sp := uint64(c.Unit.Image.Arch().SP)
	for ; at < last; at++ {
		if c.Bodies[i].Has(c.Owner[at]) || g.Insns[at].Kind == flow.Nop {
			continue
		}
		if w, ok := c.Arch.Writes(g.Bytes(at)); !ok || !w.Registers.Has(sp) || c.Acts(at) {
			return false
		}
	}
	return true
}
