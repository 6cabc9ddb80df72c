package insn

import (
	"encoding/binary"
	"sync"

	"golang.org/x/arch/arm64/arm64asm"
)

// arm64: ftrace's call is one BL. Late stores to stack slots are not looked for.
var arm64 = &Arch{CallSize: 4, Fixed: 4, Next: nextARM64, Steps: arm64Steps, Load: arm64Load, Store: arm64Store, Sequence: 32}

// Every instruction that goes elsewhere than to the next one is in the group "branches,
// exception generating and system instructions" (Arm ARM, C4.1: bits 28 to 26 are 101).
// Only these are decoded: what else arm64asm does not know (SVE, atomics) has four
// bytes as well.
func nextARM64(code []byte) (Insn, bool) {
	if len(code) < 4 {
		return Insn{}, false
	}
	in := Insn{Size: 4, Onward: true}
	word := binary.LittleEndian.Uint32(code) // also where data is big-endian
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
	// BRK goes onward: it is the trap of a WARN too, after which the kernel continues.
	return in, true
}

// arm64asm.Decode writes to a variable of its package, so it runs once at a time.
var arm64Decoding sync.Mutex

func decodeARM64(code []byte) (arm64asm.Inst, error) {
	arm64Decoding.Lock()
	defer arm64Decoding.Unlock()
	return arm64asm.Decode(code)
}

// arm64Others are the instructions of the group that golang.org/x/arch v0.30 does not know: a
// word that is value under mask is one of them.
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

// otherARM64 does not know the rest of the group, where newer branches are (BC.cond,
// CBGT).
func otherARM64(word uint32) (Insn, bool) {
	for _, o := range arm64Others {
		if word&o.mask == o.value {
			return Insn{Size: 4, Onward: o.onward, Lost: o.lost}, true
		}
	}
	return Insn{}, false
}

// arm64Steps are those of aarch64_insn_is_steppable and arm_probe_decode_insn in
// arch/arm64/kernel/probes/decode-insn.c (6.1), with the encodings of
// arch/arm64/include/asm/insn.h. Plain branches, ADR and loads of literals are simulated.
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

// What the kernel takes for the ends of an exclusive sequence (is_probed_address_atomic):
// LDAR and STLR fit too.
var (
	arm64Load  = Pattern{Mask: 0x3f400000, Value: 0x08400000}
	arm64Store = Pattern{Mask: 0x3f400000, Value: 0x08000000}
)
