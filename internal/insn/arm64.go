package insn

import "encoding/binary"

// arm64: ftrace's call is a MOV, at which a probe can be, and BL. The two words in front of a function, since Linux 6.3, have an address, and BTI is a
// landing (arch/arm64/kernel/ftrace.c). The frame pointer is x29.
var arm64 = fromTables(&Arch{
	CallSize: 8, BeforeEntry: 8, Landing: arm64Landing, Fixed: 4, Steps: arm64Steps, Exclusives: arm64Exclusives, Sequence: 32,
}, arm64Forms.next, arm64Operations)

func init() { // they ask it
	arm64.Uprobe, arm64.Kprobe = uprobeARM64, kprobeARM64
}

// wordARM64: instructions are little-endian, even if data is big-endian.
func wordARM64(code []byte) (word uint64, size int, ok bool) {
	if len(code) < 4 {
		return 0, 0, false
	}
	return uint64(binary.LittleEndian.Uint32(code)), 4, true
}

// The distances of branches, in words.
var (
	arm64B26 = &distance{pieces: []piece{{0, 26, 2}}, bits: 28}
	arm64B19 = &distance{pieces: []piece{{5, 19, 2}}, bits: 21}
	arm64B14 = &distance{pieces: []piece{{5, 14, 2}}, bits: 16}
)

// arm64Forms are the group "branches, exception generating and system instructions" (Arm ARM, C4.1: bits 28 to 26 are 101): all after which
// execution may continue elsewhere. What is left of it are newer branches (CBGT).
var arm64Forms = table(wordARM64, piece{at: 24, bits: 8}, []form{
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
