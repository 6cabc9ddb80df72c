package attachable

import (
	"encoding/binary"
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/probed"
)

// kprobeARM64: arm64 has neither optimised kprobes nor kprobes on ftrace nor a booster, up to
// Linux 6.12. arm_kprobe_decode_insn (arch/arm64/kernel/probes/decode-probed.c) says which
// instructions are simulated (INSN_GOOD_NO_SLOT); a copy of each other one runs in a slot, with a
// BRK after it (setup_singlestep in arch/arm64/kernel/probes/kprobes.c).
func kprobeARM64(t *Table, addr uint64) Method {
	code := codeAt(t.img, addr, 4)
	if len(code) < 4 {
		return MethodNone
	}
	return stepARM64(code)
}

func stepARM64(code []byte) Method {
	if simulated(code, probed.ARM64Simulated) || simulated(code, probed.ARM64Literals) {
		return methodEmulated
	}
	return methodStepped
}

// uprobeARM64 returns how a uprobe runs an instruction.
func uprobeARM64(code []byte) Method {
	switch does, _ := probed.For("arm64").Uprobe(code); does {
	case probed.UprobeSteps:
		return methodStepped
	case probed.UprobeEmulates:
		return methodEmulated
	}
	return MethodNone
}

func simulated(code []byte, all []probed.Pattern) bool {
	word := binary.LittleEndian.Uint32(code)
	return slices.ContainsFunc(all, func(p probed.Pattern) bool { return p.Fits(word) })
}
