package attachable

import (
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/probed"
)

// kprobeLoong: a probe at ftrace's call is one of ftrace's (kprobe_ftrace_handler in arch/loongarch/kernel/ftrace_dyn.c). Of other
// instructions, insns_need_simulation (arch/loongarch/kernel/inst.c) says which are simulated; a copy of each other one
// runs in a slot, with
// a BREAK after it (setup_singlestep in arch/loongarch/kernel/kprobes.c). Both are as in Debian's 7.2.
func kprobeLoong(t *Table, addr uint64) Method {
	if _, found := slices.BinarySearch(t.mcount, addr); found {
		return methodFtrace
	}
	return uprobeLoong(codeAt(t.img, addr, 4))
}

// uprobeLoong follows arch_uprobe_analyze_insn in arch/loongarch/kernel/uprobes.c, which asks the same functions.
func uprobeLoong(code []byte) Method {
	switch {
	case len(code) < 4, probed.For("loong64").CannotStep(code):
		return MethodNone
	case simulated(code, probed.LoongSimulated):
		return methodEmulated
	}
	return methodStepped
}
