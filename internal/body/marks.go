package body

import (
	"cmp"
	"slices"
	"sort"

	"github.com/bpfprologue/bpfprologue/internal/flow"
)

// entryMark is the mark of the place where the debug information says that a body is entered,
// until withoutHoisted has decided what that means.
const entryMark = flow.MarkKind(255)

// statements returns the marks of a body by the statements of the line table. twins, which may
// be nil, are the bodies of the same function. The marks are valid until the next call.
func (c *Code) statements(i int32, twins *twins) []flow.Mark {
	b := &c.bodies[i]
	out := c.marks[:0]
	entered := !b.live
	enter := func() {
		entered = true
		if n, ok := c.graph.At(b.start); ok && b.live {
			out = append(out, flow.Mark{Insn: c.past(int32(n)), Kind: entryMark, View: uint32(b.view)})
		}
	}
	last, block := entryMark, int32(-1) // of the mark before
	nearby := twins.nearby(c)
	for n := range c.runs {
		run := &c.runs[n]
		if (run.most < b.first || run.least >= b.end) && (entered || run.last < b.start) && (twins == nil || nearby[run.most+1] == nearby[run.least]) {
			// None of the block's statements is the body's or a twin's: they are one mark.
			if r := &c.statementRows[run.first]; last != flow.MarkExit || r.block != block {
				out = append(out, flow.Mark{Insn: r.insn, Kind: flow.MarkExit, View: uint32(r.view)})
				last, block = flow.MarkExit, r.block
			}
			continue
		}
		for k := int(run.first); k < int(run.end); k++ {
			r := &c.statementRows[k]
			if !entered && (r.addr > b.start || r.addr == b.start && r.view >= b.view && !c.later(i, k)) {
				enter()
				last = entryMark
			}
			kind, at, view := flow.MarkExit, r.insn, r.view
			switch {
			case b.has(r.own):
				if kind = flow.MarkEnter; twins != nil && !twins.starts[r.place] {
					kind = flow.MarkInside
				}
				if at = r.past; at != r.insn {
					view = 0
				}
			case twins != nil && nearby[r.own+1] != nearby[r.own] && twins.has(c, r.own, i):
				if twins.starts[r.place] {
					out = append(out, flow.Mark{Insn: at, Kind: flow.MarkExit, View: uint32(view)})
				}
				kind = flow.MarkTwin
			}
			if kind == last && r.block == block && kind != flow.MarkTwin {
				continue // it changes nothing
			}
			out = append(out, flow.Mark{Insn: at, Kind: kind, View: uint32(view)})
			last, block = kind, r.block
		}
	}
	if !entered {
		enter()
	}
	out = twins.entries(c, i, out)
	if !slices.IsSortedFunc(out, compareMarks) {
		slices.SortStableFunc(out, compareMarks)
	}
	c.marks = out
	return c.withoutHoisted(i, twins, out)
}

func compareMarks(a, b flow.Mark) int { return cmp.Compare(a.Insn, b.Insn) }

// later reports whether a statement is one before a body's first one at the same address:
// without views, the debug information does not say where between them the body begins.
func (c *Code) later(i int32, k int) bool {
	b, r := &c.bodies[i], &c.statementRows[k]
	return r.addr == b.start && !b.has(r.own)
}

// withoutHoisted drops the mark of the place where the debug information says that the body is
// entered, if a statement of another follows before any of the body's: then instructions of the
// body were moved there, and the body begins at its statements. Where that is so on some paths alone, as behind a test of the caller's,
// and no statement of the body is there, a run may begin.
func (c *Code) withoutHoisted(i int32, twins *twins, marks []flow.Mark) []flow.Mark {
	own := func(m flow.Mark) bool { return m.Kind == flow.MarkEnter || m.Kind == flow.MarkInside }
	at := slices.IndexFunc(marks, func(m flow.Mark) bool { return m.Kind == entryMark })
	if at < 0 {
		return marks
	}
	f := c.following(i, marks, at)
	switch {
	case f.all && f.others && slices.ContainsFunc(marks, own):
		return slices.Delete(marks, at, at+1)
	case (f.exits && (f.body || f.twin) || f.twin && f.body) && !c.statementIn(i, c.graph.Insns[marks[at].Insn].Addr):
		marks[at].Kind = flow.MarkPerhaps
	case marks[at].View == 0 && twins.sameCall(c, i) && !c.statementIn(i, c.graph.Insns[marks[at].Insn].Addr):
		marks[at].Kind = flow.MarkInside // what a run of such a body began may go on here
	default:
		marks[at].Kind = flow.MarkEnter
	}
	return marks
}

