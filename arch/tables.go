package arch

import (
	"debug/elf"
	"slices"
)

var all = []*Arch{amd64, arm64, armhf, i386, loong64, mips64el, ppc64el, riscv64, s390x}

// amd64: System V ABI, AMD64 Architecture Processor Supplement, figure 3.36
// (DWARF register number mapping); struct pt_regs of
// arch/x86/include/uapi/asm/ptrace.h, unchanged since Linux 2.6.
var amd64 = build(Arch{
	Name: "amd64", GOARCH: "amd64", Uname: []string{"x86_64"}, Machine: elf.EM_X86_64, WordSize: 8, GlobDat: uint32(elf.R_X86_64_GLOB_DAT), Sigil: "%", SP: 7, PC: 16, Results: []uint16{0, 1},
	Args:      []uint16{5, 4, 1, 2, 8, 9},     // figure 3.4
	Preserved: []uint16{3, 6, 12, 13, 14, 15}, // figure 3.4
	StackArgs: 8,                              // section 3.2.3
	Source:    "System V ABI AMD64 supplement 1.0, figure 3.36; arch/x86/include/uapi/asm/ptrace.h",
}, map[string]string{ // arch/x86/kernel/ptrace.c (6.1), regoffset_table
	"rax": "ax", "rbx": "bx", "rcx": "cx", "rdx": "dx", "rsi": "si", "rdi": "di", "rbp": "bp", "rsp": "sp", "rip": "ip", "rflags": "flags",
}, func() []Register {
	return slices.Concat(
		[]Register{
			{DWARF: 0, Name: "rax", Offset: 80},
			{DWARF: 1, Name: "rdx", Offset: 96},
			{DWARF: 2, Name: "rcx", Offset: 88},
			{DWARF: 3, Name: "rbx", Offset: 40},
			{DWARF: 4, Name: "rsi", Offset: 104},
			{DWARF: 5, Name: "rdi", Offset: 112},
			{DWARF: 6, Name: "rbp", Offset: 32},
			{DWARF: 7, Name: "rsp", Offset: 152},
			{DWARF: 8, Name: "r8", Offset: 72},
			{DWARF: 9, Name: "r9", Offset: 64},
			{DWARF: 10, Name: "r10", Offset: 56},
			{DWARF: 11, Name: "r11", Offset: 48},
			{DWARF: 12, Name: "r12", Offset: 24},
			{DWARF: 13, Name: "r13", Offset: 16},
			{DWARF: 14, Name: "r14", Offset: 8},
			{DWARF: 15, Name: "r15", Offset: 0},
			{DWARF: 16, Name: "rip", Offset: 128},
		},
		vectors("xmm", 0, 16, 17),
		vectors("st", 0, 8, 33),
		vectors("mm", 0, 8, 41),
		[]Register{
			{DWARF: 49, Name: "rflags", Offset: 144},
			{DWARF: 50, Name: "es", Offset: -1},
			{DWARF: 51, Name: "cs", Offset: 136},
			{DWARF: 52, Name: "ss", Offset: 160},
			{DWARF: 53, Name: "ds", Offset: -1},
			{DWARF: 54, Name: "fs", Offset: -1},
			{DWARF: 55, Name: "gs", Offset: -1},
			{DWARF: 58, Name: "fs.base", Offset: -1},
			{DWARF: 59, Name: "gs.base", Offset: -1},
		},
		vectors("xmm", 16, 16, 67),
		vectors("k", 0, 8, 118),
	)
})

// arm64: DWARF for the Arm 64-bit Architecture, table "DWARF register names";
// struct user_pt_regs of arch/arm64/include/uapi/asm/ptrace.h, which starts
// struct pt_regs.
var arm64 = build(Arch{
	Name: "arm64", GOARCH: "arm64", Uname: []string{"aarch64"}, Machine: elf.EM_AARCH64, WordSize: 8, GlobDat: uint32(elf.R_AARCH64_GLOB_DAT), SP: 31, PC: 32, Link: 30, Results: []uint16{0, 1},
	Args:      []uint16{0, 1, 2, 3, 4, 5, 6, 7},                     // Procedure Call Standard for the Arm 64-bit Architecture, 6.8.2
	Preserved: []uint16{19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29}, // 6.1.1
	Source:    "DWARF for the Arm 64-bit Architecture 2023Q3; arch/arm64/include/uapi/asm/ptrace.h",
}, nil, func() []Register {
	return slices.Concat(
		numbered("x", 31, 0, 0, 8),
		[]Register{
			{DWARF: 31, Name: "sp", Offset: 248},
			{DWARF: 32, Name: "pc", Offset: 256},
		},
		vectors("v", 0, 32, 64),
	)
})
