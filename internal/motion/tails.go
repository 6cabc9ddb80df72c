package motion

import (
	"slices"
	"sort"

	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/flow"
)

// GCC merges equal ends of blocks (-fcrossjumping): one of two blocks becomes a jump into the other. The statements that it had before the
// first merged instruction stay before the jump, and those of the other before the target; the jump comes behind the latter.
// And it threads jumps past tests whose result is known: the target then lies behind statements without code of the path that falls through.

// Joins says where the graph's jumps come to statements that share an address, if not before all of them.
func (c *Rules) Joins() map[[2]int32]flow.Join {
	var out map[[2]int32]flow.Join
	for n := range c.Graph.Blocks {
		b := &c.Graph.Blocks[n]
		last := b.Last - 1
		kind := c.Graph.Insns[last].Kind
		if kind != flow.Jump && kind != flow.Branch {
			continue
		}
		for _, to := range b.Succs {
			if c.Graph.Paths(to) < 2 {
				continue
			}
			falls := int32(n)+1 == to && c.Graph.FallsThrough(int32(n))
			at := body.StatementsAt(c.Statements, c.Graph.Insns[c.Graph.Blocks[to].First].Addr)
			if len(at) == 0 {
				continue
			}
			var own []body.Statement // of a jump that is always taken
			if kind == flow.Jump {
				own = body.StatementsAt(c.Statements, c.Graph.Insns[last].Addr)
			}
			var join flow.Join
			switch {
			case falls:
				if kind != flow.Branch || !c.restElsewhere(last, at) {
					continue
				}
				join = flow.JoinLast
			case c.repeatsLast(own, at), c.repeatsWhole(own, at), kind == flow.Jump && len(own) == 0 && c.restIn(int32(n), at):
				join = flow.JoinLast
			case c.goesOnIn(own, at), c.behindTail(int32(n), at), kind == flow.Jump && c.repeatsEnd(int32(n), at), len(own) == 0 && c.repeatsOwn(int32(n), to, at), kind == flow.Branch && (c.repeatsTest(int32(n), at) || c.repeatsTurn(int32(n), to, at) || c.goesOnPast(int32(n), to, at)):
				join = flow.JoinUnsure
			default:
				continue
			}
			if out == nil {
				out = make(map[[2]int32]flow.Join)
			}
			out[[2]int32{int32(n), to}] = join
		}
	}
	return out
}

// repeatsLast reports whether the last one of some statements is that of others, in a body of the same function.
func (c *Rules) repeatsLast(at, others []body.Statement) bool {
	if len(at) == 0 {
		return false
	}
	x, y := &at[len(at)-1], &others[len(others)-1]
	return x.Place == y.Place && c.FunctionOf(x.Own) == c.FunctionOf(y.Own)
}

// repeatsWhole reports whether some statements, which have no code before the jump behind them, have the last one of others, in a body of the same function, and go on with
// those that follow the others in their block: what GCC has merged has several statements, and the jump's own are all before it.
func (c *Rules) repeatsWhole(at, others []body.Statement) bool {
	last := &others[len(others)-1]
	next := sort.Search(len(c.Statements), func(i int) bool { return c.Statements[i].Addr > last.Addr })
	if next == len(c.Statements) || c.Statements[next].Block != last.Block {
		return false
	}
	like := func(x, y *body.Statement) bool {
		return x.Place == y.Place && c.FunctionOf(x.Own) == c.FunctionOf(y.Own)
	}
	for k := range at[:max(len(at)-1, 0)] {
		if like(&at[k], last) && like(&at[k+1], &c.Statements[next]) {
			return true
		}
	}
	return false
}

