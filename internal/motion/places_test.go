package motion

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
	"github.com/bpfprologue/bpfprologue/internal/flow"
	"github.com/bpfprologue/bpfprologue/internal/insn"
)

// TestJumpedTo: "mov %esi,%eax" stands behind the end of other code, and goes on in front of that.
func TestJumpedTo(t *testing.T) {
	const start = 0x10 // test %edi,%edi; je 18; 14: mov %edi,%eax; jmp 14; 18: mov %esi,%eax; jmp 14
	code := []insn.Code{{Addr: start, Bytes: dwarftest.Hex(t, "85ff740489f8ebfc89f0ebf8")}}
	row := func(addr uint64, line uint32) dw.Row { return dw.Row{Addr: addr, File: 1, Line: line} }
	for _, tt := range []struct {
		name string
		rows []dw.Row
		addr uint64 // where the block begins
		want bool
	}{
		{"no row of its own", []dw.Row{row(0x10, 1), row(0x14, 2)}, 0x18, true},
		{"a row of the same place", []dw.Row{row(0x10, 1), row(0x14, 2), row(0x18, 2)}, 0x18, true},
		{"a place of its own", []dw.Row{row(0x10, 1), row(0x14, 2), row(0x18, 3)}, 0x18, false},
		{"a place of its own, for a part", []dw.Row{row(0x10, 1), row(0x14, 2), row(0x1a, 3)}, 0x18, false},
		{"what stands before goes on there", []dw.Row{row(0x10, 1)}, 0x14, false},
		{"the first block", []dw.Row{row(0x10, 1)}, 0x10, false},
	} {
		g := new(flow.Graph).Follow(&flow.Function{Arch: insn.For("amd64"), Parts: code, Entry: start})
		c := &Rules{Code: &body.Code{Graph: g, Rows: tt.rows, Owner: make([]int32, len(g.Insns))}}
		n, ok := g.At(tt.addr)
		if got := c.jumpedTo(g.Block(int32(n))); !ok || got != tt.want {
			t.Errorf("%s: %v, %v", tt.name, got, ok)
		}
	}
}
