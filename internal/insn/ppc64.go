package insn

import (
	"encoding/binary"
	"sync"
)

// ppc64el: GCC's frame pointer, in functions that need one, is r31 (64-Bit ELF V2 ABI, section 2.2.2).
var ppc64el = sync.OnceValue(func() *Arch { return fromTables(&Arch{Fixed: 4}, ppc64Forms.next, ppc64Operations) })

// wordPPC64: instructions have four bytes, but prefixed ones have eight (Power ISA 3.1, section 1.6.3).
func wordPPC64(code []byte) (word uint64, size int, ok bool) {
	if len(code) < 4 {
		return 0, 0, false
	}
	word, size = uint64(binary.LittleEndian.Uint32(code)), 4
	if word>>26 == 1 {
		size = 8
	}
	return word, size, size <= len(code)
}

var (
	ppc64I = &distance{pieces: []piece{{2, 24, 2}}, bits: 26}
	ppc64B = &distance{pieces: []piece{{2, 14, 2}}, bits: 16}
)

// ppc64Forms are the branches, Power ISA 3.0B, book I, section 2.4, and book III, section 3.3.1. The field
// BO is 1z1zz for branches that are always taken.
var ppc64Forms = table(wordPPC64, piece{at: 26, bits: 6}, []form{
	{0xffffffff, 0x60000000, idle, nil},            // nop: ori r0, r0, 0
	{0xfc000003, 0x48000000, ends, ppc64I},         // b
	{0xfc000003, 0x48000001, calls, ppc64I},        // bl
	{0xfc000003, 0x48000002, ends | lost, nil},     // ba
	{0xfc000003, 0x48000003, calls, nil},           // bla
	{0xffffffff, 0x429f0005, 0, nil},               // bcl 20, 31, .+4: where it is, in lr
	{0xfe800003, 0x42800000, ends, ppc64B},         // bc, always
	{0xfc000003, 0x40000000, 0, ppc64B},            // bc
	{0xfc000003, 0x40000001, calls, ppc64B},        // bcl
	{0xfc000003, 0x40000002, lost, nil},            // bca
	{0xfc000003, 0x40000003, calls, nil},           // bcla
	{0xfe8007ff, 0x4e800020, ends, nil},            // blr
	{0xfc0007ff, 0x4c000020, leaves, nil},          // bclr
	{0xfc0007ff, 0x4c000021, calls, nil},           // bclrl
	{0xfe8007ff, 0x4e800420, ends | lost, nil},     // bctr
	{0xfc0007ff, 0x4c000420, lost, nil},            // bcctr
	{0xfc0007ff, 0x4c000421, calls, nil},           // bcctrl
	{0xfe8007ff, 0x4e800460, ends | lost, nil},     // bctar
	{0xfc0007ff, 0x4c000460, lost, nil},            // bctar, under a condition
	{0xfc0007ff, 0x4c000461, calls, nil},           // bctarl
	{0xfc0007fe, 0x4c000024, ends, nil},            // rfid
	{0xfc0007fe, 0x4c000224, ends, nil},            // hrfid
	{0xfc0007fe, 0x4c000264, ends, nil},            // urfid
	{0xfc0007fe, 0x4c0000a4, ends, nil},            // rfscv
	{0xffe007fe, 0x7fe00008, traps, nil},           // tw, always
	{0xffe007fe, 0x7fe00088, traps, nil},           // td, always
	{0xffe00000, 0x0fe00000, traps, nil},           // twi, always: the trap of a WARN too
	{0xffe00000, 0x0be00000, traps, nil},           // tdi, always
	{0xffffffff, 0x00000000, unknown | traps, nil}, // never an instruction (section 1.8.1)
})