// restIn reports whether a block ends in the midst of a body whose rest is where it jumps to, in another body of the function: the block's last statement, which has code, is the last one of
// those there, and the body has no statement at the place of what the other one does next. A run that ends with that statement would have no rest there either, but be all of the function.
func (c *Rules) restIn(from int32, at []body.Statement) bool {
	y := &at[len(at)-1]
	r := c.lastBefore(from, c.Graph.Blocks[from].Last)
	if r == nil || r.Own == y.Own || r.Place != y.Place || c.Bodies[r.Own].Parent < 0 || c.Bodies[y.Own].Parent < 0 || c.FunctionOf(r.Own) != c.FunctionOf(y.Own) {
		return false
	}
	k := sort.Search(len(c.Statements), func(i int) bool { return c.Statements[i].Addr > y.Addr })
	if k == len(c.Statements) || c.Statements[k].Block != y.Block || c.Statements[k].Own != y.Own {
		return c.callIn(r.Own, y)
	}
	next := &c.Statements[k]
	return next.Place != y.Place && !slices.ContainsFunc(c.Statements, func(s body.Statement) bool { return s.Own == r.Own && s.Place == next.Place })
}

// callIn reports whether what follows a statement, which no other one of its body does in the block, is the call that it is of, and a body that has the same statement has none: its own was merged
// with that.
func (c *Rules) callIn(own int32, s *body.Statement) bool {
	first := c.Graph.Blocks[s.Block].First
	x, y := own, s.Own
	for y != c.Owner[first] { // the call may be of the body around both
		if x, y = c.Bodies[x].Parent, c.Bodies[y].Parent; x < 0 || y < 0 || x == y || c.FunctionOf(x) != c.FunctionOf(y) {
			return false
		}
	}
	return c.Bodies[x].Parent >= 0 && c.calls(first) && !c.HasSuch(x, c.calls)
}

// goesOnPast reports whether a test of a body leads to an instruction of the body, where the statements of another path end with the one that the test is of: on that path all that the block has of
// the body before the test is known, and has left statements alone. A run in the next turn of a loop would begin again as this one has.
func (c *Rules) goesOnPast(from, to int32, at []body.Statement) bool {
	g := c.Graph
	first, last := g.Blocks[to].First, g.Blocks[from].Last-1
	x, y := c.Owner[last], &at[len(at)-1]
	if c.Bodies[x].Parent < 0 || c.Owner[first] != x || y.Own != x || c.Bodies[x].Has(at[0].Own) {
		return false
	}
	r := c.lastIn(from)
	if r == nil || r.Own != x || r.Place != y.Place {
		return false
	}
	begun, ok := c.stepAt(r.Insn)
	here, known := c.stepAt(first)
	return ok && known && begun.place.Own == x && begun != here
}

// goesOnIn reports whether the last one of some statements, which has no code before the jump behind it, is of a body that may go on in equal
// code of another one: it does not begin there.
func (c *Rules) goesOnIn(at, others []body.Statement) bool {
	if len(at) == 0 {
		return false
	}
	x, y := at[len(at)-1].Own, others[len(others)-1].Own
	b := &c.Bodies[y]
	return c.Bodies[x].Parent >= 0 && b.Parent >= 0 && !c.Bodies[x].Has(y) && !b.Has(x) && !slices.ContainsFunc(others, func(r body.Statement) bool {
		return b.Has(r.Own) && (c.Declared(&r) || b.Live && b.Start == r.Addr && uint64(b.View) <= r.View)
	})
}

// behindTail reports whether statements begin with the end of a body, not with its beginning, in which a block that leads there does not end,
// and go on with that with which the block does: only those behind it can be what the block leads to.
func (c *Rules) behindTail(from int32, at []body.Statement) bool {
	first, addr := &at[0], at[0].Addr
	ended := body.StatementsAt(c.Ended, addr)
	if len(ended) > 0 && ended[0].View < first.View {
		first = &ended[0]
	}
	b := &c.Bodies[first.Own]
	if len(at)+len(ended) < 2 || b.Parent < 0 || c.Declared(first) || b.Live && b.Start == addr && uint64(b.View) <= first.View {
		return false
	}
	last := c.lastIn(from)
	if last == nil || b.Has(last.Own) {
		return false
	}
	same := func(r body.Statement) bool {
		return r.Place == last.Place && c.FunctionOf(r.Own) == c.FunctionOf(last.Own)
	}
	return slices.ContainsFunc(at, same) || slices.ContainsFunc(ended, same)
}

