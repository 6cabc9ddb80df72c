package body

import (
	"cmp"
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/dw"
)

// readRows reads the rows of the line table for the function's code, and finds the body that
// each belongs to.
//
// The rows of one address are in the order of the source, and a body can begin or end between
// them, as GCC's do: what is inlined ends, its caller's next statement begins, and with it what
// that calls. Inside a range of a body all rows are the body's. At its edges a row belongs to
// the body whose function's text it is in, if one begins or ends there, and else to that of the
// instruction.
func (c *Code) readRows() error {
	rows, err := c.u.Rows()
	if err != nil {
		return err
	}
	edges := c.edges[:0]
	note := func(addr uint64, b int32) { edges = append(edges, edge{addr, b}) }
	for i := range c.bodies {
		b := &c.bodies[i]
		for _, r := range b.ranges {
			note(r.Lo, int32(i))
			if r.Hi != r.Lo {
				note(r.Hi, int32(i))
			}
		}
		if b.live {
			note(b.start, int32(i))
		}
	}
	slices.SortFunc(edges, func(a, b edge) int {
		if a.addr != b.addr { // cmp.Or would compare both
			return cmp.Compare(a.addr, b.addr)
		}
		return cmp.Compare(a.body, b.body)
	})
	edges = slices.Compact(edges)
	c.edges = edges
	var here []int32 // the bodies of the edges at an address
	hereAt, next := ^uint64(0), 0
	edgesAt := func(addr uint64) []int32 {
		if addr == hereAt {
			return here
		}
		for here, hereAt = here[:0], addr; next < len(edges) && edges[next].addr <= addr; next++ {
			if edges[next].addr == addr {
				here = append(here, edges[next].body)
			}
		}
		return here
	}
	for _, r := range c.ranges {
		i, _ := slices.BinarySearchFunc(rows, r.Lo, func(r dw.Row, a uint64) int { return cmp.Compare(r.Addr, a) })
		last := int32(-1) // the body of the statement before
		c.addRows(rows[i:], r.Hi)
		for ; i < len(rows) && rows[i].Addr < r.Hi; i++ {
			if rows[i].End {
				continue
			}
			if !rows[i].Stmt {
				continue
			}
			own, ended := c.ownerOf(&rows[i], edgesAt(rows[i].Addr), last)
			last = own
			n, ok := c.graph.At(rows[i].Addr)
			if !ok {
				continue
			}
			at := int32(n)
			r := statement{
				addr: rows[i].Addr, view: uint64(rows[i].View), place: rowPlace{file: rows[i].File, line: rows[i].Line, column: rows[i].Column}, own: own, insn: at, past: c.past(at), block: c.graph.Block(at),
			}
			if ended {
				c.ended = append(c.ended, r)
			} else {
				c.statementRows = append(c.statementRows, r)
			}
		}
	}
	return nil
}

// readRuns finds the runs.
func (c *Code) readRuns() {
	c.runs = c.runs[:0]
	for k := 0; k < len(c.statementRows); {
		first := &c.statementRows[k]
		run := rowRun{first: int32(k), least: first.own, most: first.own}
		for ; k < len(c.statementRows) && c.statementRows[k].block == first.block; k++ {
			own := c.statementRows[k].own
			run.least, run.most = min(run.least, own), max(run.most, own)
		}
		run.end, run.last = int32(k), c.statementRows[k-1].addr
		c.runs = append(c.runs, run)
	}
}

// addRows adds the rows before an address that are of instructions. Of a function in one piece,
// as nearly all are, they are not copied.
func (c *Code) addRows(rows []dw.Row, hi uint64) {
	n, ends, statements := 0, 0, 0
	for ; n < len(rows) && rows[n].Addr < hi; n++ {
		switch {
		case rows[n].End:
			ends++
		case rows[n].Stmt:
			statements++
		}
	}
	c.statementRows = slices.Grow(c.statementRows, statements)
	if c.rows == nil && ends == 0 {
		c.rows = rows[:n:n]
		return
	}
	c.rows = slices.Grow(c.rows, n)
	for i := range rows[:n] {
		if !rows[i].End {
			c.rows = append(c.rows, rows[i])
		}
	}
}

// ownerOf returns the body that a row belongs to. edges are those that begin or end there, and
// last is the body of the statement before. ended is set if the body's code ends there: it is a
// last statement without code.
func (c *Code) ownerOf(r *dw.Row, edges []int32, last int32) (own int32, ended bool) {
	n, ok := c.graph.At(r.Addr)
	holder := int32(0) // the innermost body that has the instruction
	if ok {
		holder = c.owner[n]
	} else {
		holder = c.holding(r.Addr)
	}
	if len(edges) == 0 {
		return holder, false
	}
	at := c.texts.at(c.u, r)
	if at == (text{}) {
		return holder, false
	}
	around := last >= 0 && c.bodies[holder].text == at && c.bodies[holder].has(last)
	if !around && c.goesOn(last, r, at, edges) {
		return last, true
	}
	if b := c.unfinished(last, r, at, edges); b >= 0 {
		return b, true
	}
	best := int32(-1)
	for b := holder; b >= 0; b = c.bodies[b].parent {
		if c.bodies[b].text == at {
			best = b
			break
		}
		if !slices.Contains(edges, b) {
			break // the row is inside a range of the body
		}
	}
	if b := c.calledFrom(last, r, at, edges); b >= 0 {
		return b, false
	}
	if best >= 0 && !c.before(best, r) {
		return c.latest(best, r, edges), false
	}
	best = -1
	for _, b := range edges {
		if c.bodies[b].text == at && !c.before(b, r) {
			best = b
		}
	}
	if best < 0 {
		return holder, false
	}
	return best, !c.bodies[best].beginsAt(r.Addr)
}

