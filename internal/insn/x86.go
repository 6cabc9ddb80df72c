package insn

import "golang.org/x/arch/x86/x86asm"

// x86 is what the instructions of amd64 and of i386 differ in.
type x86 struct {
	mode int // bits of an address
	// numbers are the DWARF numbers of the general registers, in the order of their codes.
	numbers []int
	sp, fp  uint64    // the stack pointer's, and the frame pointer's
	lost    Registers // that functions do not preserve
	results Registers
	number  [256]int // of registers and their parts; -1 for others
}

// amd64: System V ABI, AMD64 Architecture Processor Supplement, figures 3.36 (numbers) and 3.4: functions do not preserve RAX, RDX, RCX, RSI,
// RDI and R8 to R11, and RAX and RDX have results. ftrace's call is a CALL of 5 bytes; RBP is the frame pointer.
var amd64 = func() *Arch {
	m := &x86{mode: 64, numbers: []int{0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15}, sp: 7, fp: 6, lost: 0xf37, results: 0x003}
	a := m.arch()
	a.Global, a.Uprobe, a.RedZone = m.global, uprobeX86, redZoneX86
	return a
}()

// i386: System V ABI, Intel386 Architecture Processor Supplement 1.1, tables 2.14 (numbers) and 2.3: functions do not preserve EAX, ECX and EDX, and
// EAX and EDX have results. EBP is the frame pointer.
var i386 = (&x86{mode: 32, numbers: []int{0, 1, 2, 3, 4, 5, 6, 7}, sp: 4, fp: 5, lost: 0x07, results: 0x05}).arch()

func (m *x86) arch() *Arch {
	for i := range m.number {
		m.number[i] = -1
	}
	for i, n := range m.numbers {
		for _, first := range [...]x86asm.Reg{x86asm.AX, x86asm.EAX, x86asm.RAX} {
			m.number[int(first)+i] = n
		}
		if i < 4 {
			m.number[int(x86asm.AL)+i], m.number[int(x86asm.AH)+i] = n, n
		} else {
			m.number[int(x86asm.SPB)+i-4] = n
		}
	}
	return &Arch{
		// Probes at INT3 are refused, and since Linux 6.9 at all of INT and UD (__copy_instruction and is_exception_insn in
		// arch/x86/kernel/kprobes/core.c).
		CallSize: 5, Refusals: []Refusal{{Is: isInt3}, {Since: [2]int{6, 9}, Is: raisesX86}}, Next: m.next, Slots: &SlotDecoder{next: m.slot, ends: m.ends, Frame: m.fp}, Results: Results{m.calls, m.uses}, Shape: m.shape, Uprobe: m.uprobe32, Kprobe: m.kprobe,
		Writes: m.writes, updates: m.updates, trace: m.trace, target: m.target, frame: 1<<m.sp | 1<<m.fp, width: uint8(m.mode),
	}
}
