// Package probed says what kernels do with the instruction under a probe: step a copy of it, skip it, do what it would do, refuse the
// probe, or run something else. Each architecture is a line in the table below, from the kernel's own tables.
package probed

import (
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/insn"
)

// Rules are what an architecture's kernel does with instructions that have a probe.
type Rules struct {
	// CallSize is the size in bytes of ftrace's call at a function's beginning.
	CallSize uint64
	// BeforeEntry is the size in bytes of ftrace's data in front of a function, in kernels that have it there. Landing
	// is an instruction that may come between the function's beginning and the call. Both are ftrace_call_adjust's.
	BeforeEntry uint64
	Landing     Pattern
	// Steps says which instructions kprobes accept or refuse: the first pattern that fits decides. Kprobes accept an
	// instruction that no pattern fits.
	Steps []Pattern
	// Refusals are instructions of differing sizes that kprobes refuse.
	Refusals []Refusal
	// Exclusives says what begins and ends a sequence that must not be interrupted, by version of the kernel, the newest
	// first. The kernel looks for one in the Sequence instructions before the probe.
	Exclusives []Exclusive
	Sequence   uint64

	arch    string
	uprobe  func(code []byte) (does Uprobe, why string) // nil if Steps say all that uprobes refuse
	kprobe  func(code []byte) (why string)              // nil if none changes what the kernel computes
	redZone func(code []byte) bool                      // nil if no kernel's probe writes below the stack pointer
}

// all has the rules. ftrace's call is a CALL of 5 bytes on x86, BL on arm and ppc64el (-mprofile-kernel), BRASL or BRCL of six bytes on
// s390x, AUIPC and JALR on riscv64 (MCOUNT_INSN_SIZE of arch/riscv/include/asm/ftrace.h). On arm64 it is a MOV, at which a probe can be,
// and BL; the two words in front of a function, since Linux 6.3, have an address, and BTI is a landing (arch/arm64/kernel/ftrace.c). On
// loong64 it is one of two instructions that are kept free for it (arch/loongarch/include/asm/ftrace.h); the kernel takes a probe at the
// other one. What riscv64 has in front of a function is 8 bytes (ftrace_call_adjust in arch/riscv/kernel/ftrace.c, 7.2).
var all = map[string]*Rules{
	"amd64": {arch: "amd64", CallSize: 5, Refusals: x86Refusals, uprobe: uprobeX86, kprobe: kprobeAMD64, redZone: redZoneX86},
	"arm64": {
		arch: "arm64", CallSize: 8, BeforeEntry: 8, Landing: arm64Landing, Steps: arm64Steps, Exclusives: arm64Exclusives, Sequence: 32,
		uprobe: uprobeARM64, kprobe: kprobeARM64,
	},
	"armhf":   {arch: "armhf", CallSize: 4, Steps: armSteps},
	"i386":    {arch: "i386", CallSize: 5, Refusals: x86Refusals, uprobe: uprobeI386, kprobe: kprobeI386},
	"loong64": {arch: "loong64", CallSize: 4, Steps: loongSteps},
	"ppc64el": {arch: "ppc64el", CallSize: 4, Steps: ppc64Steps},
	"riscv64": {arch: "riscv64", CallSize: 8, BeforeEntry: 8, Steps: riscvSteps},
	"s390x":   {arch: "s390x", CallSize: 6, Steps: s390Steps},
}

// For returns the rules for the architecture with a name, or nil.
func For(arch string) *Rules { return all[arch] }

// Uprobe is what the kernel does with an instruction that has a uprobe.
type Uprobe uint8

const (
	// UprobeSteps means that a copy of the instruction is single-stepped elsewhere.
	UprobeSteps Uprobe = iota
	// UprobeSkips means that the instruction does nothing, and the kernel goes on after it.
	UprobeSkips
	// UprobeEmulates means that the kernel does what the instruction would do.
	UprobeEmulates
	// UprobeCalls is UprobeSteps or UprobeSkips in most kernels. Some make a call of the NOP, which writes below the stack pointer.
	UprobeCalls
	// UprobeRepeats is UprobeSteps, with a hit for each element that a repeated string instruction moves.
	UprobeRepeats
	// UprobeRefuses means that the kernel accepts no probe.
	UprobeRefuses
	// UprobeHarms means that the kernel accepts the probe, and the program then computes something else, or ends.
	UprobeHarms
)

// Uprobe says what uprobes do with the first instruction in code, and why a probe harms the program.
func (r *Rules) Uprobe(code []byte) (does Uprobe, why string) {
	switch {
	case r.uprobe != nil:
		return r.uprobe(code)
	case r.CannotStep(code):
		return UprobeRefuses, ""
	}
	return UprobeSteps, ""
}

// Kprobe says why a kprobe at the first instruction in code changes what the kernel computes, or "".
func (r *Rules) Kprobe(code []byte) (why string) {
	if r.kprobe == nil {
		return ""
	}
	return r.kprobe(code)
}

// BelowStack reports whether a function's code may keep something below the stack pointer, where a kernel's probe writes.
func (r *Rules) BelowStack(code []byte) bool { return r.redZone != nil && r.redZone(code) }

// CannotStep reports whether the kernel refuses a probe at the first instruction in code, by Steps alone.
func (r *Rules) CannotStep(code []byte) bool { return refused(r.Steps, insn.For(r.arch).Word(code)) }

func refused(steps []Pattern, word uint32) bool {
	i := slices.IndexFunc(steps, func(p Pattern) bool { return p.Fits(word) })
	return i >= 0 && steps[i].Refused
}

// Pattern matches the instructions whose words have a value under a mask.
type Pattern struct {
	Mask, Value uint32
	Refused     bool // kprobes refuse them
}

// Fits reports whether the pattern matches a word.
func (p Pattern) Fits(word uint32) bool { return word&p.Mask == p.Value }

// Refusal is what kernels since a version, major and minor, refuse.
type Refusal struct {
	Since [2]int
	Is    func(code []byte) bool // the first instruction in code
}

// Exclusive is what kernels since a version, major and minor, take for the beginning and the end of a sequence that must
// not be interrupted.
type Exclusive struct {
	Since       [2]int
	Load, Store Pattern
}
