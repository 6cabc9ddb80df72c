package held

import (
	"fmt"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
	"github.com/bpfprologue/bpfprologue/internal/flow"
	"github.com/bpfprologue/bpfprologue/internal/insn"
)

// TestCounted: what %rax can be in loops that begin at 0x12, behind two bytes that set it or not.
func TestCounted(t *testing.T) {
	const xor, nops = "31c0 ", "9090 "
	for _, tt := range []struct {
		what, code string
		want       string
	}{
		{"add $8,%rax; cmp $0x28,%rax; jne", xor + "4883c008 4883f828 75f6 c3", "0 to 32"},
		{"the same from what is given", nops + "4883c008 4883f828 75f6 c3", ""},
		{"compared with what it does not meet", xor + "4883c008 4883f82a 75f6 c3", ""},
		{"compared with less", xor + "4883c008 4883f82a 72f6 c3", "0 to 41"},
		{"compared with a register", xor + "4883c008 4839d0 75f7 c3", ""},
		{"its lowest byte is compared", xor + "4883c008 3c28 75f8 c3", ""},
		{"add $1,%eax; cmp $0x10,%eax; jne", xor + "83c001 83f810 75f8 c3", "0 to 15"},
		{"another register is compared", xor + "4883c008 4883fa28 75f6 c3", ""},
		{"doubled", xor + "4801c0 4883f828 75f7 c3", ""},
		{"two ways around: jc; add $8,%rax before and behind", xor + "4883c008 7204 4883c008 4883f828 75f0 c3", ""},
	} {
		f := &flow.Function{Arch: insn.For("amd64"), Entry: 0x10}
		f.Parts = []insn.Code{{Addr: 0x10, Bytes: dwarftest.Hex(t, strings.ReplaceAll(tt.code, " ", ""))}}
		h := Of(new(flow.Graph).Follow(f), f.Arch)
		got := ""
		if least, most, ok := h.Counted(0, 0x12); ok {
			got = fmt.Sprintf("%d to %d", least, most)
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", tt.what, got, tt.want)
		}
	}
}