// calledFrom returns the body to which a row belongs at an address where several instances of its function begin, and nothing says in which order: that of the statement before,
// one around that, or the only one which one of these calls. Of several it is the one called by the statement before. It is -1 if there is none, or only one begins.
func (c *Code) calledFrom(last int32, r *dw.Row, at text, edges []int32) int32 {
	begins := func(b int32) bool {
		x := &c.bodies[b]
		return x.text == at && x.marked && !x.viewed && x.start == r.Addr
	}
	count := 0
	for _, b := range edges {
		if begins(b) {
			count++
		}
	}
	if count < 2 {
		return -1
	}
	for a := last; a >= 0; a = c.bodies[a].parent {
		if begins(a) {
			return a
		}
		own, called := int32(-1), 0
		for _, b := range edges {
			if x := &c.bodies[b]; x.parent == a && begins(b) {
				called++
				if n := len(c.statementRows); own < 0 || n > 0 && c.statementRows[n-1].own == a && c.statementRows[n-1].place.line == x.call.line && c.statementRows[n-1].place.file == x.call.file {
					own = b
				}
			}
		}
		if called > 0 {
			return own
		}
	}
	return -1
}

// latest returns the instance of a body's function to which a row at one of the body's instructions belongs: that which
// begins last at the address, if one does, by a view that is not after the row. GCC moves instructions of one instance behind the place where
// the next begins.
func (c *Code) latest(own int32, r *dw.Row, edges []int32) int32 {
	for _, b := range edges {
		x, best := &c.bodies[b], &c.bodies[own]
		// SYSCALL_DEFINE declares several functions at one place.
		same := x.text == best.text && c.u.Recs[x.rec].Root == c.u.Recs[best.rec].Root
		if same && x.live && x.start == r.Addr && x.viewed && !c.before(b, r) && (best.start != r.Addr || x.view > best.view) {
			own = b
		}
	}
	return own
}

// beginsAt reports whether the body, or a part of it, begins at an address.
func (b *body) beginsAt(addr uint64) bool {
	return b.live && b.start == addr || slices.ContainsFunc(b.ranges, func(r dw.Range) bool { return r.Lo == addr })
}

// goesOn reports whether a row is a last statement, without code, of the body that the statement
// before belongs to. Of several instances of one function that meet at an address, the one that
// was last goes on, until another begins there.
func (c *Code) goesOn(last int32, r *dw.Row, at text, edges []int32) bool {
	if last < 0 || c.bodies[last].text != at || !c.bodies[last].endsAt(r.Addr) || c.bodies[last].beginsAt(r.Addr) {
		return false
	}
	return !slices.ContainsFunc(edges, func(b int32) bool {
		x := &c.bodies[b]
		return x.text == at && x.live && x.start == r.Addr && !c.before(b, r)
	})
}

// unfinished returns the body, of those that the statement before belongs to, of which a row is a last statement without code where another instance of the function begins that
// has no view: then nothing says which of the two the row is of, but that the one before has not been there yet, and begins with another statement. It is -1 if there is none.
func (c *Code) unfinished(last int32, r *dw.Row, at text, edges []int32) int32 {
	own := last
	for own >= 0 && c.bodies[own].text != at {
		own = c.bodies[own].parent
	}
	if own < 0 || !c.bodies[own].endsAt(r.Addr) || c.bodies[own].beginsAt(r.Addr) {
		return -1
	}
	b := &c.bodies[own]
	begins := func(k int32) bool {
		x := &c.bodies[k]
		return x.text == at && x.marked && !x.viewed && x.start == r.Addr && !b.has(k)
	}
	if !slices.ContainsFunc(edges, begins) {
		return -1
	}
	place := rowPlace{file: r.File, line: r.Line, column: r.Column}
	been := slices.ContainsFunc(c.statementRows, func(s statement) bool { return b.has(s.own) && s.place == place })
	if been {
		return -1
	}
	return own
}

// endsAt reports whether a part of the body ends at an address, after its code.
func (b *body) endsAt(addr uint64) bool {
	return slices.ContainsFunc(b.ranges, func(r dw.Range) bool { return r.Hi == addr && r.Lo < addr })
}

// before reports whether a row is before the place where a body begins, at its address.
func (c *Code) before(b int32, r *dw.Row) bool {
	x := &c.bodies[b]
	return x.live && x.start == r.Addr && uint64(r.View) < x.view
}

// holding returns the innermost body with a range that holds an address.
func (c *Code) holding(addr uint64) int32 {
	for i := len(c.bodies) - 1; i > 0; i-- {
		if dw.Covers(c.bodies[i].ranges, addr) {
			return int32(i)
		}
	}
	return 0
}
