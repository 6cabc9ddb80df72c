package held

import (
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
	"github.com/bpfprologue/bpfprologue/internal/flow"
	"github.com/bpfprologue/bpfprologue/internal/insn"
)

// TestExtendedAway: where what is in %rdi at 0x12 is extended into another register, before or behind, if no instruction sets %rdi in between.
func TestExtendedAway(t *testing.T) {
	for _, tt := range []struct {
		what, code string
		want       bool
	}{
		{"mov %edi,%eax; nop", "89f8 6690 c3", true},
		{"mov %rdi,%rax; nop", "4889f8 90 c3", false},
		{"nop; mov %edi,%eax", "6690 6690 89f8 c3", true},
		{"nop; inc %edi; mov %edi,%eax", "6690 ffc7 89f8 c3", false},
		{"nop; mov %edi,%edi", "6690 89ff c3", false},
		{"behind a branch: je 0x17; inc %edi; jmp; mov %edi,%eax", "6690 7403 ffc7 c3 89f8 c3", true},
		{"on the other side it is set: je 0x19; inc %edi; mov %edi,%eax; ret; ret", "6690 7405 ffc7 89f8 c3 c3", false},
		{"in the turn before: nop; nop; mov %edi,%eax; jne 0x12", "6690 6690 89f8 75fa c3", true},
		{"jmp 0x15; 0x12: nop; ret; 0x15: mov %edi,%eax; jne; mov %edi,%ecx; inc %rdi; jmp 0x12", "eb03 6690 c3 89f8 7500 89f9 48ffc7 ebf2", false},
		{"the same, but %rdi is set first", "eb03 6690 c3 89f8 7500 48ffc7 89f9 ebf2", true},
	} {
		f := &flow.Function{Arch: insn.For("amd64"), Entry: 0x10}
		f.Parts = []insn.Code{{Addr: 0x10, Bytes: dwarftest.Hex(t, strings.ReplaceAll(tt.code, " ", ""))}}
		g := new(flow.Graph).Follow(f)
		h := Of(g, f.Arch)
		const rdi = 5
		if got := h.ExtendedAway(rdi, 0x12); got != tt.want || g.Why != "" {
			t.Errorf("%s: %v, want %v; %s", tt.what, got, tt.want, g.Why)
		}
	}
}

// BenchmarkExtendedAway asks at each instruction of a large function.
func BenchmarkExtendedAway(b *testing.B) {
	f := &flow.Function{Arch: insn.For("amd64"), Entry: 0x10}
	code := []byte{0x89, 0xf8} // mov %edi,%eax
	for range 2000 {
		code = append(code, 0x75, 0x02, 0x66, 0x90) // jne to behind a nop
	}
	f.Parts = []insn.Code{{Addr: 0x10, Bytes: append(code, 0xc3)}}
	g := new(flow.Graph).Follow(f)
	for b.Loop() {
		h := Of(g, f.Arch)
		for i := range g.Insns {
			if i > 0 && !h.ExtendedAway(5, g.Insns[i].Addr) {
				b.Fatal(g.Insns[i].Addr)
			}
		}
	}
}
