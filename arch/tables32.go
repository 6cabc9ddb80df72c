package arch

import (
	"debug/elf"
	"slices"
)

// i386: System V ABI, Intel386 Architecture Processor Supplement 1.1, table 2.14 (DWARF
// register number mapping); struct pt_regs of arch/x86/include/asm/ptrace.h with
// CONFIG_X86_32. In the kernel sp is what it was before the probe since Linux 5.3
// (commit 3c88c692c287).
//
// Where arguments are is not known: on the stack in programs, and in eax, edx and ecx in
// kernels, which are built with -mregparm=3.
var i386 = build(Arch{
	Name: "i386", GOARCH: "386", Uname: []string{"i386", "i486", "i586", "i686"}, Machine: elf.EM_386, WordSize: 4, GlobDat: uint32(elf.R_386_GLOB_DAT), Sigil: "%", SP: 4, PC: 8, Results: []uint16{0, 2},
	Preserved: []uint16{3, 5, 6, 7}, // table 2.3
	StackArgs: 4,
	// arch/x86/entry/entry_64_compat.S
	Hosts:  map[string]map[uint16]string{"amd64": {0: "rax", 1: "rcx", 2: "rdx", 3: "rbx", 4: "rsp", 5: "rbp", 6: "rsi", 7: "rdi", 8: "rip", 9: "rflags", 41: "cs", 42: "ss"}},
	Source: "System V ABI Intel386 supplement 1.1, table 2.14; arch/x86/include/asm/ptrace.h",
}, map[string]string{ // arch/x86/kernel/ptrace.c (6.1), regoffset_table
	"eax": "ax", "ebx": "bx", "ecx": "cx", "edx": "dx", "esi": "si", "edi": "di", "ebp": "bp", "esp": "sp", "eip": "ip", "eflags": "flags",
}, func() []Register {
	return slices.Concat(
		[]Register{
			{DWARF: 0, Name: "eax", Offset: 24},
			{DWARF: 1, Name: "ecx", Offset: 4},
			{DWARF: 2, Name: "edx", Offset: 8},
			{DWARF: 3, Name: "ebx", Offset: 0},
			{DWARF: 4, Name: "esp", Offset: 60},
			{DWARF: 5, Name: "ebp", Offset: 20},
			{DWARF: 6, Name: "esi", Offset: 12},
			{DWARF: 7, Name: "edi", Offset: 16},
			{DWARF: 8, Name: "eip", Offset: 48},
			{DWARF: 9, Name: "eflags", Offset: 56},
		},
		vectors("st", 0, 8, 11),
		vectors("xmm", 0, 8, 21),
		vectors("mm", 0, 8, 29),
		[]Register{
			{DWARF: 40, Name: "es", Offset: 32},
			{DWARF: 41, Name: "cs", Offset: 52},
			{DWARF: 42, Name: "ss", Offset: 64},
			{DWARF: 43, Name: "ds", Offset: 28},
			{DWARF: 44, Name: "fs", Offset: 36},
			{DWARF: 45, Name: "gs", Offset: -1}, // CONFIG_X86_32_LAZY_GS of older kernels does not save it
		},
	)
})

// armhf: DWARF for the Arm Architecture 2023Q3, table "DWARF register names"; struct pt_regs
// of arch/arm/include/asm/ptrace.h with the indices of arch/arm/include/uapi/asm/ptrace.h.
var armhf = build(Arch{
	Name: "armhf", GOARCH: "arm", Uname: []string{"armv6l", "armv7l", "armv8l"}, Machine: elf.EM_ARM, WordSize: 4, GlobDat: uint32(elf.R_ARM_GLOB_DAT), CodeMarks: true, LowBit: true,
	SP: 13, PC: 15, Link: 14, Results: []uint16{0, 1},
	Args:      []uint16{0, 1, 2, 3},            // Procedure Call Standard for the Arm Architecture, 6.1.1
	Preserved: []uint16{4, 5, 6, 7, 8, 10, 11}, // 6.1.1; r9 is the platform's
	Source:    "DWARF for the Arm Architecture 2023Q3; arch/arm/include/asm/ptrace.h",
}, map[string]string{"r11": "fp", "r12": "ip"}, // arch/arm/kernel/ptrace.c (6.1), regoffset_table
	func() []Register {
		return slices.Concat(
			numbered("r", 13, 0, 0, 4),
			[]Register{
				{DWARF: 13, Name: "sp", Offset: 52},
				{DWARF: 14, Name: "lr", Offset: 56},
				{DWARF: 15, Name: "pc", Offset: 60},
			},
			vectors("s", 0, 32, 64),
			vectors("d", 0, 32, 256),
		)
	})
