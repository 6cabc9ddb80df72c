package body

import (
	"slices"
	"sort"
	"strings"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/index"
	"github.com/bpfprologue/bpfprologue/internal/insn"
)

// Twins are the bodies of one function in the code of another. Compilers merge equal ends of
// such bodies, and the debug information then assigns them to one: a run of the other ends
// there, and none begins.
type Twins struct {
	Bodies []int32
	Starts map[Place]bool // of the statements at which they begin
	// Unmarked are those of the bodies whose entries in the debug information have no statement.
	Unmarked []int32
	// Rests are those of which only a common rest is left: GCC notes where another of the bodies is entered, with a view, and of these
	// only where their pieces are; and the first statement that they have no body has that is entered. GCC has merged the rests of several
	// calls (-ftree-tail-merge), and a run that comes there from another body goes on. A second call, whose first statement is there too, has begun.
	Rests []int32
}

// TwinsOf returns the bodies of a body's function, or nil if it is the only one.
func (c *Code) TwinsOf(i int32) *Twins {
	if !c.twinsRead {
		c.readTwins()
	}
	return c.twinsIn[i]
}

// readTwins finds the bodies of the same functions.
func (c *Code) readTwins() {
	c.twinsRead = true
	c.twinsIn = slices.Grow(c.twinsIn[:0], len(c.Bodies))[:len(c.Bodies)]
	clear(c.twinsIn)
	if c.first == nil {
		c.first = make(map[Function]int32)
	}
	first := c.first
	clear(first)
	var all []*Twins
	for k := range c.Bodies {
		if c.Bodies[k].Text == (Text{}) {
			continue
		}
		x := c.FunctionOf(int32(k))
		of, ok := first[x]
		if !ok {
			first[x] = int32(k)
			continue
		}
		t := c.twinsIn[of]
		if t == nil {
			t = &Twins{Starts: make(map[Place]bool), Bodies: []int32{of}}
			c.twinsIn[of] = t
			all = append(all, t)
		}
		t.Bodies = append(t.Bodies, int32(k))
		c.twinsIn[k] = t
	}
	for _, t := range all {
		for _, k := range t.Bodies {
			b := &c.Bodies[k]
			at := sort.Search(len(c.Statements), func(i int) bool { return c.Statements[i].Addr >= b.Start })
			if at == len(c.Statements) || c.Statements[at].Addr != b.Start {
				t.Unmarked = append(t.Unmarked, k)
			}
			for ; at < len(c.Statements); at++ {
				if r := &c.Statements[at]; b.Has(r.Own) && (r.Addr > b.Start || r.View >= b.View) {
					if c.isRest(t, b, r.Place) {
						t.Rests = append(t.Rests, k)
					} else {
						t.Starts[r.Place] = true
					}
					break
				}
			}
		}
	}
}

// isRest reports whether a body, of which a statement is the first one, is what Twins.Rests has.
func (c *Code) isRest(t *Twins, b *Body, first Place) bool {
	entered := false
	return !b.Marked && len(b.Ranges) > 1 && !slices.ContainsFunc(t.Bodies, func(k int32) bool {
		x := &c.Bodies[k]
		if !x.Marked || !x.Viewed || b.Has(k) || x.Has(b.First) {
			return false
		}
		entered = true
		return slices.ContainsFunc(c.Statements, func(r Statement) bool { return r.Place == first && x.Has(r.Own) })
	}) && entered
}

// Has reports whether a body is a twin of another or inside a twin. One that encloses the other is
// none: it calls itself.
func (t *Twins) Has(c *Code, own, of int32) bool {
	for ; t != nil && own >= 0; own = c.Bodies[own].Parent {
		if c.twinsIn[own] == t && !c.Bodies[own].Has(of) {
			return true
		}
	}
	return false
}

// SameCall reports whether a twin of a body comes from the same call, in another instance of the function that has the call.
func (t *Twins) SameCall(c *Code, i int32) bool {
	b := &c.Bodies[i]
	return t != nil && b.Parent >= 0 && slices.ContainsFunc(t.Bodies, func(k int32) bool {
		x := &c.Bodies[k]
		return k != i && x.Call == b.Call && x.Parent >= 0 && x.Parent != b.Parent && c.FunctionOf(x.Parent) == c.FunctionOf(b.Parent)
	})
}