// repeatsEnd reports whether some statements have the end of a body with which the block that leads there ends too, in another body of its function,
// and go on behind it: only with what is there can the block go on.
func (c *Rules) repeatsEnd(from int32, at []body.Statement) bool {
	var last *body.Statement
	for k := 0; k+1 < len(at); k++ {
		r := &at[k]
		if c.Bodies[r.Own].Parent < 0 || c.Bodies[r.Own].Has(at[k+1].Own) {
			continue
		}
		if last == nil {
			if last = c.lastIn(from); last == nil || c.Bodies[last.Own].Parent < 0 {
				return false
			}
		}
		place := r.Place
		place.Own = last.Place.Own
		if r.Own != last.Own && place == last.Place && c.FunctionOf(r.Own) == c.FunctionOf(last.Own) {
			return true
		}
	}
	return false
}

// repeatsOwn reports whether the last one of some statements, of which others are of bodies, is that with which the block that leads there ends, of the same body. Where paths had the same
// statements, and that has code on either, GCC merges equal rests of it behind all of them. Execution comes to the statement again only in another turn of a loop.
func (c *Rules) repeatsOwn(from, to int32, at []body.Statement) bool {
	y := &at[len(at)-1]
	last := c.lastIn(from)
	if from == to || last == nil || last.Own != y.Own || last.Place != y.Place || !slices.ContainsFunc(at, func(r body.Statement) bool { return r.Own != y.Own && c.Bodies[y.Own].Has(r.Own) }) {
		return false
	}
	back, _ := c.Graph.Ahead(to, func(n int32) bool { return n == from })
	return !back
}

// repeatsTest reports whether some statements of several bodies have the one with which the block that leads there ends, and go on behind it: on another path its test was
// known, and has left no code, nor have those before it. Only with what is behind can the block go on.
func (c *Rules) repeatsTest(from int32, at []body.Statement) bool {
	last := c.lastIn(from)
	if last == nil || c.Bodies[last.Own].Parent < 0 {
		return false
	}
	other := false
	for k := 0; k+1 < len(at); k++ {
		if r := &at[k]; other && r.Place == last.Place {
			return true
		}
		other = other || !c.Bodies[at[k].Own].Has(last.Own)
	}
	return false
}

// repeatsTurn reports whether the first one of some statements is a body's, and the block that leads there, and to which execution does not come back, has that too, and behind it
// the caller's test: a turn of a loop that was unrolled has ended there. The body's statement is the last turn's, which has no test any more, and the block goes on behind it. Where the
// next turn begins, the caller's statement for that comes first.
func (c *Rules) repeatsTurn(from, to int32, at []body.Statement) bool {
	first := &at[0]
	last := c.lastBefore(from, c.Graph.Blocks[from].Last)
	if last == nil || from == to || last.Own == first.Own || !c.Bodies[last.Own].Has(first.Own) {
		return false
	}
	for k := sort.Search(len(c.Statements), func(k int) bool { return c.Statements[k].Insn >= c.Graph.Blocks[from].First }); &c.Statements[k] != last; k++ {
		if r := &c.Statements[k]; r.Own == first.Own && r.Place == first.Place {
			back, _ := c.Graph.Ahead(to, func(n int32) bool { return n == from })
			return !back
		}
	}
	return false
}

// restElsewhere reports whether all that is left of a body from a test on is in another one of its function, behind the last one of some statements: that is what others of its
// function have behind that test, and it has none. GCC has merged its rest with the other's, has put that behind it, and the jump, with its statement, has become nothing.
func (c *Rules) restElsewhere(test int32, at []body.Statement) bool {
	x, y := c.Owner[test], &at[len(at)-1]
	t := c.TwinsOf(x)
	if c.Bodies[x].Parent < 0 || t == nil || c.TwinsOf(y.Own) != t || c.Bodies[x].Has(y.Own) || c.Bodies[y.Own].Has(x) || t.Starts[y.Place] ||
		c.HasSuch(x, func(n int32) bool { return c.Graph.Insns[n].Kind != flow.Branch && c.Acts(n) }) {
		return false
	}
	tests := func(n, own int32) body.Place {
		if r := c.RowAt(n); r != nil && c.Owner[n] == own && c.Graph.Insns[n].Kind == flow.Branch {
			return body.Place{File: r.File, Line: r.Line, Column: r.Column}
		}
		return body.Place{Own: own}
	}
	behind := false
	for k := range c.Statements {
		r := &c.Statements[k]
		if r.Place != y.Place || c.TwinsOf(r.Own) != t {
			continue
		}
		if r.Own == x {
			return false
		}
		before, ok := c.Graph.OnlyBefore(c.Graph.Blocks[r.Block].First)
		behind = behind || ok && r.Own != y.Own && tests(before, r.Own) == tests(test, x)
	}
	return behind
}

