package body

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/dw"
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
