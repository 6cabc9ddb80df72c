package insn_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
	"github.com/bpfprologue/bpfprologue/internal/insn"
	"github.com/bpfprologue/bpfprologue/internal/symbolic"
)

// TestTouches: what instructions access, by the registers before them.
func TestTouches(t *testing.T) {
	const rax, rcx, rdi = 0, 2, 5
	for _, tt := range []struct {
		what, arch, code string
		plus             uint64
		registers        []int
		scale            uint64 // of the second
		writes, none     bool
		compares         bool
		elsewhere        bool // it accesses memory that no address says
	}{
		{what: "mov 8(%rdi),%rax", code: "488b4708", registers: []int{rdi}, plus: 8},
		{what: "bt %rax,8(%rdi)", code: "480fa34708", registers: []int{rdi}, plus: 8},
		{what: "lock bts %rax,(%rdi)", code: "f0480fab07", registers: []int{rdi}, writes: true},
		{what: "lock incl 52(%rdi)", code: "f0ff4734", registers: []int{rdi}, plus: 52, writes: true},
		{what: "movb $0,(%rdi,%rcx,8)", code: "c604cf00", registers: []int{rcx, rdi}, scale: 8, writes: true},
		{what: "cmpl $0,(%rdi)", code: "833f00", registers: []int{rdi}, compares: true},
		{what: "mov 0x10(%rip),%rax", code: "488b0510000000", plus: 0x1017},
		{what: "lea 8(%rdi),%rax", code: "488d4708", none: true},
		{what: "mov %gs:(%rdi),%rax", code: "65488b07", none: true, elsewhere: true},
		{what: "nopl (%rax)", code: "0f1f00", none: true},
		{what: "mov %rdi,%rax", code: "4889f8", none: true},
		{what: "call", code: "e800000000", none: true},
		{what: "ldr x0, [x5, #8]", arch: "arm64", code: "a00440f9", registers: []int{rdi}, plus: 8},
		{what: "str x0, [x5], #8", arch: "arm64", code: "a08400f8", none: true, elsewhere: true, writes: true},
	} {
		if tt.arch == "" {
			tt.arch = "amd64"
		}
		a := insn.For(tt.arch)
		trace := a.Begin()
		want := symbolic.Constant(tt.plus)
		for i, r := range tt.registers {
			scale := uint64(1)
			if len(tt.registers) == 2 && i == 0 {
				scale = tt.scale
			}
			want = trace.Plus(want, trace.Regs[r], scale)
		}
		code := dwarftest.Hex(t, tt.code)
		got, ok := a.Touches(trace, code, 0x1000)
		if ok == tt.none || ok && (got.At != want || got.Writes != tt.writes || got.Compares != tt.compares) {
			t.Errorf("%s: %+v, %v, want %+v", tt.what, got, ok, want)
		}
		if writes, ok := a.Touching(code); ok != (!tt.none || tt.elsewhere) || writes != tt.writes {
			t.Errorf("%s: writes %v, %v", tt.what, writes, ok)
		}
	}
}