// lastIn returns the last statement of a block, or of that which alone leads there, or nil.
func (c *Rules) lastIn(block int32) *body.Statement {
	for {
		b := &c.Graph.Blocks[block]
		switch r := c.lastBefore(block, b.Last); {
		case r != nil:
			return r
		case block == 0 || c.Graph.Paths(block) != 1 || !c.Graph.FallsThrough(block-1):
			return nil
		}
		block--
	}
}

// lastBefore returns the last statement of a block before an instruction, or nil.
func (c *Rules) lastBefore(block, insn int32) *body.Statement {
	k := sort.Search(len(c.Statements), func(i int) bool { return c.Statements[i].Insn >= insn }) - 1
	if k < 0 || c.Statements[k].Insn < c.Graph.Blocks[block].First {
		return nil
	}
	return &c.Statements[k]
}

// InMerged reports whether nothing of a body is left at a way in but a jump, in a block with which the block before it goes on behind its marks (see restElsewhere): what is merged there has the
// statements of one path, and the other one need not have had this run.
func (c *Rules) InMerged(w *flow.Way, joins map[[2]int32]flow.Join) bool {
	n := c.Graph.Block(w.Insn)
	return c.Graph.Insns[w.Insn].Kind == flow.Jump && w.Insn > c.Graph.Blocks[n].First && n > 0 && c.Graph.FallsThrough(n-1) && joins[[2]int32{n - 1, n}] == flow.JoinLast
}

// InTail reports whether a way in may be at an equal end that the body has in common with another one, which is not around it, nor inside it: on some
// path execution comes from a statement of that to one that is not the body's first, and it comes there from the body too.
func (c *Rules) InTail(i int32, w *flow.Way, all []flow.Way) bool {
	if len(w.Before) == 0 && w.Probe == w.Insn || c.beginsWith(i, w) {
		return false
	}
	own := func(r body.Statement) bool { return r.Own == i }
	begins := func(x flow.Way) bool { return c.beginsWith(i, &x) }
	if !slices.ContainsFunc(body.StatementsAt(c.Statements, c.Graph.Insns[w.Insn].Addr), own) || !slices.ContainsFunc(all, begins) {
		return false
	}
	found := false
	c.eachLast(c.Graph.Block(w.Insn), w.Insn, func(r *body.Statement) {
		found = found || c.Bodies[r.Own].Parent >= 0 && !c.Bodies[i].Has(r.Own) && !c.Bodies[r.Own].Has(i)
	})
	return found
}

// eachLast calls f with the last statements on the paths to an instruction of a block, or to the block's end.
func (c *Rules) eachLast(block, end int32, f func(r *body.Statement)) {
	seen := make(map[int32]bool)
	var visit func(block, end int32)
	visit = func(block, end int32) {
		if r := c.lastBefore(block, end); r != nil {
			f(r)
			return
		}
		c.Graph.OnlyBehind(block, func(last int32) bool {
			if p := c.Graph.Block(last); !seen[p] {
				seen[p] = true
				visit(p, last+1)
			}
			return true
		})
	}
	visit(block, end)
}

// Joined reports whether paths from several instructions outside of a record's body meet at an address: at an instruction of the body, or where
// one of the paths comes behind the body.
func Joined(code *body.Code, rec int32, addr uint64) bool {
	c := Of(code)
	i, ok := c.BodyOf(rec)
	if !ok || c.Why != "" {
		return false
	}
	b := &c.Bodies[i]
	n, ok := c.Graph.At(addr)
	if !ok || !c.Graph.Meets(int32(n)) {
		return false
	}
	outside, behind := 0, false
	at := body.StatementsAt(c.Statements, addr)
	c.Graph.OnlyBehind(c.Graph.Block(int32(n)), func(last int32) bool {
		if !b.Has(c.Owner[last]) {
			outside++
			behind = behind || c.repeatsEnd(c.Graph.Block(last), at)
		}
		return true
	})
	return outside > 1 && (behind || b.Has(c.Owner[n]))
}

