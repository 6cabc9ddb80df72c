package probed

import (
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/insn"
)

// What kernels for arm64 do wrong, which accept both (arch/arm64/kernel/probes of 6.1 to 7.2, and seen with 6.1): aarch64_insn_uses_literal does
// not know loads of vector registers, so a copy of one runs elsewhere, and loads what is near the copy; and BRK #5 is what a uprobe is,
// which comes back to itself.
var (
	arm64Vector = Pattern{Mask: 0x3f000000, Value: 0x1c000000}
	arm64Own    = Pattern{Mask: 0xffffffff, Value: 0xd42000a0}
)

const arm64LoadsElsewhere = "the kernel runs a copy of it elsewhere, which loads from another address"

// uprobeARM64 follows arch_uprobe_analyze_insn in arch/arm64/kernel/probes/uprobes.c. Loads of literals are refused since Linux 6.12 and
// 6.1.113.
func uprobeARM64(code []byte) (does Uprobe, why string) {
	if len(code) < 4 {
		return UprobeRefuses, ""
	}
	word := insn.For("arm64").Word(code)
	fits := func(p Pattern) bool { return p.Fits(word) }
	switch {
	case arm64Own.Fits(word):
		return UprobeHarms, "BRK #5 would run for ever"
	case arm64Vector.Fits(word):
		return UprobeHarms, arm64LoadsElsewhere
	case slices.ContainsFunc(ARM64Literals, fits), refused(arm64Steps, word):
		return UprobeRefuses, ""
	case slices.ContainsFunc(ARM64Simulated, fits):
		return UprobeEmulates, ""
	}
	return UprobeSteps, ""
}

// kprobeARM64 says what arm_kprobe_decode_insn accepts and should not: it asks the same function.
func kprobeARM64(code []byte) (why string) {
	if len(code) >= 4 && arm64Vector.Fits(insn.For("arm64").Word(code)) {
		return arm64LoadsElsewhere
	}
	return ""
}
