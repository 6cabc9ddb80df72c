package body

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/index"
)

// TestCalledFrom: two calls of a function are inlined, with what it calls itself, and the debug information says that all four bodies begin at one address.
func TestCalledFrom(t *testing.T) {
	const here = 0x40
	outer, inner := Text{Line: 35}, Text{Line: 21}
	at := func(first, end, parent int32, x Text, call uint32) Body {
		return Body{First: first, End: end, Parent: parent, Text: x, Call: CallPlace{Line: call}, Start: here, Live: true, Marked: true}
	}
	c := &Code{Bodies: []Body{
		{End: 5, Parent: -1, Text: Text{Line: 3}},
		at(1, 3, 0, outer, 188), at(2, 3, 1, inner, 38),
		at(3, 5, 0, outer, 189), at(4, 5, 3, inner, 38),
	}}
	edges := []int32{1, 2, 3, 4}
	for _, tt := range []struct {
		last int32
		line uint32 // of the statement before
		at   Text
		want int32
	}{
		{0, 188, outer, 1}, {0, 189, outer, 3}, {1, 38, inner, 2}, {3, 38, inner, 4}, {2, 23, inner, 2}, {2, 23, outer, 1}, {4, 24, outer, 3}, {0, 188, Text{Line: 3}, -1},
	} {
		c.Statements = []Statement{{Addr: here, Own: tt.last, Place: Place{Line: tt.line}}}
		if got := c.calledFrom(tt.last, &dw.Row{Addr: here}, tt.at, edges); got != tt.want {
			t.Errorf("a row of %v behind one of %d in line %d: %d, want %d", tt.at, tt.last, tt.line, got, tt.want)
		}
	}
	c.Bodies[1].Viewed, c.Bodies[3].Viewed = true, true
	if got := c.calledFrom(0, &dw.Row{Addr: here}, outer, edges); got != -1 {
		t.Errorf("with views: %d", got)
	}
}

// TestMarkedInPieces: the last row of a function's one piece and the first of the other are no neighbours, and so do not show that the rows have
// markers. The first is that at which the function before ends, for an instruction of a statement that had a row already.
func TestMarkedInPieces(t *testing.T) {
	rows := []dw.Row{
		{Addr: 0x100, File: 1, Line: 10, Stmt: true}, {Addr: 0x108, File: 1, Line: 11, Stmt: true}, {Addr: 0x110, File: 1, Line: 11},
		{Addr: 0x200, File: 1, Line: 30, Stmt: true}, {Addr: 0x240, File: 1, Line: 30}, {Addr: 0x240, File: 1, Line: 50, Stmt: true},
	}
	c := new(Code)
	c.addRows(rows, 0x120)
	c.addRows(rows[4:], 0x280)
	if c.marked {
		t.Error("no row is a marker's")
	}
	if c.addRows([]dw.Row{{Addr: 0x300, File: 1, Line: 60, Stmt: true}, {Addr: 0x304, File: 1, Line: 61}}, 0x310); !c.marked {
		t.Error("a row that begins no statement is of another one than the row before")
	}
}

// TestLatest: an instruction of one instance of a function is where another one begins.
func TestLatest(t *testing.T) {
	const here, before = 0x40, 0x30
	text := Text{Line: 32}
	for _, tt := range []struct {
		name       string
		templates  bool
		root       int32 // of the second instance
		view, last int32 // of the row, and the body of the statement before
		want       int32
	}{
		{"the same function", false, 10, 2, 2, 3},
		{"the same function, a later row", false, 10, 4, 3, 3},
		{"the same function, an earlier row", false, 10, 1, 2, 1},
		{"another instance of a template", true, 11, 2, 2, 3},
		{"another instance of a template, a later row", true, 11, 4, 1, 1},
		{"another instance of a template, not called from there", true, 11, 2, 0, 1},
		{"what one macro declares", false, 11, 2, 2, 1},
	} {
		u := &Unit{Unit: &index.Unit{Recs: []index.Rec{{Root: 1}, {Root: 10}, {Root: 2}, {Root: tt.root}}}}
		c := &Code{Unit: u, Bodies: []Body{
			{Rec: 0, Parent: -1, End: 4}, {Rec: 1, First: 1, End: 2, Text: text, Start: before, Live: true, Viewed: true},
			{Rec: 2, First: 2, End: 4, Start: here, Live: true, Viewed: true}, {Rec: 3, First: 3, End: 4, Parent: 2, Text: text, Start: here, View: 2, Live: true, Viewed: true},
		}}
		if got := c.latest(1, tt.last, &dw.Row{Addr: here, View: uint32(tt.view)}, []int32{1, 2, 3}, tt.templates); got != tt.want {
			t.Errorf("%s: %d, not %d", tt.name, got, tt.want)
		}
	}
}
