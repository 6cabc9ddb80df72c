package motion

import (
	"slices"
	"sort"

	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/flow"
)

// EntryMark is the mark of the place where the debug information says that a body is entered,
// until WithoutHoisted has decided what that means.
const EntryMark = flow.MarkKind(255)

// WithoutHoisted drops the mark of the place where the debug information says that the body is
// entered, if a statement of another follows before any of the body's: then instructions of the
// body were moved there, and the body begins at its statements. Where that is so on some paths alone, as behind a test of the caller's,
// and no statement of the body is there, a run may begin.
func (c *Rules) WithoutHoisted(i int32, twins *body.Twins, marks []flow.Mark) []flow.Mark {
	own := func(m flow.Mark) bool { return m.Kind == flow.MarkEnter || m.Kind == flow.MarkInside }
	at := slices.IndexFunc(marks, func(m flow.Mark) bool { return m.Kind == EntryMark })
	if at < 0 {
		return marks
	}
	f := c.following(i, marks, at)
	switch {
	case f.all && f.others && slices.ContainsFunc(marks, own):
		return slices.Delete(marks, at, at+1)
	case (f.exits && (f.body || f.twin) || f.twin && f.body) && !c.StatementIn(i, c.Graph.Insns[marks[at].Insn].Addr):
		marks[at].Kind = flow.MarkPerhaps
	case marks[at].View == 0 && twins.SameCall(c.Code, i) && !c.StatementIn(i, c.Graph.Insns[marks[at].Insn].Addr), twins != nil && slices.Contains(twins.Rests, i):
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
func (c *Rules) following(i int32, marks []flow.Mark, at int) following {
	g := c.Graph
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
	f.all = f.all && (!ends || !goesOn)
	return f
}

// Taken reports whether a way in may be at statements that GCC took out of several bodies of the
// function, because all of them begin so (-fcode-hoisting): it does not begin with the first
// statement of the body, and all paths from there come to the first statement of one, some to
// that of this one.
func (c *Rules) Taken(i int32, w *flow.Way) bool {
	if c.beginsWith(i, w) {
		return false
	}
	t := c.TwinsOf(i)
	return c.takenOf(i, w, func(k int32) bool { return t != nil && c.TwinsOf(k) == t }) ||
		t != nil && c.takenOf(i, w, func(k int32) bool { return c.TwinsOf(k) == t && c.Bodies[k].Call == c.Bodies[i].Call })
}

// declaredRows returns the numbers of the statements that are the first ones of bodies.
func (c *Rules) declaredRows() []int32 {
	if !c.declaredRead {
		c.declaredRead = true
		for k := range c.Statements {
			if c.Declared(&c.Statements[k]) {
				c.firstRows = append(c.firstRows, int32(k))
			}
		}
	}
	return c.firstRows
}

// beginsWith reports whether a way in begins with the body's first statement.
func (c *Rules) beginsWith(i int32, w *flow.Way) bool {
	at := sort.Search(len(c.Statements), func(k int) bool { return c.Statements[k].Past >= w.Insn })
	for ; at < len(c.Statements) && c.Statements[at].Past == w.Insn; at++ {
		if r := &c.Statements[at]; r.Own == i && uint64(w.View) >= r.View && c.Declared(r) {
			return true
		}
	}
	return false
}

// takenOf is Taken for those bodies of the function that may have begun with the same statements.
func (c *Rules) takenOf(i int32, w *flow.Way, of func(body int32) bool) bool {
	g := c.Graph
	found, own := false, false
	var firsts map[int32]bool // blocks with such a statement after the way, and if it is of this body
	for _, k := range c.declaredRows() {
		r := &c.Statements[k]
		if r.Own != i && !of(r.Own) {
			continue
		}
		if r.Block != g.Block(w.Insn) || r.Insn > w.Insn {
			if firsts == nil {
				firsts = make(map[int32]bool)
			}
			firsts[r.Block] = firsts[r.Block] || r.Own == i
			own = own || r.Own == i
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
