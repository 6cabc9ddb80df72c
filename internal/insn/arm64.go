package insn

import (
	"encoding/binary"
	"sync"

	"golang.org/x/arch/arm64/arm64asm"
)

// arm64: ftrace's call is one BL. There is no decoder for stores to stack slots.
var arm64 = &Arch{CallSize: 4, Fixed: 4, Next: nextARM64, Steps: arm64Steps, Load: arm64Load, Store: arm64Store, Sequence: 32, Results: Results{callsARM64, usesARM64}, updates: updatesARM64, trace: traceARM64, target: targetARM64, frame: 1<<arm64SP | 1<<29}

// Every instruction after which execution may continue elsewhere is in the group
// "branches, exception generating and system instructions" (Arm ARM, C4.1: bits 28 to 26
// are 101). Only these are decoded. Others that arm64asm does not know (SVE, atomics) do
// not matter: they have four bytes too.
func nextARM64(code []byte) (Insn, bool) {
	if len(code) < 4 {
		return Insn{}, false
	}
	in := Insn{Size: 4, Onward: true}
	word := binary.LittleEndian.Uint32(code) // even if data is big-endian
	if word>>26&7 != 5 {
		return in, true
	}
	inst, err := decodeARM64(code)
	if err != nil {
		return otherARM64(word)
	}
	switch inst.Op {
	case arm64asm.B, arm64asm.CBZ, arm64asm.CBNZ, arm64asm.TBZ, arm64asm.TBNZ:
		in.Onward = inst.Op != arm64asm.B
		for _, arg := range inst.Args {
			switch a := arg.(type) {
			case arm64asm.PCRel:
				in.Branches, in.Target = true, int64(a)
			case arm64asm.Cond:
				in.Onward = true
			}
		}
	case arm64asm.BR:
		in.Onward, in.Lost = false, true
	case arm64asm.RET, arm64asm.ERET, arm64asm.DRPS:
		in.Onward = false
	}
	// Execution may continue after BRK: it is also the trap of a WARN.
	return in, true
}

// arm64Decoding serializes arm64asm.Decode, which writes to a package variable.
var arm64Decoding sync.Mutex

func decodeARM64(code []byte) (arm64asm.Inst, error) {
	arm64Decoding.Lock()
	defer arm64Decoding.Unlock()
	return arm64asm.Decode(code)
}

// arm64Others lists the instructions in the group that golang.org/x/arch v0.30 does not
// know: those whose word is value under mask.
var arm64Others = []struct {
	mask, value  uint32
	onward, lost bool
}{
	{0xfefff800, 0xd61f0800, false, true},  // BRAA and the like
	{0xfefff800, 0xd63f0800, true, false},  // BLRAA and the like
	{0xfffff800, 0xd65f0800, false, false}, // RETAA, RETAB
	{0xfffff800, 0xd69f0800, false, false}, // ERETAA, ERETAB
	{0xff000000, 0xd4000000, true, false},  // exceptions, as TCANCEL
	{0xff000000, 0xd5000000, true, false},  // system, as SB and WFET
}

// otherARM64 decodes with arm64Others. ok is false for the rest of the group, which has
// newer branches (BC.cond, CBGT).
func otherARM64(word uint32) (Insn, bool) {
	for _, o := range arm64Others {
		if word&o.mask == o.value {
			return Insn{Size: 4, Onward: o.onward, Lost: o.lost}, true
		}
	}
	return Insn{}, false
}

// arm64Steps follows aarch64_insn_is_steppable and arm_probe_decode_insn in
// arch/arm64/kernel/probes/decode-insn.c (6.1), with the encodings in
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
}

// What the kernel takes for the ends of an exclusive sequence (is_probed_address_atomic),
// including LDAR and STLR.
var (
	arm64Load  = Pattern{Mask: 0x3f400000, Value: 0x08400000}
	arm64Store = Pattern{Mask: 0x3f400000, Value: 0x08000000}
)
