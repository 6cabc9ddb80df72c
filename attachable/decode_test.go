package attachable

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
	"github.com/bpfprologue/bpfprologue/internal/insn"
	"github.com/bpfprologue/bpfprologue/internal/probed"
)

// TestRefuses: what Linux 6.1 and 7.2 say of the last of some instructions, as the comments spell
// them (llvm-mc -triple=aarch64 -show-encoding).
func TestRefuses(t *testing.T) {
	const load, store, add = "007c5f88", "007c0188", "00040091" // ldxr w0, [x0]; stxr w1, w0, [x0]; add x0, x0, #1
	for code, want := range map[string]Cause{
		add:                      CauseNone,
		"1f2003d5":               CauseNone,       // nop
		"5f2403d5":               CauseNone,       // bti c
		"3f2303d5":               CauseNone,       // paciasp
		"bf2303d5":               causeCannotStep, // autiasp
		"5f2003d5":               causeCannotStep, // wfe
		"00423bd5":               CauseNone,       // mrs x0, nzcv
		"20423bd5":               causeCannotStep, // mrs x0, daif
		"df4203d5":               causeCannotStep, // msr daifset, #2
		"001018d5":               causeCannotStep, // msr sctlr_el1, x0
		"40040119":               causeCannotStep, // cpyfp [x0]!, [x1]!, x2!
		"000020d4":               causeCannotStep, // brk #0
		"c0035fd6":               CauseNone,       // ret, which is simulated
		"ff0b5fd6":               causeCannotStep, // retaa
		"00000014":               CauseNone,       // b, too
		load:                     causeCannotStep,
		store:                    causeCannotStep,
		load + add:               causeInExclusive,
		load + add + store:       causeCannotStep,
		load + add + store + add: CauseNone,
		"00fcdf88" + add:         causeInExclusive, // after ldar, which the kernel takes for an exclusive load
		"017ce188" + add:         causeInExclusive, // after casa w1, w1, [x0], too
	} {
		if got := refuses(insn.For("arm64"), probed.For("arm64"), [2]int{6, 1}, dwarftest.Hex(t, code)); got != want {
			t.Errorf("%s: %q, want %q", code, got, want)
		}
		if code == "00fcdf88"+add || code == "017ce188"+add {
			want = CauseNone // since Linux 6.15
		}
		if got := refuses(insn.For("arm64"), probed.For("arm64"), [2]int{7, 2}, dwarftest.Hex(t, code)); got != want {
			t.Errorf("7.2: %s: %q, want %q", code, got, want)
		}
	}
}
