package insn

import (
	"encoding/binary"
	"sync"

	"golang.org/x/arch/arm64/arm64asm"
)

// arm64: ftrace's call is a MOV, at which a probe can be, and BL. The two words in front of a function, since Linux 6.3, have an address, and BTI is a
// landing (arch/arm64/kernel/ftrace.c). There is no decoder for stores to stack slots.
var arm64 = &Arch{CallSize: 8, BeforeEntry: 8, Landing: arm64Landing, Fixed: 4, Next: nextARM64, Steps: arm64Steps, Exclusives: arm64Exclusives, Sequence: 32, Results: Results{callsARM64, usesARM64}, Shape: shapeARM64, Writes: writesARM64, updates: updatesARM64,
	trace: traceARM64, target: targetARM64, frame: 1<<arm64SP | 1<<29}

// Every instruction after which execution may continue elsewhere is in the group
// "branches, exception generating and system instructions" (Arm ARM, C4.1: bits 28 to 26
// are 101). Only these are decoded. All others have four bytes too.
func nextARM64(code []byte) (Insn, bool) {
	if len(code) < 4 {
		return Insn{}, false
	}
	in := Insn{Size: 4, Onward: true}
	word := binary.LittleEndian.Uint32(code) // even if data is big-endian
	if word>>26&7 != 5 {
		return in, true
	}
	for _, b := range arm64Branches {
		if word&b.mask != b.value {
			continue
		}
		in.Onward, in.Call, in.Lost, in.Trap, in.Nop = !b.ends, b.call, b.lost, b.trap, b.nop
		if b.bits > 0 {
			in.Branches = !b.call
			in.Target = int64(int32(word<<(32-b.bits-b.low))>>(32-b.bits)) * 4
		}
		return in, true
	}
	return in, false // newer branches (CBGT)
}

// arm64Branches lists the group's instructions by how execution continues after them: those
// whose word is value under mask. Their target is a signed number of words, in bits from the
// bit low on. (Arm ARM, C4.1.)
var arm64Branches = []struct {
	mask, value     uint32
	low, bits       uint8
	ends, call      bool
	lost, trap, nop bool
}{
	{mask: 0xfc000000, value: 0x14000000, bits: 26, ends: true},   // B
	{mask: 0xfc000000, value: 0x94000000, bits: 26, call: true},   // BL
	{mask: 0xff000000, value: 0x54000000, low: 5, bits: 19},       // B.cond, BC.cond
	{mask: 0x7e000000, value: 0x34000000, low: 5, bits: 19},       // CBZ, CBNZ
	{mask: 0x7e000000, value: 0x36000000, low: 5, bits: 14},       // TBZ, TBNZ
	{mask: 0xfffffc1f, value: 0xd61f0000, ends: true, lost: true}, // BR
	{mask: 0xfffffc1f, value: 0xd63f0000, call: true},             // BLR
	{mask: 0xfffffc1f, value: 0xd65f0000, ends: true},             // RET
	{mask: 0xffffffff, value: 0xd69f03e0, ends: true},             // ERET
	{mask: 0xffffffff, value: 0xd6bf03e0, ends: true},             // DRPS
	{mask: 0xfefff800, value: 0xd61f0800, ends: true, lost: true}, // BRAA and the like
	{mask: 0xfefff800, value: 0xd63f0800, call: true},             // BLRAA and the like
	{mask: 0xfffffbff, value: 0xd65f0bff, ends: true},             // RETAA, RETAB
	{mask: 0xfffffbff, value: 0xd69f0bff, ends: true},             // ERETAA, ERETAB
	{mask: 0xffe0001f, value: 0xd4200000, trap: true},             // BRK, also the trap of a WARN
	{mask: 0xff000000, value: 0xd4000000},                         // other exceptions
	{mask: 0xffffffff, value: 0xd503201f, nop: true},              // NOP
	{mask: 0xff000000, value: 0xd5000000},                         // system
}

// arm64Decoding serializes arm64asm.Decode, which writes to a package variable.
var arm64Decoding sync.Mutex

func decodeARM64(code []byte) (arm64asm.Inst, error) {
	arm64Decoding.Lock()
	defer arm64Decoding.Unlock()
	return arm64asm.Decode(code)
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

func shapeARM64(code []byte) uint64 {
	if len(code) < 4 {
		return 0
	}
	inst, err := decodeARM64(code)
	if err != nil {
		return 0
	}
	return uint64(inst.Op)
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
