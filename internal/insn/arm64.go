package insn

import (
	"encoding/binary"
	"sync"
)

// arm64: the frame pointer is x29.
var arm64 = sync.OnceValue(func() *Arch {
	return fromTables(&Arch{Fixed: 4, MayChoose: maySelect}, arm64Forms.next, arm64Operations)
})

// The distances of branches, in words.
var (
	arm64B26 = &distance{pieces: []piece{{0, 26, 2}}, bits: 28}
	arm64B19 = &distance{pieces: []piece{{5, 19, 2}}, bits: 21}
	arm64B14 = &distance{pieces: []piece{{5, 14, 2}}, bits: 16}
)

// arm64Forms are the group "branches, exception generating and system instructions" (Arm ARM, C4.1: bits 28 to 26 are 101): all after which
// execution may continue elsewhere. What is left of it are newer branches (CBGT).
var arm64Forms = table(wordOfFour, piece{at: 24, bits: 8}, []form{
	{0xfc000000, 0x14000000, ends, arm64B26},   // B
	{0xfc000000, 0x94000000, calls, arm64B26},  // BL
	{0xff000000, 0x54000000, 0, arm64B19},      // B.cond, BC.cond
	{0x7e000000, 0x34000000, 0, arm64B19},      // CBZ, CBNZ
	{0x7e000000, 0x36000000, 0, arm64B14},      // TBZ, TBNZ
	{0xfffffc1f, 0xd61f0000, ends | lost, nil}, // BR
	{0xfffffc1f, 0xd63f0000, calls, nil},       // BLR
	{0xfffffc1f, 0xd65f0000, ends, nil},        // RET
	{0xffffffff, 0xd69f03e0, ends, nil},        // ERET
	{0xffffffff, 0xd6bf03e0, ends, nil},        // DRPS
	{0xfefff800, 0xd61f0800, ends | lost, nil}, // BRAA and the like
	{0xfefff800, 0xd63f0800, calls, nil},       // BLRAA and the like
	{0xfffffbff, 0xd65f0bff, ends, nil},        // RETAA, RETAB
	{0xfffffbff, 0xd69f0bff, ends, nil},        // ERETAA, ERETAB
	{0xffe0001f, 0xd4200000, traps, nil},       // BRK, also the trap of a WARN
	{0xff000000, 0xd4000000, 0, nil},           // other exceptions
	{0xffffffff, 0xd503201f, idle, nil},        // NOP
	{0xff000000, 0xd5000000, 0, nil},           // system
	{0x1c000000, 0x14000000, unknown, nil},
})

// maySelect looks for CSEL: Arm Architecture Reference Manual, C4.1.95, conditional select.
func maySelect(code []byte) bool {
	return len(code) >= 4 && binary.LittleEndian.Uint32(code)&0x7fe00c00 == 0x1a800000
}
