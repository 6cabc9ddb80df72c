package attachable

import (
	"fmt"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/ktable"
)

// Method is how the kernel runs a probe at an address, and so what a hit costs. The methods of
// kprobes and uprobes, cheapest first, each by the result of String and of Describe, are
//
//   - ftrace: ftrace's call at the function's beginning calls the probe: no exception
//   - jump: a jump leads to the probe and a copy of the instructions: no exception
//   - boosted: a breakpoint; a copy of the instruction runs and jumps back
//   - nop: a breakpoint; the instruction does nothing and is skipped
//   - emulated: a breakpoint; the kernel does what the instruction would do
//   - stepped: a breakpoint, and a second exception after a copy of the instruction
//   - called: a breakpoint, stepped or skipped; Linux 6.18 to 7.2 make this NOP a call after the first hit: a system call and no exception
//
// MethodNone has neither: the kernel accepts no probe, or it is not known how it runs one. Methods
// are only added to the list, never removed.
type Method uint8

const (
	// MethodNone means that there is no probe, or that its method is not known.
	MethodNone Method = iota
	// methodFtrace: KPROBES_ON_FTRACE, [FTRACE] in debugfs (arch/x86/kernel/kprobes/ftrace.c).
	methodFtrace
	// methodJump: an optimised kprobe, [OPTIMIZED] in debugfs (arch/x86/kernel/kprobes/opt.c).
	methodJump
	// methodBoosted: ainsn.boostable, in kernels that are not preemptible (setup_singlestep in
	// arch/x86/kernel/kprobes/core.c).
	methodBoosted
	// methodNop: a uprobe at a NOP (branch_setup_xol_ops in arch/x86/kernel/uprobes.c).
	methodNop
	// methodEmulated: ainsn.emulate_op (arch/x86/kernel/kprobes/core.c), the ops of uprobes that
	// emulate (arch/x86/kernel/uprobes.c), simulation (arch/arm64/kernel/probes/simulate-insn.c).
	methodEmulated
	// methodStepped: the instruction is single-stepped out of line, for uprobes in the XOL area;
	// kprobes put a second breakpoint after it (since Linux 5.13 on amd64).
	methodStepped
	// methodCalled: a uprobe at a NOP of five bytes (arch_uprobe_optimize in arch/x86/kernel/uprobes.c).
	methodCalled
	methodCount
)

var methodText = [methodCount]struct{ name, text string }{
	MethodNone:     {"", ""},
	methodFtrace:   {"ftrace", "ftrace's call at the function's beginning calls the probe: no exception"},
	methodJump:     {"jump", "a jump leads to the probe and a copy of the instructions: no exception"},
	methodBoosted:  {"boosted", "a breakpoint; a copy of the instruction runs and jumps back"},
	methodNop:      {"nop", "a breakpoint; the instruction does nothing and is skipped"},
	methodEmulated: {"emulated", "a breakpoint; the kernel does what the instruction would do"},
	methodCalled:   {"called", "a breakpoint, stepped or skipped; Linux 6.18 to 7.2 make this NOP a call after the first hit: a system call and no exception"},
	methodStepped:  {"stepped", "a breakpoint, and a second exception after a copy of the instruction"},
}

// Cost puts methods in order: 0 without an exception, 1 to 3 with one that takes longer or with two,
// and less than 0 for MethodNone.
func (m Method) Cost() int {
	switch m {
	case MethodNone:
		return -1
	case methodFtrace, methodJump:
		return 0
	case methodBoosted, methodNop:
		return 1
	case methodEmulated:
		return 2
	}
	return 3
}

// String returns the short, stable name, such as "jump".
func (m Method) String() string {
	if m >= methodCount {
		return fmt.Sprintf("Method(%d)", uint8(m))
	}
	return methodText[m].name
}

// Describe returns a description for people.
func (m Method) Describe() string {
	if m >= methodCount {
		return m.String()
	}
	return methodText[m].text
}

// methods are how an architecture's kernel runs probes.
type methods struct {
	// kprobe is asked about addresses at which the kernel accepts a probe.
	kprobe func(t *Table, addr uint64) Method
	// uprobe is asked about the first instruction in code.
	uprobe func(code []byte) Method
	// read reads what kprobe needs besides what At needs. It may be nil.
	read func(t *Table, marks *ktable.Marks) error
}

var methodsOf = map[string]methods{
	"amd64":   {kprobeX86, uprobeX86, (*Table).readX86},
	"arm64":   {kprobeARM64, uprobeARM64, nil},
	"loong64": {kprobeLoong, uprobeLoong, nil},
}

// Method returns how the kernel runs a probe at a link-time address, when it is the only one near:
// a jump needs five bytes without another probe. It is MethodNone where At gives a cause, and for
// modules, of which the tables are not read.
//
// The rules are those of Linux 6.1, 6.12 and 7.2; where they differ, the image says which. On amd64 the
// kernel must be allowed to make jumps (the sysctl debug.kprobes-optimization), and makes them some
// time after the probe. On machines whose processor returns through thunks (the mitigations of
// Retbleed, SRSO and ITS), Linux before 6.6 takes each return for an indirect jump, and makes no
// jumps in functions that return.
func (t *Table) Method(addr uint64) Method {
	m, ok := methodsOf[t.img.Arch().Name]
	if !ok || inside.File(t.img).IsRelocatable() {
		return MethodNone
	}
	method := MethodNone
	if err := inside.File(t.img).Guard(func() error {
		if t.at(addr) == CauseNone {
			method = m.kprobe(t, addr)
		}
		return nil
	}); err != nil {
		return MethodNone
	}
	return method
}

// UprobeMethod returns how the kernel runs a uprobe at a link-time address of an executable or a
// shared library. It is MethodNone where the kernel accepts none. The rules are those of Linux 6.1
// to 6.12, and on loong64 of 7.2.
func UprobeMethod(img *dwarfloc.Image, addr uint64) Method {
	m, ok := methodsOf[img.Arch().Name]
	code := codeAt(img, addr, maxInstruction)
	if s := inside.File(img).SectionAt(addr); !ok || s == nil || !s.Exec || code == nil {
		return MethodNone
	}
	return m.uprobe(code)
}
