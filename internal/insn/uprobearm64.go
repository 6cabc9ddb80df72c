package insn

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
	word := littleEndian(code)
	fits := func(all []Pattern) bool {
		for _, p := range all {
			if p.Fits(word) {
				return true
			}
		}
		return false
	}
	switch {
	case arm64Own.Fits(word):
		return UprobeHarms, "BRK #5 would run for ever"
	case arm64Vector.Fits(word):
		return UprobeHarms, arm64LoadsElsewhere
	case fits(ARM64Literals), arm64.CannotStep(code):
		return UprobeRefuses, ""
	case fits(ARM64Simulated):
		return UprobeEmulates, ""
	}
	return UprobeSteps, ""
}

// kprobeARM64 says what arm_kprobe_decode_insn accepts and should not: it asks the same function.
func kprobeARM64(code []byte) (why string) {
	if len(code) >= 4 && arm64Vector.Fits(littleEndian(code)) {
		return arm64LoadsElsewhere
	}
	return ""
}
