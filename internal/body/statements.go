package body

import (
	"cmp"
	"slices"
	"sort"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/producer"
	"github.com/bpfprologue/bpfprologue/internal/radix"
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
	edges := c.edges[:0]
	note := func(addr uint64, b int32) { edges = append(edges, edge{addr, b}) }
	for i := range c.Bodies {
		b := &c.Bodies[i]
		for _, r := range b.Ranges {
			note(r.Lo, int32(i))
			if r.Hi != r.Lo {
				note(r.Hi, int32(i))
			}
		}
		if b.Live {
			note(b.Start, int32(i))
		}
	}
	edges = slices.Compact(radix.Sort(edges, func(e *edge) uint64 { return e.addr })) // bodies are in order
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
	for _, r := range c.Ranges {
		rows, err := c.Unit.RowsIn(r)
		if err != nil {
			return err
		}
		i, _ := slices.BinarySearchFunc(rows, r.Lo, func(r dw.Row, a uint64) int { return cmp.Compare(r.Addr, a) })
		last := int32(-1) // the body of the statement before
		first, _ := c.Graph.At(r.Lo)
		at := int32(first) // the first instruction that is not before the row
		c.addRows(rows[i:], r.Hi)
		for ; i < len(rows) && rows[i].Addr < r.Hi; i++ {
			if rows[i].End {
				continue
			}
			if !rows[i].Stmt {
				continue
			}
			for int(at) < len(c.Graph.Insns) && c.Graph.Insns[at].Addr < rows[i].Addr {
				at++
			}
			is := int(at) < len(c.Graph.Insns) && c.Graph.Insns[at].Addr == rows[i].Addr
			holder := int32(0) // the innermost body that has the instruction
			if is {
				holder = c.Owner[at]
			} else {
				holder = c.holding(rows[i].Addr)
			}
			own, ended := c.ownerOf(&rows[i], holder, edgesAt(rows[i].Addr), last)
			last = own
			if !is {
				continue
			}
			r := Statement{
				Addr: rows[i].Addr, View: uint64(rows[i].View), Place: Place{File: rows[i].File, Line: rows[i].Line, Column: rows[i].Column}, Own: own, Insn: at, Past: c.Past(at), Block: c.Graph.Block(at),
			}
			if ended {
				c.Ended = append(c.Ended, r)
			} else {
				c.Statements = append(c.Statements, r)
			}
		}
	}
	return nil
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
	// What is behind a gap is no neighbour: of two rows that are not of one statement each, the second would seem to be a marker's.
	c.marked = c.marked || producer.Marked(rows[:n])
	c.Statements = slices.Grow(c.Statements, statements)
	if c.Rows == nil && ends == 0 {
		c.Rows = rows[:n:n]
		return
	}
	// Some are the unit's own so far.
	if len(c.copied) < len(c.Rows) {
		c.copied = append(c.copied[:0], c.Rows...)
	}
	for i := range rows[:n] {
		if !rows[i].End {
			c.copied = append(c.copied, rows[i])
		}
	}
	c.Rows = c.copied
}

