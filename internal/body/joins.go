package body

import (
	"slices"
	"sort"

	"github.com/bpfprologue/bpfprologue/internal/flow"
)

// GCC merges equal ends of blocks (-fcrossjumping): one of two blocks becomes a jump into the other. The statements that it had before the
// first merged instruction stay before the jump, and those of the other before the target; the jump comes behind the latter.
// And it threads jumps past tests whose result is known: the target then lies behind statements without code of the path that falls through.

// joins says where the graph's jumps come to statements that share an address, if not before all of them.
func (c *Code) joins() map[[2]int32]flow.Join {
	var out map[[2]int32]flow.Join
	for n := range c.graph.Blocks {
		b := &c.graph.Blocks[n]
		last := b.Last - 1
		kind := c.graph.Insns[last].Kind
		if kind != flow.Jump && kind != flow.Branch {
			continue
		}
		for _, to := range b.Succs {
			if c.graph.Paths(to) < 2 || int32(n)+1 == to && c.graph.FallsThrough(int32(n)) {
				continue
			}
			at := statementsAt(c.statementRows, c.graph.Insns[c.graph.Blocks[to].First].Addr)
			if len(at) == 0 {
				continue
			}
			var own []statement // of a jump that is always taken
			if kind == flow.Jump {
				own = statementsAt(c.statementRows, c.graph.Insns[last].Addr)
			}
			var join flow.Join
			switch {
			case c.repeatsLast(own, at), c.repeatsWhole(own, at):
				join = flow.JoinLast
			case c.goesOnIn(own, at), c.behindTail(int32(n), at), kind == flow.Jump && c.repeatsEnd(int32(n), at), kind == flow.Branch && c.repeatsTest(int32(n), at):
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

// statementsAt returns those of some statements, which are sorted, that begin at an address.
func statementsAt(rows []statement, addr uint64) []statement {
	lo := sort.Search(len(rows), func(i int) bool { return rows[i].addr >= addr })
	hi := lo
	for hi < len(rows) && rows[hi].addr == addr {
		hi++
	}
	return rows[lo:hi]
}

// repeatsLast reports whether the last one of some statements is that of others, in a body of the same function.
func (c *Code) repeatsLast(at, others []statement) bool {
	if len(at) == 0 {
		return false
	}
	x, y := &at[len(at)-1], &others[len(others)-1]
	return x.place == y.place && c.functionOf(x.own) == c.functionOf(y.own)
}

// repeatsWhole reports whether some statements, which have no code before the jump behind them, have the last one of others, in a body of the same function, and go on with
// those that follow the others in their block: what GCC has merged has several statements, and the jump's own are all before it.
func (c *Code) repeatsWhole(at, others []statement) bool {
	last := &others[len(others)-1]
	next := sort.Search(len(c.statementRows), func(i int) bool { return c.statementRows[i].addr > last.addr })
	if next == len(c.statementRows) || c.statementRows[next].block != last.block {
		return false
	}
	like := func(x, y *statement) bool { return x.place == y.place && c.functionOf(x.own) == c.functionOf(y.own) }
	for k := range at[:max(len(at)-1, 0)] {
		if like(&at[k], last) && like(&at[k+1], &c.statementRows[next]) {
			return true
		}
	}
	return false
}

// goesOnIn reports whether the last one of some statements, which has no code before the jump behind it, is of a body that may go on in equal
// code of another one: it does not begin there.
func (c *Code) goesOnIn(at, others []statement) bool {
	if len(at) == 0 {
		return false
	}
	x, y := at[len(at)-1].own, others[len(others)-1].own
	b := &c.bodies[y]
	return c.bodies[x].parent >= 0 && b.parent >= 0 && !c.bodies[x].has(y) && !b.has(x) && !slices.ContainsFunc(others, func(r statement) bool {
		return b.has(r.own) && (c.declared(&r) || b.live && b.start == r.addr && uint64(b.view) <= r.view)
	})
}

// behindTail reports whether statements begin with the end of a body, not with its beginning, in which a block that leads there does not end,
// and go on with that with which the block does: only those behind it can be what the block leads to.
func (c *Code) behindTail(from int32, at []statement) bool {
	first, addr := &at[0], at[0].addr
	ended := statementsAt(c.ended, addr)
	if len(ended) > 0 && ended[0].view < first.view {
		first = &ended[0]
	}
	b := &c.bodies[first.own]
	if len(at)+len(ended) < 2 || b.parent < 0 || c.declared(first) || b.live && b.start == addr && uint64(b.view) <= first.view {
		return false
	}
	last := c.lastIn(from)
	if last == nil || b.has(last.own) {
		return false
	}
	same := func(r statement) bool { return r.place == last.place && c.functionOf(r.own) == c.functionOf(last.own) }
	return slices.ContainsFunc(at, same) || slices.ContainsFunc(ended, same)
}

// repeatsEnd reports whether some statements have the end of a body with which the block that leads there ends too, in another body of its function,
// and go on behind it: only with what is there can the block go on.
func (c *Code) repeatsEnd(from int32, at []statement) bool {
	var last *statement
	for k := 0; k+1 < len(at); k++ {
		r := &at[k]
		if c.bodies[r.own].parent < 0 || c.bodies[r.own].has(at[k+1].own) {
			continue
		}
		if last == nil {
			if last = c.lastIn(from); last == nil || c.bodies[last.own].parent < 0 {
				return false
			}
		}
		place := r.place
		place.own = last.place.own
		if r.own != last.own && place == last.place && c.functionOf(r.own) == c.functionOf(last.own) {
			return true
		}
	}
	return false
}

// repeatsTest reports whether some statements of several bodies have the one with which the block that leads there ends, and go on behind it: on another path its test was
// known, and has left no code, nor have those before it. Only with what is behind can the block go on.
func (c *Code) repeatsTest(from int32, at []statement) bool {
	last := c.lastIn(from)
	if last == nil || c.bodies[last.own].parent < 0 {
		return false
	}
	other := false
	for k := 0; k+1 < len(at); k++ {
		if r := &at[k]; other && r.place == last.place {
			return true
		}
		other = other || !c.bodies[at[k].own].has(last.own)
	}
	return false
}

// lastIn returns the last statement of a block, or of that which alone leads there, or nil.
func (c *Code) lastIn(block int32) *statement {
	for {
		b := &c.graph.Blocks[block]
		switch r := c.lastBefore(block, b.Last); {
		case r != nil:
			return r
		case block == 0 || c.graph.Paths(block) != 1 || !c.graph.FallsThrough(block-1):
			return nil
		}
		block--
	}
}

// lastBefore returns the last statement of a block before an instruction, or nil.
func (c *Code) lastBefore(block, insn int32) *statement {
	k := sort.Search(len(c.statementRows), func(i int) bool { return c.statementRows[i].insn >= insn }) - 1
	if k < 0 || c.statementRows[k].insn < c.graph.Blocks[block].First {
		return nil
	}
	return &c.statementRows[k]
}

// inTail reports whether a way in may be at an equal end that the body has in common with another one, which is not around it, nor inside it: on some
// path execution comes from a statement of that to one that is not the body's first, and it comes there from the body too.
func (c *Code) inTail(i int32, w *flow.Way, all []flow.Way) bool {
	if len(w.Before) == 0 && w.Probe == w.Insn || c.beginsWith(i, w) {
		return false
	}
	own := func(r statement) bool { return r.own == i }
	begins := func(x flow.Way) bool { return c.beginsWith(i, &x) }
	if !slices.ContainsFunc(statementsAt(c.statementRows, c.graph.Insns[w.Insn].Addr), own) || !slices.ContainsFunc(all, begins) {
		return false
	}
	found := false
	c.eachLast(w.Insn, func(r *statement) {
		found = found || c.bodies[r.own].parent >= 0 && !c.bodies[i].has(r.own) && !c.bodies[r.own].has(i)
	})
	return found
}

// eachLast calls f with the last statements on the paths to an instruction.
func (c *Code) eachLast(insn int32, f func(r *statement)) {
	seen := make(map[int32]bool)
	var visit func(block, end int32)
	visit = func(block, end int32) {
		if r := c.lastBefore(block, end); r != nil {
			f(r)
			return
		}
		c.graph.OnlyBehind(block, func(last int32) bool {
			if p := c.graph.Block(last); !seen[p] {
				seen[p] = true
				visit(p, last+1)
			}
			return true
		})
	}
	visit(c.graph.Block(insn), insn)
}

// Joined reports whether paths from several instructions outside of a record's body meet at an address: at an instruction of the body, or where
// one of the paths comes behind the body.
func (c *Code) Joined(rec int32, addr uint64) bool {
	i, ok := c.body(rec)
	if !ok || c.Why != "" {
		return false
	}
	b := &c.bodies[i]
	n, ok := c.graph.At(addr)
	if !ok || !c.graph.Meets(int32(n)) {
		return false
	}
	outside, behind := 0, false
	at := statementsAt(c.statementRows, addr)
	c.graph.OnlyBehind(c.graph.Block(int32(n)), func(last int32) bool {
		if !b.has(c.owner[last]) {
			outside++
			behind = behind || c.repeatsEnd(c.graph.Block(last), at)
		}
		return true
	})
	return outside > 1 && (behind || b.has(c.owner[n]))
}
