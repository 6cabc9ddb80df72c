package arch

import (
	"debug/elf"
	"slices"
)

// s390x: ELF Application Binary Interface, s390x Supplement 1.6, table 1.14 (DWARF register
// mapping); struct user_pt_regs of arch/s390/include/uapi/asm/ptrace.h, which is the context
// of BPF programs and starts struct pt_regs.
var s390x = build(Arch{
	Name: "s390x", GOARCH: "s390x", Uname: []string{"s390x"}, Machine: elf.EM_S390, WordSize: 8, BigEndian: true, GlobDat: uint32(elf.R_390_GLOB_DAT), SP: 15, PC: 65, Link: 14, Results: []uint16{2},
	Args:      []uint16{2, 3, 4, 5, 6},              // section 1.2.2.1
	Preserved: []uint16{6, 7, 8, 9, 10, 11, 12, 13}, // table 1.4
	StackArgs: 160,                                  // section 1.2.1.1
	Source:    "ELF ABI s390x Supplement 1.6; arch/s390/include/uapi/asm/ptrace.h",
}, map[string]string{"pswm": "", "pswa": ""}, // arch/s390/kernel/ptrace.c (6.1), regs_query_register_offset: only r0 to r15
	func() []Register {
		return slices.Concat(
			numbered("r", 16, 0, 24, 8),
			mixed("f", 16, 0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15),
			absent("c", 16, 32),
			absent("a", 16, 48),
			[]Register{
				{DWARF: 64, Name: "pswm", Offset: 8},
				{DWARF: 65, Name: "pswa", Offset: 16},
			},
			mixed("v", 68, 16, 18, 20, 22, 17, 19, 21, 23, 24, 26, 28, 30, 25, 27, 29, 31),
		)
	})

// ppc64el: 64-Bit ELF V2 ABI Specification for Power 1.5, table 2.23, section 2.4 (DWARF register
// mapping) for the first numbers. GCC names the link and count registers by other ones
// in debug information (gcc/config/rs6000/rs6000.cc, rs6000_debugger_regno). struct user_pt_regs of
// arch/powerpc/include/uapi/asm/ptrace.h, which starts struct pt_regs.
var ppc64el = build(Arch{
	Name: "ppc64el", GOARCH: "ppc64le", Uname: []string{"ppc64le"}, Machine: elf.EM_PPC64, WordSize: 8, GlobDat: uint32(elf.R_PPC64_GLOB_DAT), LocalEntries: true,
	SP: 1, PC: 110, Link: 65, Results: []uint16{3, 4},
	Args:      []uint16{3, 4, 5, 6, 7, 8, 9, 10},                                                // section 2.2.3
	Preserved: []uint16{14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31}, // section 2.2.1
	StackArgs: 96,                                                                               // section 2.2.2: the ninth word of the parameter save area
	Source:    "64-Bit ELF V2 ABI Specification for Power 1.5; arch/powerpc/include/uapi/asm/ptrace.h",
}, map[string]string{"lr": "link", "cr": "ccr"}, // arch/powerpc/kernel/ptrace/ptrace.c (6.1), regoffset_table
	func() []Register {
		return slices.Concat(
			numbered("r", 32, 0, 0, 8),
			vectors("f", 0, 32, 32),
			[]Register{
				{DWARF: 65, Name: "lr", Offset: 288},
				{DWARF: 66, Name: "ctr", Offset: 280},
				{DWARF: 76, Name: "xer", Offset: 296},
			},
			vectors("v", 0, 31, 77),
			[]Register{
				{DWARF: 108, Name: "lr", Offset: 288},
				{DWARF: 109, Name: "ctr", Offset: 280},
				{DWARF: 110, Name: "nip", Offset: 256}, // the mapping has none
			},
			vectors("v", 0, 32, 1124),
		)
	})