// ownerOf returns the body that a row belongs to. holder is the innermost one that has the instruction, edges are those that begin
// or end there, and last is the body of the statement before. ended is set if the body's code ends there: it is a
// last statement without code.
func (c *Code) ownerOf(r *dw.Row, holder int32, edges []int32, last int32) (own int32, ended bool) {
	if len(edges) == 0 {
		return holder, false
	}
	at := c.texts.at(c.Unit, r)
	if at == (Text{}) {
		return c.unknownText(r, holder, last)
	}
	around := last >= 0 && c.Bodies[holder].Text == at && c.Bodies[holder].Has(last)
	if !around && c.goesOn(last, r, at, edges) {
		return last, true
	}
	if b := c.unfinished(last, r, at, edges); b >= 0 {
		return b, true
	}
	best := int32(-1)
	for b := holder; b >= 0; b = c.Bodies[b].Parent {
		if c.Bodies[b].Text == at {
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
		return c.latest(best, last, r, edges, dw.IsCPlusPlus(c.Unit.Lang)), false
	}
	best = -1
	for _, b := range edges {
		if c.Bodies[b].Text == at && !c.before(b, r) {
			best = b
		}
	}
	if best < 0 {
		return holder, false
	}
	best = c.latest(best, last, r, edges, dw.IsCPlusPlus(c.Unit.Lang)) // of several without code, in the order in which they are run
	return best, !c.Bodies[best].beginsAt(r.Addr)
}

// unknownText returns the body that a row belongs to at an edge, if it is in a file where no function is known to be declared: GCC says of a function that a header of the
// system declares where that does, and not where it is defined. Such a row is of the body of the statement before, if that begins or ends there and has instructions
// with rows of the file, and the body around it has none. A body around it that includes the file too would have some.
func (c *Code) unknownText(r *dw.Row, holder, last int32) (own int32, ended bool) {
	if last < 0 || last == holder || !c.Bodies[holder].Has(last) {
		return holder, false
	}
	b := &c.Bodies[last]
	begins, ends := b.beginsAt(r.Addr) && !c.before(last, r), b.endsAt(r.Addr)
	if !begins && !ends || c.writtenIn(holder, r.File) || !c.writtenIn(last, r.File) {
		return holder, false
	}
	return last, !begins
}

// writtenIn reports whether an instruction of a body, and of none inside it, has a row of a file.
func (c *Code) writtenIn(i int32, file uint32) bool {
	rows, err := c.Unit.Rows()
	if err != nil {
		return false
	}
	for n, own := range c.Owner {
		if own == i {
			if r := dw.RowAt(rows, c.Graph.Insns[n].Addr); r != nil && r.File == file {
				return true
			}
		}
	}
	return false
}

// calledFrom returns the body to which a row belongs at an address where several instances of its function begin, and nothing says in which order: that of the statement before,
// one around that, or the only one which one of these calls. Of several it is the one called by the statement before. It is -1 if there is none, or only one begins.
func (c *Code) calledFrom(last int32, r *dw.Row, at Text, edges []int32) int32 {
	begins := func(b int32) bool {
		x := &c.Bodies[b]
		return x.Text == at && x.Marked && !x.Viewed && x.Start == r.Addr
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
	for a := last; a >= 0; a = c.Bodies[a].Parent {
		if begins(a) {
			return a
		}
		own, called := int32(-1), 0
		for _, b := range edges {
			if x := &c.Bodies[b]; x.Parent == a && begins(b) {
				called++
				if n := len(c.Statements); own < 0 || n > 0 && c.Statements[n-1].Own == a && c.Statements[n-1].Place.Line == x.Call.Line && c.Statements[n-1].Place.File == x.Call.File {
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

// latest returns the instance of a body's function to which a row at one of the body's instructions, or where it begins or ends, belongs: that which
// begins last at the address, if one does, by a view that is not after the row. GCC moves instructions of one instance behind the place where
// the next begins. So it is with two instances of a template, which are in one text, if the row is the one where the second begins, called by the statement before.
func (c *Code) latest(own, last int32, r *dw.Row, edges []int32, templates bool) int32 {
	for _, b := range edges {
		x, best := &c.Bodies[b], &c.Bodies[own]
		// SYSCALL_DEFINE declares several functions at one place.
		same := x.Text == best.Text && (c.Unit.Recs[x.Rec].Root == c.Unit.Recs[best.Rec].Root || templates && x.View == uint64(r.View) && x.Parent == last)
		if same && x.Live && x.Start == r.Addr && x.Viewed && !c.before(b, r) && (best.Start != r.Addr || x.View > best.View) {
			own = b
		}
	}
	return own
}

// beginsAt reports whether the body, or a part of it, begins at an address.
func (b *Body) beginsAt(addr uint64) bool {
	return b.Live && b.Start == addr || slices.ContainsFunc(b.Ranges, func(r dw.Range) bool { return r.Lo == addr })
}

// goesOn reports whether a row is a last statement, without code, of the body that the statement
// before belongs to. Of several instances of one function that meet at an address, the one that
// was last goes on, until another begins there.
func (c *Code) goesOn(last int32, r *dw.Row, at Text, edges []int32) bool {
	if last < 0 || c.Bodies[last].Text != at || !c.Bodies[last].endsAt(r.Addr) || c.Bodies[last].beginsAt(r.Addr) {
		return false
	}
	return !slices.ContainsFunc(edges, func(b int32) bool {
		x := &c.Bodies[b]
		return x.Text == at && x.Live && x.Start == r.Addr && !c.before(b, r)
	})
}

// unfinished returns the body, of those that the statement before belongs to, of which a row is a last statement without code where another instance of the function begins that
// has no view: then nothing says which of the two the row is of, but that the one before has not been there yet, and begins with another statement. It is -1 if there is none.
func (c *Code) unfinished(last int32, r *dw.Row, at Text, edges []int32) int32 {
	own := last
	for own >= 0 && c.Bodies[own].Text != at {
		own = c.Bodies[own].Parent
	}
	if own < 0 || !c.Bodies[own].endsAt(r.Addr) || c.Bodies[own].beginsAt(r.Addr) {
		return -1
	}
	b := &c.Bodies[own]
	begins := func(k int32) bool {
		x := &c.Bodies[k]
		return x.Text == at && x.Marked && !x.Viewed && x.Start == r.Addr && !b.Has(k)
	}
	if !slices.ContainsFunc(edges, begins) {
		return -1
	}
	place := Place{File: r.File, Line: r.Line, Column: r.Column}
	been := slices.ContainsFunc(c.Statements, func(s Statement) bool { return b.Has(s.Own) && s.Place == place })
	if been {
		return -1
	}
	return own
}

// endsAt reports whether a part of the body ends at an address, after its code.
func (b *Body) endsAt(addr uint64) bool {
	return slices.ContainsFunc(b.Ranges, func(r dw.Range) bool { return r.Hi == addr && r.Lo < addr })
}

// before reports whether a row is before the place where a body begins, at its address.
func (c *Code) before(b int32, r *dw.Row) bool {
	x := &c.Bodies[b]
	return x.Live && x.Start == r.Addr && uint64(r.View) < x.View
}

// holding returns the innermost body with a range that holds an address.
func (c *Code) holding(addr uint64) int32 {
	for i := len(c.Bodies) - 1; i > 0; i-- {
		if dw.Covers(c.Bodies[i].Ranges, addr) {
			return int32(i)
		}
	}
	return 0
}

// StatementsAt returns those of some statements, which are sorted, that begin at an address.
func StatementsAt(rows []Statement, addr uint64) []Statement {
	lo := sort.Search(len(rows), func(i int) bool { return rows[i].Addr >= addr })
	hi := lo
	for hi < len(rows) && rows[hi].Addr == addr {
		hi++
	}
	return rows[lo:hi]
}

// StatementIn reports whether a statement of a body begins at an address.
func (c *Code) StatementIn(i int32, addr uint64) bool {
	return slices.ContainsFunc(StatementsAt(c.Statements, addr), func(r Statement) bool { return c.Bodies[i].Has(r.Own) })
}

// Declared reports whether a statement is the first one of a body: GCC puts one at the place where
// the function is declared.
func (c *Code) Declared(r *Statement) bool {
	t := &c.Bodies[r.Own].Text
	return t.Line == r.Place.Line && t.Column == r.Place.Column
}
