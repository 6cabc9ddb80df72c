package body

import (
	"cmp"
	"slices"
	"sort"
	"sync"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/index"
)

// text is the source text of a function: from the line that declares it to the next function
// in the file.
type text struct {
	file   int32 // number of the file in texts.files; 0 if it is not known
	line   uint32
	column uint32 // of the declaration
}

// texts knows where the functions of a unit are declared.
type texts struct {
	mu     sync.Mutex
	files  map[string]int32 // numbers, from 1, by path
	index  map[uint64]int32 // likewise, by the index in the unit's line table
	lines  map[int32][]text // declarations, by file, sorted
	byRoot map[int32]text   // by the record that has the name
	firsts map[text]uint32  // see first
	read   bool
}

// declarations returns the unit's texts.
func (u *Unit) declarations() *texts {
	for {
		if t := u.texts.Load(); t != nil {
			return t
		}
		u.texts.CompareAndSwap(nil, new(texts))
	}
}

// number returns the number of a file in a line table.
func (t *texts) number(u *dw.Unit, own bool, index uint64) int32 {
	if n, ok := t.index[index]; ok && own {
		return n
	}
	path := u.File(index)
	n := int32(0)
	if path != "" {
		if n = t.files[path]; n == 0 {
			n = int32(len(t.files) + 1)
			t.files[path] = n
		}
	}
	if own {
		t.index[index] = n
	}
	return n
}

// prepare reads the declarations of all functions of the unit.
func (t *texts) prepare(u *Unit) error {
	if t.read {
		return nil
	}
	t.files, t.index = make(map[string]int32), make(map[uint64]int32)
	t.lines, t.byRoot = make(map[int32][]text), make(map[int32]text)
	live := make(map[int32]bool) // functions that have code
	for i := range u.Recs {
		if r := &u.Recs[i]; r.Flags&index.HasPC != 0 {
			live[r.Root] = true
		}
	}
	defined, err := definitions(u)
	if err != nil {
		return err
	}
	for i := range u.Recs {
		if u.Recs[i].Root != int32(i) {
			continue
		}
		at := int32(i)
		if d, ok := defined[at]; ok {
			at = d
		}
		e, err := u.Entry(u.Off + uint64(u.Recs[at].Off))
		if err != nil {
			return err
		}
		// The kernel's compiletime_assert declares a function in the midst of another one.
		if !live[int32(i)] {
			only, err := isDeclaration(e)
			if err != nil {
				return err
			}
			if only {
				continue
			}
		}
		x, err := t.declared(u, e)
		if err != nil {
			return err
		}
		t.byRoot[int32(i)] = x
	}
	for _, l := range t.lines {
		slices.SortFunc(l, func(a, b text) int { return cmp.Or(cmp.Compare(a.line, b.line), cmp.Compare(a.column, b.column)) })
	}
	t.read = true
	return nil
}

// definitions returns the records that define members of C++ classes outside of the class, by those that declare them there: the text of
// such a function is where it is defined.
func definitions(u *Unit) (map[int32]int32, error) {
	if !dw.IsCPlusPlus(u.Lang) {
		return nil, nil
	}
	out := make(map[int32]int32)
	for i := range u.Recs {
		r := &u.Recs[i]
		if r.Root == int32(i) || r.Root < 0 || r.Flags&index.Inlined != 0 {
			continue
		}
		e, err := u.Entry(u.Off + uint64(r.Off))
		if err != nil {
			return nil, err
		}
		defines, line := false, uint64(0)
		err = e.Attrs(func(a dw.Attr, v dw.Value) {
			switch a {
			case dw.AttrSpecification:
				defines = true
			case dw.AttrDeclLine:
				line = v.U
			}
		})
		if err != nil {
			return nil, err
		}
		if defines && line != 0 {
			out[r.Root] = int32(i)
		}
	}
	return out, nil
}

// isDeclaration reports whether an entry only declares a function.
func isDeclaration(e dw.Entry) (only bool, err error) {
	err = e.Attrs(func(a dw.Attr, v dw.Value) { only = only || a == dw.AttrDeclaration && v.U != 0 })
	return only, err
}