// riscv64: RISC-V ABIs Specification 1.0, DWARF register numbers; struct user_regs_struct of
// arch/riscv/include/uapi/asm/ptrace.h, which is the context of BPF programs and starts
// struct pt_regs.
//
// The global offset table is filled by R_RISCV_64, as other data is.
var riscv64 = build(Arch{
	Name: "riscv64", GOARCH: "riscv64", Uname: []string{"riscv64"}, Machine: elf.EM_RISCV, WordSize: 8, GlobDat: uint32(elf.R_RISCV_64), CodeMarks: true, SP: 2, PC: 65, Link: 1, Results: []uint16{10, 11},
	Args:      []uint16{10, 11, 12, 13, 14, 15, 16, 17},               // chapter 2, Integer Calling Convention
	Preserved: []uint16{8, 9, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27}, // chapter 1
	Source:    "RISC-V ABIs Specification 1.0; arch/riscv/include/uapi/asm/ptrace.h",
}, map[string]string{"pc": "epc"}, // arch/riscv/kernel/ptrace.c (6.1), regoffset_table
	func() []Register {
		return slices.Concat(
			[]Register{{DWARF: 0, Name: "zero", Offset: -1}}, // where pc is
			named(1, 8, 8, "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1", "a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7",
				"s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "t3", "t4", "t5", "t6"),
			vectors("f", 0, 32, 32),
			[]Register{{DWARF: 65, Name: "pc", Offset: 0}}, // the mapping has none
			vectors("v", 0, 32, 96),
		)
	})

// loong64: LoongArch ABIs 2.30 ("DWARF for the LoongArch Architecture", register numbers; "Procedure Call Standard", register conventions);
// struct user_pt_regs of arch/loongarch/include/uapi/asm/ptrace.h, which is the context of BPF programs and starts
// struct pt_regs. GCC numbers the flags of floating-point comparisons from 64 on.
//
// The global offset table is filled by R_LARCH_64, as other data is.
var loong64 = build(Arch{
	Name: "loong64", GOARCH: "loong64", Uname: []string{"loongarch64"}, Machine: elf.EM_LOONGARCH, WordSize: 8, GlobDat: uint32(elf.R_LARCH_64), CodeMarks: true, SP: 3, PC: 80, Link: 1, Results: []uint16{4, 5},
	Args:      []uint16{4, 5, 6, 7, 8, 9, 10, 11},
	Preserved: []uint16{22, 23, 24, 25, 26, 27, 28, 29, 30, 31},
	Source:    "LoongArch ABIs 2.30; arch/loongarch/include/uapi/asm/ptrace.h",
}, map[string]string{ // arch/loongarch/kernel/ptrace.c (6.12), regoffset_table
	"zero": "r0", "ra": "r1", "tp": "r2", "sp": "r3", "a0": "r4", "a1": "r5", "a2": "r6", "a3": "r7", "a4": "r8", "a5": "r9", "a6": "r10", "a7": "r11",
	"t0": "r12", "t1": "r13", "t2": "r14", "t3": "r15", "t4": "r16", "t5": "r17", "t6": "r18", "t7": "r19", "t8": "r20", "fp": "r22",
	"s0": "r23", "s1": "r24", "s2": "r25", "s3": "r26", "s4": "r27", "s5": "r28", "s6": "r29", "s7": "r30", "s8": "r31", "pc": "csr_era",
}, func() []Register {
	return slices.Concat(
		named(0, 0, 8, "zero", "ra", "tp", "sp", "a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7", "t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8",
			"r21", "fp", "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8"),
		vectors("f", 0, 32, 32),
		[]Register{{DWARF: 80, Name: "pc", Offset: 264}}, // the mapping has none
	)
})

// mips64el: the numbers of GCC and GDB (gcc/config/mips/mips.h, gdb/mips-tdep.c), since the ABI
// documents of MIPS have no mapping; names of the n64 ABI; struct pt_regs of
// arch/mips/include/asm/ptrace.h with CONFIG_64BIT.
var mips64el = build(Arch{
	Name: "mips64el", GOARCH: "mips64le", Uname: []string{"mips64"}, Machine: elf.EM_MIPS, WordSize: 8, SP: 29, PC: 119, Link: 31, Results: []uint16{2, 3},
	Args:      []uint16{4, 5, 6, 7, 8, 9, 10, 11},               // MIPSpro N32 ABI Handbook, chapter 2
	Preserved: []uint16{16, 17, 18, 19, 20, 21, 22, 23, 28, 30}, // table 2-1
	Source:    "gcc/config/mips/mips.h; arch/mips/include/asm/ptrace.h",
}, map[string]string{ // arch/mips/kernel/ptrace.c (6.1), regoffset_table
	"zero": "r0", "at": "r1", "v0": "r2", "v1": "r3", "a0": "r4", "a1": "r5", "a2": "r6", "a3": "r7", "a4": "r8", "a5": "r9", "a6": "r10", "a7": "r11",
	"t0": "r12", "t1": "r13", "t2": "r14", "t3": "r15", "s0": "r16", "s1": "r17", "s2": "r18", "s3": "r19", "s4": "r20", "s5": "r21", "s6": "r22", "s7": "r23",
	"t8": "r24", "t9": "r25", "k0": "r26", "k1": "r27", "gp": "r28", "sp": "r29", "fp": "r30", "ra": "r31", "pc": "c0_epc",
}, func() []Register {
	return slices.Concat(
		named(0, 0, 8, "zero", "at", "v0", "v1", "a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7", "t0", "t1", "t2", "t3",
			"s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "t8", "t9", "k0", "k1", "gp", "sp", "fp", "ra"),
		vectors("f", 0, 32, 32),
		[]Register{
			{DWARF: 64, Name: "hi", Offset: 264},
			{DWARF: 65, Name: "lo", Offset: 272},
			{DWARF: 119, Name: "pc", Offset: 296}, // the mapping has none
		},
	)
})
