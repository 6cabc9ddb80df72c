package held_test

import (
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
	"github.com/bpfprologue/bpfprologue/internal/flow"
	"github.com/bpfprologue/bpfprologue/internal/held"
	"github.com/bpfprologue/bpfprologue/internal/insn"
)

// TestAdvanced: which registers a loop has advanced at an instruction.
func TestAdvanced(t *testing.T) {
	const start = 0x1000
	for _, tt := range []struct {
		what     string
		code     string
		at, step uint64
		by       int64
	}{
		// xor %eax,%eax; add $2,%eax; shr $4,%rdi; jne 2; nop; ret
		{"behind a loop", "31c0 83c002 48c1ef04 75f7 90 c3", 11, 2, 2},
		{"in the loop, behind the step", "31c0 83c002 48c1ef04 75f7 90 c3", 5, 2, 2},
		{"where the loop begins", "31c0 83c002 48c1ef04 75f7 90 c3", 2, 0, 0},
		// xor %eax,%eax; test %edi,%edi; je 16; sub $1,%rax; shr $4,%rdi; jne 6; nop; ret
		{"without a turn too", "31c0 85ff 740a 4883e801 48c1ef02 75f6 90 c3", 16, 0, 0},
		// xor %eax,%eax; sub $1,%rax; shr $4,%rdi; jne 2; add %edi,%eax; nop; ret
		{"changed since", "31c0 4883e801 48c1ef02 75f6 01f8 90 c3", 14, 0, 0},
		{"down", "31c0 4883e801 48c1ef02 75f6 01f8 90 c3", 12, 2, -1},
		// add $1,%eax; nop; ret
		{"without a loop", "83c001 90 c3", 3, 0, 0},
		// add %edi,%eax; shr $4,%rdi; jne 0; nop; ret
		{"by no constant", "01f8 48c1ef04 75f8 90 c3", 8, 0, 0},
	} {
		arch := insn.For("amd64")
		f := &flow.Function{Arch: arch, Entry: start, Parts: []insn.Code{{Addr: start, Bytes: dwarftest.Hex(t, strings.ReplaceAll(tt.code, " ", ""))}}}
		g := new(flow.Graph).Follow(f)
		if g.Why != "" {
			t.Fatalf("%s: %s", tt.what, g.Why)
		}
		want := uint64(0)
		if tt.by != 0 {
			want = start + tt.step
		}
		if step, by := held.Of(g, arch).Advanced(0, start+tt.at); by != tt.by || by != 0 && step != want {
			t.Errorf("%s: %d by the instruction at %#x", tt.what, by, step)
		}
	}
}