// declared returns the text of the function that an entry describes, which it notes.
func (t *texts) declared(u *Unit, e dw.Entry) (text, error) {
	var file, line, column uint64
	last, err := index.EachOrigin(e, func(a dw.Attr, v dw.Value) {
		switch a {
		case dw.AttrDeclFile:
			file = v.U
		case dw.AttrDeclLine:
			line = v.U
		case dw.AttrDeclColumn:
			column = v.U
		}
	}, func() bool {
		if line == 0 {
			file, column = 0, 0 // of an entry that does not say all
		}
		return line == 0
	})
	if err != nil || line == 0 {
		return text{}, err
	}
	x := text{t.number(last.Unit, last.Unit == u.Unit.Unit, file), uint32(line), uint32(column)}
	if x.file != 0 {
		t.lines[x.file] = append(t.lines[x.file], x)
	}
	return x, nil
}

// of returns the text of a record's function.
func (t *texts) of(u *Unit, rec int32, e dw.Entry) (text, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.prepare(u); err != nil {
		return text{}, err
	}
	root := u.Recs[rec].Root
	if root < 0 {
		root = rec
	}
	x, ok := t.byRoot[root]
	if !ok {
		var err error
		if x, err = t.declared(u, e); err != nil {
			return text{}, err
		}
		for _, l := range t.lines {
			slices.SortFunc(l, func(a, b text) int { return cmp.Or(cmp.Compare(a.line, b.line), cmp.Compare(a.column, b.column)) })
		}
		t.byRoot[root] = x
	}
	return x, nil
}

// at returns the text that a row is in.
func (t *texts) at(u *Unit, r *dw.Row) text {
	t.mu.Lock()
	defer t.mu.Unlock()
	file := t.number(u.Unit.Unit, true, uint64(r.File))
	lines := t.lines[file]
	i := sort.Search(len(lines), func(i int) bool {
		return lines[i].line > r.Line || lines[i].line == r.Line && lines[i].column > max(r.Column, 1)
	})
	if file == 0 || i == 0 {
		return text{}
	}
	return lines[i-1]
}

// first returns the first line of a text, after its declaration, that has a row.
func (t *texts) first(u *Unit, rows []dw.Row, of text) uint32 {
	t.mu.Lock()
	firsts := t.firsts
	t.mu.Unlock()
	if firsts == nil {
		firsts = make(map[text]uint32)
		for i := range rows {
			r := &rows[i]
			if r.End || i > 0 && r.Line == rows[i-1].Line && r.File == rows[i-1].File {
				continue
			}
			at := t.at(u, r)
			if n, ok := firsts[at]; r.Line > at.line && (!ok || r.Line < n) {
				firsts[at] = r.Line
			}
		}
		t.mu.Lock()
		t.firsts = firsts
		t.mu.Unlock()
	}
	return firsts[of]
}

// edge is that a body begins or ends at a link-time address.
type edge struct {
	addr uint64
	body int32
}

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
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(cmp.Compare(a.addr, b.addr), cmp.Compare(a.body, b.body)) })
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

// rowRun is a run of statements of one block: where it ends, and the bodies that they belong to.
type rowRun struct {
	end         int32 // in code.statementRows; 0 for a statement that is not the run's first
	least, most int32
}

// readRuns finds the runs.
func (c *Code) readRuns() {
	c.runs = slices.Grow(c.runs[:0], len(c.statementRows))[:len(c.statementRows)]
	clear(c.runs)
	for k := 0; k < len(c.statementRows); {
		first := &c.statementRows[k]
		run := rowRun{least: first.own, most: first.own}
		at := k
		for ; k < len(c.statementRows) && c.statementRows[k].block == first.block; k++ {
			own := c.statementRows[k].own
			run.least, run.most = min(run.least, own), max(run.most, own)
		}
		run.end = int32(k)
		c.runs[at] = run
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

// statement is a row of the line table that begins a statement, at an instruction that is
// reached.
type statement struct {
	addr, view uint64
	place      rowPlace
	own        int32 // index in code.bodies of the body that it belongs to
	insn       int32 // in the graph
	past       int32 // the first instruction from there on that is no padding
	block      int32 // of insn
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

// latest returns the instance of a body's function to which a row at one of the body's instructions belongs: that which
// begins last at the address, if one does, by a view that is not after the row. GCC moves instructions of one instance behind the place where
// the next begins.
func (c *Code) latest(own int32, r *dw.Row, edges []int32) int32 {
	for _, b := range edges {
		x, best := &c.bodies[b], &c.bodies[own]
		// SYSCALL_DEFINE declares several functions at one place.
		same := x.text == best.text && c.u.Recs[x.rec].Root == c.u.Recs[best.rec].Root
		if same && x.live && x.start == r.Addr && x.view > 0 && !c.before(b, r) && (best.start != r.Addr || x.view > best.view) {
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
