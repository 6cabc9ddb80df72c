package ktable

import (
	"github.com/bpfprologue/bpfprologue/internal/insn"
	"github.com/bpfprologue/bpfprologue/internal/probed"
)

// callOps is a symbol of kernels with CONFIG_DYNAMIC_FTRACE_WITH_CALL_OPS (kernel/trace/ftrace.c). They have the address of
// ftrace's data in front of each function, and the table has the address of that.
const callOps = "ftrace_list_ops"

// Calls returns the addresses of ftrace's calls, or of what compilers left for them, in the table's order. The error is
// about a damaged image.
func (m *Marks) Calls() ([]uint64, error) {
	all, err := m.Addresses(Mcount)
	if err != nil {
		return nil, err
	}
	_, ops := m.at[callOps]
	arch, rules := insn.For(m.f.Instructions()), probed.For(m.f.Instructions())
	if !ops || rules == nil || rules.BeforeEntry == 0 {
		return all, nil
	}
	for i := range all {
		all[i] += rules.BeforeEntry
		if code, err := m.f.Bytes(all[i], 4); err == nil && rules.Landing.Mask != 0 && rules.Landing.Fits(arch.Word(code)) {
			all[i] += 4
		}
	}
	return all, nil
}