// following is what comes first on the paths from a mark.
type following struct {
	all    bool // each path comes to a mark, or to the function's end with nothing of the body's on it
	others bool // there is none of the body's on any
	exits  bool // another's statement, on some path
	twin   bool // the beginning of a twin, on some path
	body   bool // a statement of the body or of a twin, on some path
}

// following follows the paths from a mark of a body.
func (c *Code) following(i int32, marks []flow.Mark, at int) following {
	g := c.graph
	begin := g.Block(marks[at].Insn)
	first := true
	f := following{all: true, others: true}
	ends, goesOn := false, false
	g.AllPaths(begin, func(n int32) (settled, ok bool) {
		b := &g.Blocks[n]
		k := at + 1
		if !first {
			k = sort.Search(len(marks), func(i int) bool { return marks[i].Insn >= b.First })
		}
		first = false
		if k == len(marks) || marks[k].Insn >= b.Last {
			last := len(b.Succs) == 0
			more, _ := c.ownIn(i, n)
			ends, goesOn = ends || last, goesOn || more && n != begin
			return last, true
		}
		switch marks[k].Kind {
		case flow.MarkExit:
			if k+1 < len(marks) && marks[k+1].Kind == flow.MarkTwin && marks[k+1].Insn == marks[k].Insn {
				f.twin = true
			} else {
				f.exits = true
			}
		case flow.MarkTwin:
			f.body = true
		default:
			f.body, f.others = true, false
		}
		return true, true
	})
	f.all = f.all && !(ends && goesOn)
	return f
}

// statementIn reports whether a statement of a body begins at an address.
func (c *Code) statementIn(i int32, addr uint64) bool {
	return slices.ContainsFunc(statementsAt(c.statementRows, addr), func(r statement) bool { return c.bodies[i].has(r.own) })
}

// twinsOf returns the bodies of a body's function, or nil if it is the only one.
func (c *Code) twinsOf(i int32) *twins {
	if c.twinsIn == nil {
		c.readTwins()
	}
	return c.twinsIn[i]
}

// readTwins finds the bodies of the same functions.
func (c *Code) readTwins() {
	c.twinsIn = make([]*twins, len(c.bodies))
	first := make(map[sameFunction]int32, len(c.bodies))
	var all []*twins
	for k := range c.bodies {
		if c.bodies[k].text == (text{}) {
			continue
		}
		x := c.functionOf(int32(k))
		of, ok := first[x]
		if !ok {
			first[x] = int32(k)
			continue
		}
		t := c.twinsIn[of]
		if t == nil {
			t = &twins{starts: make(map[rowPlace]bool), bodies: []int32{of}}
			c.twinsIn[of] = t
			all = append(all, t)
		}
		t.bodies = append(t.bodies, int32(k))
		c.twinsIn[k] = t
	}
	for _, t := range all {
		for _, k := range t.bodies {
			b := &c.bodies[k]
			at := sort.Search(len(c.statementRows), func(i int) bool { return c.statementRows[i].addr >= b.start })
			if at == len(c.statementRows) || c.statementRows[at].addr != b.start {
				t.unmarked = append(t.unmarked, k)
			}
			for ; at < len(c.statementRows); at++ {
				if r := &c.statementRows[at]; b.has(r.own) && (r.addr > b.start || r.view >= b.view) {
					t.starts[r.place] = true
					break
				}
			}
		}
	}
}

// entries adds the entries of a body's twins that have lost the statements there: a run of the
// body has ended where one of a twin begins.
func (t *twins) entries(c *Code, i int32, out []flow.Mark) []flow.Mark {
	if t == nil {
		return out
	}
	for _, k := range t.unmarked {
		x := &c.bodies[k]
		n, ok := c.graph.At(x.start)
		if !ok || !x.live || x.start == c.bodies[i].start || c.bodies[i].has(k) || x.has(i) || !x.has(c.owner[n]) {
			continue
		}
		out = append(out, flow.Mark{Insn: int32(n), Kind: flow.MarkExit}, flow.Mark{Insn: int32(n), Kind: flow.MarkTwin})
	}
	return out
}

