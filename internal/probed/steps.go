package probed

// armSteps follows probes_decode_arm_table in arch/arm/probes/decode-arm.c (6.1), without what it says of
// the program counter in places where compilers have none.
var armSteps = []Pattern{
	{0xfe300000, 0xf4100000, false}, // PLD, PLI
	{0xfe300010, 0xf6100000, false}, // of a register
	{0xfe000000, 0xfa000000, false}, // BLX
	{0xf0000000, 0xf0000000, true},  // others without a condition: DMB, CPS
	{0x0ff000f0, 0x01000000, false}, // MRS of CPSR
	{0x0ff000f0, 0x01200010, false}, // BX
	{0x0ff000f0, 0x01200030, false}, // BLX
	{0x0ff000f0, 0x01600010, false}, // CLZ
	{0x0f9000f0, 0x01000050, false}, // QADD
	{0x0f900080, 0x01000000, true},  // MSR, BXJ, BKPT
	{0x0f900090, 0x01000080, false}, // multiplication of halfwords
	{0x0f0000f0, 0x00000090, false}, // multiplication
	{0x0f0000f0, 0x01000090, true},  // LDREX, STREX
	{0x0f200090, 0x00200090, true},  // LDRHT
	{0x0e10e0d0, 0x0000e0d0, true},  // LDRD, STRD of lr
	{0x0e000090, 0x00000090, false}, // other loads of halfwords
	{0x0e10f000, 0x0010f000, true},  // what sets flags and pc
	{0x0fff00ff, 0x03200001, false}, // YIELD
	{0x0fff00ff, 0x03200004, false}, // SEV
	{0x0fff00fc, 0x03200000, false}, // NOP, WFE, WFI
	{0x0fb00000, 0x03200000, true},  // other hints, MSR of a number
	{0x0e10f000, 0x0210f000, true},  // what sets flags and pc
	{0x0ff000f0, 0x07f000f0, true},  // UDF
	{0x0e000010, 0x06000010, false}, // media
	{0x0c40f000, 0x0440f000, true},  // LDRB of pc
	{0x0d200000, 0x04200000, true},  // LDRT
	{0x0e400000, 0x08400000, true},  // LDM, STM of other modes' registers
	{0x0c000000, 0x0c000000, true},  // coprocessors, SVC
}

// arm64Steps follows aarch64_insn_is_steppable and arm_probe_decode_insn in
// arch/arm64/kernel/probes/decode-insn.c (6.1 and 7.2), with the encodings in
// arch/arm64/include/asm/insn.h. The kernel simulates plain branches, ADR and literal loads.
var arm64Steps = []Pattern{
	{0xffffffff, 0xd503201f, false}, // NOP
	{0xffffffff, 0xd50320ff, false}, // XPACLRI
	{0xffffffbf, 0xd503211f, false}, // PACIA1716, PACIB1716
	{0xffffff9f, 0xd503231f, false}, // PACIAZ, PACIASP, PACIBZ, PACIBSP
	{0xffffff3f, 0xd503241f, false}, // BTI
	{0xfffff01f, 0xd503201f, true},  // the other hints
	{0xffffffe0, 0xd53b4220, true},  // MRS of DAIF: a probe runs with interrupts masked
	{0xfff8f01f, 0xd500401f, true},  // MSR of a number
	{0xfff00000, 0xd5100000, true},  // MSR of a register
	{0xff000000, 0xd4000000, true},  // exceptions
	{0xffffffff, 0xd69f03e0, true},  // ERET
	{0xfffffbff, 0xd69f0bff, true},  // ERETAA, ERETAB
	{0xfffffbff, 0xd65f0bff, true},  // RETAA, RETAB
	{0xfefff800, 0xd61f0800, true},  // BRAA and the like
	{0xfefff800, 0xd63f0800, true},  // BLRAA and the like
	{0xff000000, 0xd8000000, true},  // PRFM of a literal
	{0x3f800000, 0x08000000, true},  // exclusive loads and stores
	{0x3b200c00, 0x19000400, true},  // copies and fills of memory (MOPS), of three instructions that must follow each other
}

// arm64Landing is BTI.
var arm64Landing = Pattern{Mask: 0xffffff3f, Value: 0xd503241f}

// arm64Exclusives is what the kernel takes for the ends of an exclusive sequence (is_probed_address_atomic): before Linux
// 6.15, which has BPF's load-acquire, also LDAR, STLR and the instructions of LSE (load_ex and store_ex in
// arch/arm64/include/asm/insn.h).
var arm64Exclusives = []Exclusive{
	{[2]int{6, 15}, Pattern{Mask: 0x3fc00000, Value: 0x08400000}, Pattern{Mask: 0x3fc00000, Value: 0x08000000}},
	{[2]int{}, Pattern{Mask: 0x3f400000, Value: 0x08400000}, Pattern{Mask: 0x3f400000, Value: 0x08000000}},
}