// JoinedFrom reports whether a path comes to an address, where several meet, from an instruction that is such, by its link-time address, in code of a record's body that is entered from
// outside of the body alone: no loop's turn comes from there.
func JoinedFrom(code *body.Code, rec int32, addr uint64, such func(last uint64) bool) bool {
	c := Of(code)
	i, ok := c.BodyOf(rec)
	if !ok || c.Why != "" {
		return false
	}
	n, ok := c.Graph.At(addr)
	b := &c.Bodies[i]
	outside := func(last int32) bool { return !b.Has(c.Owner[last]) }
	return ok && c.Graph.Meets(int32(n)) && !c.Graph.OnlyBehind(c.Graph.Block(int32(n)), func(last int32) bool {
		return outside(last) || !c.Graph.OnlyBehind(c.Graph.Block(last), outside) || !such(c.Graph.Insns[last].Addr)
	})
}

// LeftOver reports whether nothing is left of a body in GCC's code but what has been computed before a test of the caller's: no place at which it is entered, no
// statement, and nothing that can be seen and no test, of which most other bodies of the function have some, or all in the same code where link-time optimization
// has put the function into another unit. GCC has merged the rest with that of another call. Where link-time optimization has, the caller needs nothing of that from a way in up to its test,
// as it does of a body that is an operand of the test alone.
func (c *Rules) LeftOver(i, from int32) bool {
	b := &c.Bodies[i]
	acts := func(n int32) bool { return c.Graph.Insns[n].Kind == flow.Branch || c.Acts(n) }
	if b.Parent < 0 || b.Marked || slices.ContainsFunc(c.Statements, func(r body.Statement) bool { return b.Has(r.Own) }) || c.HasSuch(i, acts) {
		return false
	}
	if c.Unit.Recs[b.Rec].Root >= 0 {
		return c.MostAct(b.Rec)
	}
	t := c.TwinsOf(i)
	return t != nil && !slices.ContainsFunc(t.Bodies, func(k int32) bool { return k != i && !c.HasSuch(k, acts) }) && !c.needed(i, from)
}

// Lowest reports whether a way into a body is only where the lowest piece of its code is: GCC says where a body is entered as long as anything there is
// left of it. The piece may be what is left of an end that GCC has merged with others.
func (c *Rules) Lowest(i int32, w *flow.Way) bool {
	b := &c.Bodies[i]
	return !b.Marked && len(b.Ranges) > 1 && c.Graph.Insns[w.Insn].Addr == b.Start && !c.StatementIn(i, b.Start)
}

// MergedAway reports whether nothing is left of a body, where it begins, but a record at the
// address where another body of its function begins, and two paths meet. GCC merges equal ends of
// paths and keeps the statements of both before the first instruction: it is not known which of
// the two runs there.
func (c *Rules) MergedAway(i int32) bool {
	b, t := &c.Bodies[i], c.TwinsOf(i)
	n, ok := c.Graph.At(b.Start)
	return ok && b.Live && t != nil && !b.Has(c.Owner[n]) && c.Graph.Meets(int32(n)) && slices.ContainsFunc(t.Bodies, func(k int32) bool {
		x := &c.Bodies[k]
		return k != i && x.Live && x.Start == b.Start && x.Has(c.Owner[n])
	})
}

// MergedPart reports whether a body is a part of another function than the one around it, called from where it is declared: GCC merges functions that are
// equal (-fipa-icf), and so the rest of one that it split with that of another.
func (c *Rules) MergedPart(i int32) bool {
	b := &c.Bodies[i]
	return b.Parent >= 0 && b.Text.Line != 0 && b.Call.Line == b.Text.Line && b.Call.Column != 0 && b.Call.Column == b.Text.Column &&
		c.Bodies[b.Parent].Text.Line != b.Text.Line && c.FunctionOf(b.Parent) != c.FunctionOf(i)
}
