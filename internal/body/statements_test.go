package body

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/dw"
)

// TestCalledFrom: two calls of a function are inlined, with what it calls itself, and the debug information says that all four bodies begin at one address.
func TestCalledFrom(t *testing.T) {
	const here = 0x40
	outer, inner := text{line: 35}, text{line: 21}
	at := func(first, end, parent int32, x text, call uint32) body {
		return body{first: first, end: end, parent: parent, text: x, call: callPlace{line: call}, start: here, live: true, marked: true}
	}
	c := &Code{bodies: []body{
		{end: 5, parent: -1, text: text{line: 3}},
		at(1, 3, 0, outer, 188), at(2, 3, 1, inner, 38),
		at(3, 5, 0, outer, 189), at(4, 5, 3, inner, 38),
	}}
	edges := []int32{1, 2, 3, 4}
	for _, tt := range []struct {
		last int32
		line uint32 // of the statement before
		at   text
		want int32
	}{
		{0, 188, outer, 1}, {0, 189, outer, 3}, {1, 38, inner, 2}, {3, 38, inner, 4}, {2, 23, inner, 2}, {2, 23, outer, 1}, {4, 24, outer, 3}, {0, 188, text{line: 3}, -1},
	} {
		c.statementRows = []statement{{addr: here, own: tt.last, place: rowPlace{line: tt.line}}}
		if got := c.calledFrom(tt.last, &dw.Row{Addr: here}, tt.at, edges); got != tt.want {
			t.Errorf("a row of %v behind one of %d in line %d: %d, want %d", tt.at, tt.last, tt.line, got, tt.want)
		}
	}
	c.bodies[1].viewed, c.bodies[3].viewed = true, true
	if got := c.calledFrom(0, &dw.Row{Addr: here}, outer, edges); got != -1 {
		t.Errorf("with views: %d", got)
	}
}
