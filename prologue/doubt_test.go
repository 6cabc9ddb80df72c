package prologue_test

import (
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/prologue"
)

// TestDoubtInstructions: what it costs to say which arguments are doubtful, and that the comments say it too. Where nothing can fault
// it is known beforehand.
func TestDoubtInstructions(t *testing.T) {
	doubtful := func(a prologue.Arg) prologue.Arg { a.Doubtful = true; return a }
	for _, tt := range []struct {
		name string
		args []prologue.Arg
		c    prologue.Convention
		want string
	}{
		{"in a register", []prologue.Arg{doubtful(arg(inReg(5), 8)), arg(inReg(4), 8)}, prologue.ConventionRegisters, `
r3 = *(u64 *)(r1 +112) ; a: ~%rdi
r4 = *(u64 *)(r1 +104) ; a: %rsi
r2 = 65537 ; err: a: doubtful`},
		{"missing all the same", []prologue.Arg{doubtful(arg(location{}, 8)), arg(inReg(4), 8)}, prologue.ConventionRegisters, `
r3 = 0 ; a: not fetched: optimized-out
r4 = *(u64 *)(r1 +104) ; a: %rsi
r2 = 1 ; err: a: optimized-out`},
		{"in memory", []prologue.Arg{arg(inReg(4), 8), doubtful(arg(inMem(reg(5)), 8))}, prologue.ConventionRegisters, `
r6 = r1 ; a: ~[%rdi]
r3 = *(u64 *)(r6 +112)
r1 = r10
r1 += -8
r2 = 8
call bpf_probe_read_kernel
r0 >>= 63
r0 <<= 1
r2 = r0
r3 = *(u64 *)(r6 +104) ; a: %rsi
r4 = *(u64 *)(r10 -8)
r0 = r2 ; err: a: doubtful
r0 &= 2
r0 ^= 2
r0 <<= 16
r2 |= r0
r2 |= 2
r1 = r6`},
		{"in a record", []prologue.Arg{doubtful(arg(inReg(5), 8)), arg(inReg(4), 8)}, prologue.ConventionRecord, `
r0 = *(u64 *)(r1 +112) ; a: ~%rdi
*(u64 *)(r10 -24) = r0
r0 = *(u64 *)(r1 +104) ; a: %rsi
*(u64 *)(r10 -16) = r0
*(u64 *)(r10 -8) = 1 ; err: a: doubtful
r2 = 1
r3 = r10
r3 += -24`},
		{"none in a record", []prologue.Arg{arg(inReg(5), 8)}, prologue.ConventionRecord, `
r0 = *(u64 *)(r1 +112) ; a: %rdi
*(u64 *)(r10 -16) = r0
*(u64 *)(r10 -8) = 0
r2 = 0
r3 = r10
r3 += -16`},
	} {
		o := prologue.Options{Arch: amd64, Convention: tt.c, Doubts: true}
		p, err := prologue.Emit(tt.args, o)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for line := range strings.Lines(p.String()) {
			_, line, _ = strings.Cut(line, ": ")
			got = append(got, strings.Join(strings.Fields(line), " "))
		}
		if all := strings.Join(got, "\n"); all != strings.TrimSpace(tt.want) {
			t.Errorf("%s: got\n%s\nwant%s", tt.name, all, tt.want)
		}
		checkOne(t, imaginary(false), tt.args, o)
	}
}
