package arch

import (
	"debug/elf"
	"slices"
)

var all = []*Arch{amd64, arm64}

// amd64: System V ABI, AMD64 Architecture Processor Supplement, figure 3.36
// (DWARF register number mapping); struct pt_regs of
// arch/x86/include/uapi/asm/ptrace.h, unchanged since Linux 2.6.
var amd64 = build(Arch{
	Name: "amd64", Machine: elf.EM_X86_64, WordSize: 8, Sigil: "%", SP: 7, Return: 0,
	Args: []uint16{5, 4, 1, 2, 8, 9}, // figure 3.4
	// arch/x86/kernel/ptrace.c (6.1), regoffset_table
	kernelNames: map[string]string{
		"rax": "ax", "rbx": "bx", "rcx": "cx", "rdx": "dx", "rsi": "si", "rdi": "di", "rbp": "bp", "rsp": "sp", "rip": "ip", "rflags": "flags",
	},
	Source: "System V ABI AMD64 supplement 1.0, figure 3.36; arch/x86/include/uapi/asm/ptrace.h",
}, slices.Concat(
	[]Register{
		{0, "rax", 80, General},
		{1, "rdx", 96, General},
		{2, "rcx", 88, General},
		{3, "rbx", 40, General},
		{4, "rsi", 104, General},
		{5, "rdi", 112, General},
		{6, "rbp", 32, General},
		{7, "rsp", 152, General},
		{8, "r8", 72, General},
		{9, "r9", 64, General},
		{10, "r10", 56, General},
		{11, "r11", 48, General},
		{12, "r12", 24, General},
		{13, "r13", 16, General},
		{14, "r14", 8, General},
		{15, "r15", 0, General},
		{16, "rip", 128, General},
	},
	numbered("xmm", 0, 16, 17, 0, 0, Vector),
	numbered("st", 0, 8, 33, 0, 0, Vector),
	numbered("mm", 0, 8, 41, 0, 0, Vector),
	[]Register{
		{49, "rflags", 144, Other},
		{50, "es", NoOffset, Other},
		{51, "cs", 136, Other},
		{52, "ss", 160, Other},
		{53, "ds", NoOffset, Other},
		{54, "fs", NoOffset, Other},
		{55, "gs", NoOffset, Other},
		{58, "fs.base", NoOffset, Other},
		{59, "gs.base", NoOffset, Other},
	},
	numbered("xmm", 16, 16, 67, 0, 0, Vector),
	numbered("k", 0, 8, 118, 0, 0, Vector),
))

// arm64: DWARF for the Arm 64-bit Architecture, table "DWARF register names";
// struct user_pt_regs of arch/arm64/include/uapi/asm/ptrace.h, which starts
// struct pt_regs.
var arm64 = build(Arch{
	Name: "arm64", Machine: elf.EM_AARCH64, WordSize: 8, SP: 31, Return: 0,
	Args:   []uint16{0, 1, 2, 3, 4, 5, 6, 7}, // Procedure Call Standard for the Arm 64-bit Architecture, 6.8.2
	Source: "DWARF for the Arm 64-bit Architecture 2023Q3; arch/arm64/include/uapi/asm/ptrace.h",
}, slices.Concat(
	numbered("x", 0, 31, 0, 0, 8, General),
	[]Register{
		{31, "sp", 248, General},
		{32, "pc", 256, General},
	},
	numbered("v", 0, 32, 64, 0, 0, Vector),
))
