package motion

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/index"
)

// TestRepeatsWhole: two bodies of a function have the same statements. Those of one are all before a jump into the other, whose last ones have code of their own.
func TestRepeatsWhole(t *testing.T) {
	at := func(addr uint64, line uint32, own, block int32) body.Statement {
		return body.Statement{Addr: addr, Place: body.Place{Line: line}, Own: own, Block: block}
	}
	c := &Rules{Code: &body.Code{
		Unit:   &body.Unit{Unit: &index.Unit{Recs: []index.Rec{{Root: 1}, {Root: 2}, {Root: 2}, {Root: 3}}}},
		Bodies: []body.Body{{Rec: 0}, {Rec: 1, Text: body.Text{Line: 10}}, {Rec: 2, Text: body.Text{Line: 10}}, {Rec: 3, Text: body.Text{Line: 11}}},
		Statements: []body.Statement{
			at(0x10, 30, 0, 0), at(0x10, 10, 1, 0), at(0x10, 12, 1, 0), at(0x10, 13, 1, 0), at(0x10, 14, 1, 0),
			at(0x20, 40, 0, 1), at(0x20, 10, 3, 1), at(0x20, 12, 3, 1), at(0x20, 13, 3, 1),
			at(0x30, 30, 0, 2), at(0x30, 10, 2, 2), at(0x30, 12, 2, 2), at(0x34, 13, 2, 2), at(0x38, 14, 2, 2),
			at(0x40, 12, 2, 3),
		},
	}}
	jump, other, into, alone := c.Statements[:5], c.Statements[5:9], c.Statements[9:12], c.Statements[14:]
	for _, tt := range []struct {
		name       string
		at, others []body.Statement
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
