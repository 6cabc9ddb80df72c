package insn

import "encoding/binary"

// loong64: ftrace's call is one of two instructions that are kept free for it (MCOUNT_INSN_SIZE of
// arch/loongarch/include/asm/ftrace.h); the kernel takes a probe at the other one. The frame pointer is fp.
var loong64 = fromTables(&Arch{CallSize: 4, Fixed: 4, Steps: loongSteps, Pair: pairLoong}, loongForms.next, loongOperations)

// wordLoong: each instruction has four bytes (LoongArch Reference Manual, volume 1, section 1.4).
func wordLoong(code []byte) (word uint64, size int, ok bool) {
	if len(code) < 4 {
		return 0, 0, false
	}
	return uint64(binary.LittleEndian.Uint32(code)), 4, true
}

// The distances of branches, in instructions (volume 1, section 2.2.4). The upper bits of the longer ones are in the
// lowest bits of the word.
var (
	loongI16 = &distance{pieces: []piece{{10, 16, 2}}, bits: 18}
	loongI21 = &distance{pieces: []piece{{10, 16, 2}, {0, 5, 18}}, bits: 23}
	loongI26 = &distance{pieces: []piece{{10, 16, 2}, {0, 10, 18}}, bits: 28}
)

// loongForms are the branches (volume 1, sections 2.2.4 and 2.2.10, and 3.2.3.1 for floating-point flags). A return is a jump
// to ra. Traps are the kernel's BUG and WARN, and what compilers write where code must not come.
var loongForms = table(wordLoong, piece{at: 26, bits: 6}, []form{
	{0xffffffff, 0x00000000, unknown, nil},     // never an instruction
	{0xffffffff, 0x03400000, idle, nil},        // andi zero, zero, 0
	{0xffff8000, 0x002a0000, traps, nil},       // break
	{0xffffffff, 0x06483800, ends, nil},        // ertn
	{0xfc000000, 0x40000000, 0, loongI21},      // beqz
	{0xfc000000, 0x44000000, 0, loongI21},      // bnez
	{0xfc000200, 0x48000000, 0, loongI21},      // bceqz, bcnez
	{0xfc000200, 0x48000200, ends | lost, nil}, // jiscr0, jiscr1
	{0xffffffff, 0x4c000020, ends, nil},        // jirl zero, ra, 0
	{0xfc00001f, 0x4c000000, ends | lost, nil}, // jirl zero
	{0xfc000000, 0x4c000000, calls, nil},       // jirl
	{0xfc000000, 0x50000000, ends, loongI26},   // b
	{0xfc000000, 0x54000000, calls, loongI26},  // bl
	{0xf8000000, 0x58000000, 0, loongI16},      // beq, bne
	{0xf8000000, 0x60000000, 0, loongI16},      // blt, bge
	{0xf8000000, 0x68000000, 0, loongI16},      // bltu, bgeu
})

// pairLoong returns where a JIRL leads after a PCADDU18I to its register: the distance from the PCADDU18I.
func pairLoong(before, code []byte) (to int64, ok bool) {
	if len(before) < 4 || len(code) < 4 {
		return 0, false
	}
	upper, jump := binary.LittleEndian.Uint32(before), binary.LittleEndian.Uint32(code)
	const pcaddu18i, jirl = 0x1e000000, 0x4c000000
	if upper&0xfe000000 != pcaddu18i || jump&0xfc000000 != jirl || upper&31 != jump>>5&31 || upper&31 == 0 {
		return 0, false
	}
	return int64(int32(upper<<7))>>12<<18 + loongI16.of(uint64(jump)), true
}

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
