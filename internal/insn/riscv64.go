package insn

import (
	"encoding/binary"
	"sync"
)

// riscv64: the frame pointer is s0.
var riscv64 = sync.OnceValue(func() *Arch { return fromTables(&Arch{Step: 2, Pair: pairRISCV}, riscvForms.next, riscvOperations) })

// wordRISCV: the lowest bits say how long an instruction is (RISC-V ISA manual, volume I, section 1.5).
// None is known that is longer than four bytes.
func wordRISCV(code []byte) (word uint64, size int, ok bool) {
	switch {
	case len(code) < 2:
		return 0, 0, false
	case code[0]&3 != 3:
		return uint64(binary.LittleEndian.Uint16(code)), 2, true
	case len(code) < 4 || code[0]&0x1f == 0x1f:
		return 0, 0, false
	}
	return uint64(binary.LittleEndian.Uint32(code)), 4, true
}

// The distances of branches, from the bits of their words (volume I, sections 2.5 and 26.4).
var (
	riscvJ  = &distance{pieces: []piece{{31, 1, 20}, {21, 10, 1}, {20, 1, 11}, {12, 8, 12}}, bits: 21}
	riscvB  = &distance{pieces: []piece{{31, 1, 12}, {25, 6, 5}, {8, 4, 1}, {7, 1, 11}}, bits: 13}
	riscvCJ = &distance{pieces: []piece{{12, 1, 11}, {11, 1, 4}, {9, 2, 8}, {8, 1, 10}, {7, 1, 6}, {6, 1, 7}, {3, 3, 1}, {2, 1, 5}}, bits: 12}
	riscvCB = &distance{pieces: []piece{{12, 1, 8}, {10, 2, 3}, {5, 2, 6}, {3, 2, 1}, {2, 1, 5}}, bits: 9}
)

// riscvForms are the branches of RV64GC. A return is a jump to ra (volume I, table 3), or to t0 in what is
// called with that. Compressed ones have only zeros in bits 16 and up.
var riscvForms = table(wordRISCV, piece{at: 0, bits: 7}, []form{
	{0xffffffff, 0x00000013, idle, nil},        // nop
	{0xffffffff, 0x00000001, idle, nil},        // c.nop
	{0xffffffff, 0x00000000, traps, nil},       // c.unimp
	{0xffffffff, 0x00008082, ends, nil},        // c.jr ra
	{0xffffffff, 0x00008002, unknown, nil},     // c.jr of no register
	{0xfffff07f, 0x00008002, ends | lost, nil}, // c.jr
	{0xffffffff, 0x00009002, traps, nil},       // c.ebreak
	{0xfffff07f, 0x00009002, calls, nil},       // c.jalr
	{0xffffe003, 0x0000a001, ends, riscvCJ},    // c.j
	{0xffffe003, 0x0000c001, 0, riscvCB},       // c.beqz
	{0xffffe003, 0x0000e001, 0, riscvCB},       // c.bnez
	{0x00000fff, 0x0000006f, ends, riscvJ},     // j
	{0x0000007f, 0x0000006f, calls, riscvJ},    // jal
	{0xffffffff, 0x00008067, ends, nil},        // ret
	{0x00007fff, 0x00000067, ends | lost, nil}, // jr
	{0x0000707f, 0x00000067, calls, nil},       // jalr
	{0x0000607f, 0x00000063, 0, riscvB},        // beq, bne
	{0x0000407f, 0x00004063, 0, riscvB},        // blt, bge, bltu, bgeu
	{0xffffffff, 0x00100073, traps, nil},       // ebreak
	{0xffffffff, 0x10200073, ends, nil},        // sret
	{0xffffffff, 0x30200073, ends, nil},        // mret
})

// pairRISCV returns where a JALR leads after an AUIPC to its register: the distance from the AUIPC.
func pairRISCV(before, code []byte) (to int64, ok bool) {
	if len(before) < 4 || len(code) < 4 {
		return 0, false
	}
	upper, jump := binary.LittleEndian.Uint32(before), binary.LittleEndian.Uint32(code)
	const auipc, jalr = 0x17, 0x67
	if upper&0x7f != auipc || jump&0x707f != jalr || upper>>7&31 != jump>>15&31 || upper>>7&31 == 0 {
		return 0, false
	}
	return int64(int32(upper&^0xfff)) + int64(int32(jump)>>20), true
}