// nearby returns how many of the bodies before each are twins or inside one: nearby[b]-nearby[a] of
// those from a to b-1 are. It is valid until it is called for others.
func (t *twins) nearby(c *Code) []int32 {
	if t == nil || c.nearbyOf == t {
		return c.nearby
	}
	c.nearbyOf = t
	c.nearby = append(slices.Grow(c.nearby[:0], len(c.bodies)+1), 0)
	for k := range c.bodies {
		is := c.twinsIn[k] == t
		if p := c.bodies[k].parent; p >= 0 {
			is = is || c.nearby[p+1] != c.nearby[p] // a body comes after the one around it
		}
		n := c.nearby[k]
		if is {
			n++
		}
		c.nearby = append(c.nearby, n)
	}
	return c.nearby
}

// has reports whether a body is a twin of another or inside a twin. One that encloses the other is
// none: it calls itself.
func (t *twins) has(c *Code, own, of int32) bool {
	for ; t != nil && own >= 0; own = c.bodies[own].parent {
		if c.twinsIn[own] == t && !c.bodies[own].has(of) {
			return true
		}
	}
	return false
}

// sameCall reports whether a twin of a body comes from the same call, in another instance of the function that has the call.
func (t *twins) sameCall(c *Code, i int32) bool {
	b := &c.bodies[i]
	return t != nil && b.parent >= 0 && slices.ContainsFunc(t.bodies, func(k int32) bool {
		x := &c.bodies[k]
		return k != i && x.call == b.call && x.parent >= 0 && x.parent != b.parent && c.functionOf(x.parent) == c.functionOf(b.parent)
	})
}

// declared reports whether a statement is the first one of a body: GCC puts one at the place where
// the function is declared.
func (c *Code) declared(r *statement) bool {
	t := &c.bodies[r.own].text
	return t.line == r.place.line && t.column == r.place.column
}

// taken reports whether a way in may be at statements that GCC took out of several bodies of the
// function, because all of them begin so (-fcode-hoisting): it does not begin with the first
// statement of the body, and all paths from there come to the first statement of one, some to
// that of this one.
func (c *Code) taken(i int32, w *flow.Way) bool {
	if c.beginsWith(i, w) {
		return false
	}
	t := c.twinsOf(i)
	return c.takenOf(i, w, func(k int32) bool { return t != nil && c.twinsIn[k] == t }) ||
		t != nil && c.takenOf(i, w, func(k int32) bool { return c.twinsIn[k] == t && c.bodies[k].call == c.bodies[i].call })
}

// declaredRows returns the numbers of the statements that are the first ones of bodies.
func (c *Code) declaredRows() []int32 {
	if !c.declaredRead {
		c.declaredRead = true
		for k := range c.statementRows {
			if c.declared(&c.statementRows[k]) {
				c.firstRows = append(c.firstRows, int32(k))
			}
		}
	}
	return c.firstRows
}

// beginsWith reports whether a way in begins with the body's first statement.
func (c *Code) beginsWith(i int32, w *flow.Way) bool {
	at := sort.Search(len(c.statementRows), func(k int) bool { return c.statementRows[k].past >= w.Insn })
	for ; at < len(c.statementRows) && c.statementRows[at].past == w.Insn; at++ {
		if r := &c.statementRows[at]; r.own == i && uint64(w.View) >= r.view && c.declared(r) {
			return true
		}
	}
	return false
}

// takenOf is taken for those bodies of the function that may have begun with the same statements.
func (c *Code) takenOf(i int32, w *flow.Way, of func(body int32) bool) bool {
	g := c.graph
	found, own := false, false
	var firsts map[int32]bool // blocks with such a statement after the way, and if it is of this body
	for _, k := range c.declaredRows() {
		r := &c.statementRows[k]
		if r.own != i && !of(r.own) {
			continue
		}
		if r.block != g.Block(w.Insn) || r.insn > w.Insn {
			if firsts == nil {
				firsts = make(map[int32]bool)
			}
			firsts[r.block] = firsts[r.block] || r.own == i
			own = own || r.own == i
		}
	}
	if !own {
		return false
	}
	all := g.AllPaths(g.Block(w.Insn), func(n int32) (settled, ok bool) {
		own, settled := firsts[n]
		found = found || own
		return settled, settled
	})
	return all && found
}
