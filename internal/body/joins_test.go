package body

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/index"
)

// TestRepeatsWhole: two bodies of a function have the same statements. Those of one are all before a jump into the other, whose last ones have code of their own.
func TestRepeatsWhole(t *testing.T) {
	at := func(addr uint64, line uint32, own, block int32) statement {
		return statement{addr: addr, place: rowPlace{line: line}, own: own, block: block}
	}
	c := &Code{
		u:      &Unit{Unit: &index.Unit{Recs: []index.Rec{{Root: 1}, {Root: 2}, {Root: 2}, {Root: 3}}}},
		bodies: []body{{rec: 0}, {rec: 1, text: text{line: 10}}, {rec: 2, text: text{line: 10}}, {rec: 3, text: text{line: 11}}},
		statementRows: []statement{
			at(0x10, 30, 0, 0), at(0x10, 10, 1, 0), at(0x10, 12, 1, 0), at(0x10, 13, 1, 0), at(0x10, 14, 1, 0),
			at(0x20, 40, 0, 1), at(0x20, 10, 3, 1), at(0x20, 12, 3, 1), at(0x20, 13, 3, 1),
			at(0x30, 30, 0, 2), at(0x30, 10, 2, 2), at(0x30, 12, 2, 2), at(0x34, 13, 2, 2), at(0x38, 14, 2, 2),
			at(0x40, 12, 2, 3),
		},
	}
	jump, other, into, alone := c.statementRows[:5], c.statementRows[5:9], c.statementRows[9:12], c.statementRows[14:]
	for _, tt := range []struct {
		name       string
		at, others []statement
		want       bool
	}{
		{"the same", jump, into, true},
		{"another function's", other, into, false},
		{"others follow", jump[:3], into, false},
		{"no statement follows", jump, alone, false},
		{"none before the jump", nil, into, false},
	} {
		if got := c.repeatsWhole(tt.at, tt.others); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}
