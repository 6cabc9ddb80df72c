package steady

import (
	"bytes"
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/radix"
)

// body adds what one body shows.
func (g *function) body(u *entries.Unit, rec int32) error {
	var s entries.Spot
	if ok, err := u.Read(rec, &s); err != nil || !ok {
		return err
	}
	marked, err := u.Body.MarksStatements(rec)
	switch {
	case err != nil:
		return err
	case !marked:
		return g.whole(&s)
	case u.Body.Views():
		return nil
	}
	ranges, err := u.Extent(&s.PCs)
	if err != nil {
		return err
	}
	if repeats(u, rec) {
		return nil
	}
	all, err := statementsOf(u, rec, ranges)
	if err != nil {
		return err
	}
	if len(all) < 2 {
		return nil
	}
	group := beginning(&s, all)
	e, err := s.Entry()
	if err != nil {
		return err
	}
	var callers []variable
	read := false
	of := make(map[effect]bool) // that have been counted
	return u.Img.EachParam(e, func(x *entries.Var) (bool, error) {
		if x.Location.Form == 0 {
			return true, nil
		}
		name, err := x.Text()
		if err != nil {
			return true, nil //nolint:nilerr // it is reported where the parameter is asked for
		}
		notes := notesOf(u, x)
		seen := between(u, all, notes)
		if n := noteAt(notes, s.At.Addr); n != nil && group.to > group.from {
			if !read {
				read = true
				if callers, err = placesOf(&s); err != nil {
					return false, err
				}
			}
			if group.of(u, all, n) || n.of.held && slices.ContainsFunc(callers, func(c variable) bool { return bytes.Equal(c.expr, n.Expr) }) {
				for i := group.from; i < group.to; i++ {
					seen = append(seen, saw{statement: i})
				}
			}
			if n.of.number {
				g.pair(&s, name, all[group.from:group.to], numberOf(x, n.Expr), callers)
			}
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		clear(of)
		for _, w := range seen {
			k := all[w.statement].on(name)
			x := g.shown[k]
			switch {
			case w.assigns:
				x.assigns = true
			case w.number != nil:
				if n := string(w.number); len(x.numbers) <= enough && !slices.Contains(x.numbers, n) {
					x.numbers = append(x.numbers, n)
				}
			case !of[k]:
				x.leaves++
				of[k] = true
			}
			g.shown[k] = x
		}
		return true, nil
	})
}

// saw is what a body shows of one of its statements.
type saw struct {
	statement int
	assigns   bool
	number    []byte // which it leaves, if the parameter is one
}

// between looks at statements that instructions follow, up to the next one.
func between(u *entries.Unit, all []statement, notes []note) (out []saw) {
	for i := range len(all) - 1 {
		t, next := &all[i], &all[i+1]
		if next.addr <= t.addr || t.besides(next) || i > 0 && t.besides(&all[i-1]) {
			continue
		}
		was, is := noteAt(notes, t.addr), noteAt(notes, next.addr)
		switch {
		case was == nil || is == nil || !was.of.known || !is.of.known:
		case was == is:
			if u.Img.Code.Unchanged(t.addr, next.addr, was.of.registers) {
				w := saw{statement: i}
				if was.of.number {
					w.number = was.Expr
				}
				out = append(out, w)
			}
		case was.of.number && is.of.number && u.Img.Code.Straight(t.addr, next.addr):
			out = append(out, saw{statement: i, assigns: true})
		}
	}
	return out
}

// group are statements that begin at the probe of a body, all but the last: [from, to).
type group struct{ from, to int }

// beginning returns that of an inlined body, which the spot is made to be at: where the debug information does not say where a body is entered, it begins with its
// first statement. The group is empty where no probe is known.
func beginning(s *entries.Spot, all []statement) (g group) {
	if s.Kind != entries.Inline || s.Again {
		return g
	}
	i := slices.IndexFunc(all, func(t statement) bool { return t.addr >= s.At.Addr })
	if i < 0 {
		return g
	}
	s.At = entries.Place{Addr: all[i].addr}
	for g.from, g.to = i, i; g.to+1 < len(all) && all[g.to+1].addr == all[i].addr; g.to++ {
	}
	return g
}

// of reports whether a note that holds behind a group began before it, and behind no other statement of the body. In front of padding, where a loop begins, it may
// have begun behind the group.
func (g group) of(u *entries.Unit, all []statement, n *note) bool {
	at := all[g.from].addr
	return n.Lo < at && (g.from == 0 || all[g.from-1].addr < n.Lo) && !u.Img.Code.Padding(n.Lo, at)
}

// statement is one of a body.
type statement struct {
	addr         uint64
	line, column uint32
	nth          int
}

func (s *statement) on(parameter string) effect {
	return effect{parameter, s.line, s.column, s.nth}
}

// besides reports whether two statements are of one place, at two addresses: of a macro of which some begin at each.
func (s *statement) besides(t *statement) bool {
	return s.addr != t.addr && s.line == t.line && s.column == t.column
}

// statements appends those of a body that begin in a range, in order.
func statements(out []statement, u *entries.Unit, rec int32, r dw.Range) ([]statement, error) {
	err := u.Body.EachStatement(rec, r.Lo, r.Hi, func(p body.Place, addr, _ uint64) {
		at := statement{addr: addr, line: p.Line, column: p.Column}
		for i := len(out) - 1; i >= 0 && out[i].addr == addr; i-- {
			if out[i].line == at.line && out[i].column == at.column {
				at.nth++
			}
		}
		out = append(out, at)
	})
	return out, err
}

// statementsOf returns those of a body that has code in some ranges.
func statementsOf(u *entries.Unit, rec int32, ranges []dw.Range) (all []statement, err error) {
	end := uint64(0)
	for _, r := range radix.Sort(slices.Clone(ranges), func(r *dw.Range) uint64 { return r.Lo }) {
		r.Lo, r.Hi = max(r.Lo, end), max(r.Hi, r.Lo+1) // a body begins in a part without instructions if they are the caller's
		if end = max(end, r.Hi); r.Lo >= r.Hi {
			continue
		}
		if all, err = statements(all, u, rec, r); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// repeats reports whether a body is inside another one of its function, or has one inside: their statements have the same places.
func repeats(u *entries.Unit, rec int32) bool {
	root := u.Recs[rec].Root
	for i := u.Recs[rec].Parent; i >= 0; i = u.Recs[i].Parent {
		if u.Recs[i].Root == root {
			return true
		}
	}
	for i := rec + 1; int(i) < len(u.Recs) && u.Recs[i].Parent >= rec; i++ {
		if u.Recs[i].Root == root {
			return true
		}
	}
	return false
}
