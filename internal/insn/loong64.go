package insn

import (
	"encoding/binary"
	"sync"
)

// loong64: the frame pointer is fp.
var loong64 = sync.OnceValue(func() *Arch { return fromTables(&Arch{Fixed: 4, Pair: pairLoong}, loongForms.next, loongOperations) })

// The distances of branches, in instructions (volume 1, section 2.2.4). The upper bits of the longer ones are in the
// lowest bits of the word.
var (
	loongI16 = &distance{pieces: []piece{{10, 16, 2}}, bits: 18}
	loongI21 = &distance{pieces: []piece{{10, 16, 2}, {0, 5, 18}}, bits: 23}
	loongI26 = &distance{pieces: []piece{{10, 16, 2}, {0, 10, 18}}, bits: 28}
)

// loongForms are the branches (volume 1, sections 2.2.4 and 2.2.10, and 3.2.3.1 for floating-point flags). A return is a jump
// to ra. Traps are the kernel's BUG and WARN, and what compilers write where code must not come.
var loongForms = table(wordOfFour, piece{at: 26, bits: 6}, []form{
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