// ARM64Simulated lists what arm_probe_decode_insn in arch/arm64/kernel/probes/decode-insn.c (6.1 and
// 6.12) simulates, and ARM64Literals what kprobes simulate besides. The encodings are those in
// arch/arm64/include/asm/insn.h.
var (
	ARM64Simulated = []Pattern{
		{Mask: 0xff000010, Value: 0x54000000}, // B.cond
		{Mask: 0x7e000000, Value: 0x34000000}, // CBZ, CBNZ
		{Mask: 0x7e000000, Value: 0x36000000}, // TBZ, TBNZ
		{Mask: 0x1f000000, Value: 0x10000000}, // ADR, ADRP
		{Mask: 0x7c000000, Value: 0x14000000}, // B, BL
		{Mask: 0xfffffc1f, Value: 0xd61f0000}, // BR
		{Mask: 0xfffffc1f, Value: 0xd63f0000}, // BLR
		{Mask: 0xfffffc1f, Value: 0xd65f0000}, // RET
	}
	ARM64Literals = []Pattern{
		{Mask: 0xbf000000, Value: 0x18000000}, // LDR of a literal
		{Mask: 0xff000000, Value: 0x98000000}, // LDRSW of a literal
	}
)

// loongSteps follows insns_not_supported in arch/loongarch/kernel/inst.c, as the code of Debian's 7.2 has it.
var loongSteps = []Pattern{
	{0xffff8000, 0x38570000, true}, // sc.q
	{0xfff00000, 0x38600000, true}, // atomic memory access: amswap.w to ammin_db.d
	{0xfffe0000, 0x38700000, true}, // ammax_db.wu to ammin_db.du
	{0xfc000000, 0x20000000, true}, // ll, sc
	{0xfffff000, 0x38578000, true}, // llacq, screl
	{0xfc000000, 0x48000000, true}, // bceqz, bcnez
}

// LoongSimulated are the instructions that the kernel simulates (insns_need_simulation, there too): addresses from their own one,
// and branches.
var LoongSimulated = []Pattern{
	{Mask: 0xf8000000, Value: 0x18000000}, // pcaddi, pcalau12i, pcaddu12i, pcaddu18i
	{Mask: 0xe0000000, Value: 0x40000000}, // beqz to bne
	{Mask: 0xf0000000, Value: 0x60000000}, // blt, bge, bltu, bgeu
}

// ppc64Steps follows can_single_step in arch/powerpc/include/asm/probes.h (6.1).
var ppc64Steps = []Pattern{
	{0xfc000000, 0x08000000, true}, // tdi
	{0xfc000000, 0x0c000000, true}, // twi
	{0xfc000000, 0x44000000, true}, // sc, scv
	{0xfc0007fe, 0x4c000024, true}, // rfid
	{0xfc0007fe, 0x4c00004c, true}, // rfmci
	{0xfc0007fe, 0x4c00004e, true}, // rfdi
	{0xfc0007fe, 0x4c000064, true}, // rfi
	{0xfc0007fe, 0x4c000066, true}, // rfci
	{0xfc0007fe, 0x4c0000a4, true}, // rfscv
	{0xfc0007fe, 0x4c000224, true}, // hrfid
	{0xfc0007fe, 0x4c000264, true}, // urfid
	{0xfc0007fe, 0x4c0002e4, true}, // stop
	{0xfc0007fe, 0x4c000324, true}, // doze
	{0xfc0007fe, 0x4c000364, true}, // nap
	{0xfc0007fe, 0x4c0003a4, true}, // sleep
	{0xfc0007fe, 0x4c0003e4, true}, // rvwinkle
	{0xfc0007fe, 0x7c000008, true}, // tw
	{0xfc0007fe, 0x7c000088, true}, // td
	{0xfc0007fe, 0x7c000124, true}, // mtmsr
	{0xfc0007fe, 0x7c000164, true}, // mtmsrd
}

// riscvSteps follows riscv_probe_decode_insn in arch/riscv/kernel/probes/decode-insn.c (6.12).
var riscvSteps = []Pattern{
	{0x0000707f, 0x0000100f, true}, // fence.i
	{0x0000007f, 0x00000073, true}, // system
	{0x0000007f, 0x0000000f, true}, // fence
	{0x0000ffff, 0x00009002, true}, // c.ebreak
}

// s390Steps follows probe_is_prohibited_opcode in arch/s390/lib/probes.c (6.1).
// Without what it does not know (is_known_insn): of these, none is in a kernel.
var s390Steps = []Pattern{
	{0xff000000, 0x0c000000, true}, // BASSM
	{0xff000000, 0x0b000000, true}, // BSM
	{0xff000000, 0x83000000, true}, // DIAG
	{0xff000000, 0x44000000, true}, // EX
	{0xff000000, 0xac000000, true}, // STNSM
	{0xff000000, 0xad000000, true}, // STOSM
	{0xff0f0000, 0xc6000000, true}, // EXRL
	{0xffff0000, 0x01010000, true}, // PR
	{0xffff0000, 0xb25a0000, true}, // BSA
	{0xffff0000, 0xb2400000, true}, // BAKR
	{0xffff0000, 0xb2580000, true}, // BSG
	{0xffff0000, 0xb2180000, true}, // PC
	{0xffff0000, 0xb2280000, true}, // PT
	{0xffff0000, 0xb98d0000, true}, // EPSW
	{0xffff0000, 0xe5600000, true}, // TBEGIN
	{0xffff0000, 0xe5610000, true}, // TBEGINC
	{0xffff0000, 0xb2f80000, true}, // TEND
}