// maxActing bounds how many bodies of a function are looked at.
const maxActing = 64

// MostAct reports whether instructions of most other bodies of a record's function do what can be seen, or branch.
func (c *Code) MostAct(rec int32) bool {
	looked, acting := 0, 0
	return c.Others(rec, func(ranges []dw.Range) bool {
		looked++
		if slices.ContainsFunc(ranges, c.actsIn) {
			acting++
		}
		return true
	}) && 2*acting > looked
}

// Others calls f with the ranges of other bodies of a record's function, as long as it returns true, and reports whether it has not returned false.
func (c *Code) Others(rec int32, f func(ranges []dw.Range) bool) bool {
	looked, root := 0, c.Unit.Recs[rec].Root
	for k := 0; root >= 0 && k < len(c.Unit.Recs) && looked < maxActing; k++ {
		r := &c.Unit.Recs[k]
		if r.Root != root || int32(k) == rec || r.Flags&index.HasPC == 0 {
			continue
		}
		e, err := c.Unit.Entry(c.Unit.Off + uint64(r.Off))
		if err != nil {
			return false
		}
		if ranges, err := c.Unit.extentOf(e); err != nil || !f(ranges) {
			return false
		}
		looked++
	}
	return true
}

// actsIn reports whether an instruction in a range calls, or writes memory that is not in the frame.
func (c *Code) actsIn(r dw.Range) (acts bool) {
	_, _ = c.Unit.Image.each(r, func(_ uint64, in insn.Insn, code []byte) bool {
		w, ok := c.Arch.Writes(code)
		acts = in.Call || in.Branches && in.Onward || ok && w.Memory && !c.Arch.Spills(code)
		return !acts
	})
	return acts
}

// NoneDecides reports whether each other body of a record's function, and there is one, does the same whatever is so: no instruction of it branches, or makes a number of
// a condition.
func (c *Code) NoneDecides(rec int32) bool {
	some := false
	return c.Others(rec, func(ranges []dw.Range) bool {
		decides := false
		for _, r := range ranges {
			some = true
			_, _ = c.Unit.Image.each(r, func(_ uint64, in insn.Insn, code []byte) bool {
				decides = in.Branches && in.Onward && !in.Call || c.Arch.Decides(code)
				return !decides
			})
			if decides {
				return false
			}
		}
		return true
	}) && some
}

// BranchesAt returns how many branches at the place of a row of the line table are in some ranges.
func (u *Unit) BranchesAt(ranges []dw.Range, row *dw.Row) (n int) {
	rows, err := u.Rows()
	for _, r := range ranges {
		_, _ = u.Image.each(r, func(at uint64, in insn.Insn, _ []byte) bool {
			if in.Branches && in.Onward && !in.Call {
				if x := dw.RowAt(rows, at); x != nil && x.SamePlace(row) {
					n++
				}
			}
			return err == nil
		})
	}
	return n
}

// GCC splits a function into its beginning, which it inlines, and the rest, a function of its own (-fpartial-inlining, gcc/ipa-split.cc). No run
// begins with the rest, if the function itself, or an inlined body of it, is around each call and each jump to it.

// IsPart reports whether a symbol's name is that of the rest of a function which GCC has split.
func IsPart(symbol string) bool { return strings.Contains(symbol, ".part.") }

// ContinuesParent reports whether a body is a part of the body around it: one of the same function, called
// from where that is declared.
func (c *Code) ContinuesParent(i int32) (bool, error) {
	b := &c.Bodies[i]
	// A macro can declare several functions at one line that call each other, as the kernel's
	// SYSCALL_DEFINE does.
	if b.Parent < 0 || b.Text == (Text{}) || c.FunctionOf(b.Parent) != c.FunctionOf(i) {
		return false, nil
	}
	e, err := c.Unit.Entry(c.Unit.Off + uint64(c.Unit.Recs[b.Rec].Off))
	if err != nil {
		return false, err
	}
	var line, column uint64
	err = e.Attrs(func(a dw.Attr, v dw.Value) {
		switch a {
		case dw.AttrCallLine:
			line = v.U
		case dw.AttrCallColumn:
			column = v.U
		}
	})
	return uint32(line) == b.Text.Line && (column == 0 || b.Text.Column == 0 || uint32(column) == b.Text.Column), err
}
