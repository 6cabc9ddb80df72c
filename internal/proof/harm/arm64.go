package harm

import (
	"encoding/binary"
	"math/rand/v2"
)

// group is instructions of arm64 that have some bits in common (Arm ARM, C4.1), and which bits are none of an operand that is better
// small.
type group struct {
	name        string
	mask, value uint32
	small       uint32 // of a distance: mostly 0 here, or an instruction would lead far away
	often       int    // as many of these as of a usual group, at least 1
}

// groups are what processors without extensions have, and what uprobes treat by itself. The last one is everything.
var groups = []group{
	{"ADR, ADRP", 0x1f000000, 0x10000000, 0x60ffff00, 1},
	{"B", 0xfc000000, 0x14000000, 0x03fffff8, 1},
	{"BL", 0xfc000000, 0x94000000, 0x03fffff8, 1},
	{"B.cond", 0xff000010, 0x54000000, 0x00ffff00, 2},
	{"CBZ, CBNZ", 0x7e000000, 0x34000000, 0x00ffff00, 2},
	{"TBZ, TBNZ", 0x7e000000, 0x36000000, 0x0007ff00, 2},
	{"BR, BLR, RET", 0xff9ffc1f, 0xd61f0000, 0, 1},
	{"other branches to registers", 0xfe000000, 0xd6000000, 0, 1},
	{"literals", 0x3b000000, 0x18000000, 0x00ffff00, 2},
	{"hints", 0xfffff01f, 0xd503201f, 0, 1},
	{"barriers", 0xfffff01f, 0xd503301f, 0, 1},
	{"MRS, MSR of NZCV, FPCR, FPSR", 0xffdfff00, 0xd51b4200, 0, 1},
	{"system", 0xff000000, 0xd5000000, 0, 1},
	{"exceptions", 0xff000000, 0xd4000000, 0, 1},
	{"sums of a number", 0x1f800000, 0x11000000, 0, 1},
	{"masks", 0x1f800000, 0x12000000, 0, 1},
	{"MOVZ, MOVN, MOVK", 0x1f800000, 0x12800000, 0, 1},
	{"bit-fields, EXTR", 0x1f000000, 0x13000000, 0, 1},
	{"operations on registers", 0x0e000000, 0x0a000000, 0, 4},
	{"pairs", 0x3a000000, 0x28000000, 0, 3},
	{"exclusive", 0x3f000000, 0x08000000, 0, 2},
	{"loads and stores, a number after", 0x3b200000, 0x38000000, 0, 3},
	{"loads and stores, a register, and atomic", 0x3b200000, 0x38200000, 0, 3},
	{"loads and stores, a number", 0x3b000000, 0x39000000, 0x003f0000, 3},
	{"structures of vectors", 0xbe000000, 0x0c000000, 0, 2},
	{"vectors", 0x9e000000, 0x0e000000, 0, 4},
	{"floating point", 0x5e000000, 0x1e000000, 0, 4},
	{"all", 0, 0, 0, 4},
}

// EncodingsARM64 returns n instructions of arm64, some of each group. The same seed gives the same ones.
func EncodingsARM64(n int, seed uint64) (out [][]byte) {
	r := rand.New(rand.NewPCG(seed, 0))
	var all []group
	for _, g := range groups {
		for range g.often {
			all = append(all, g)
		}
	}
	for i := range n {
		g := &all[i%len(all)]
		word := r.Uint32()
		if r.IntN(8) > 0 {
			word &^= g.small
		}
		word = word&^g.mask | g.value
		const (
			loads, loadsMask = 1 << 27, 1<<27 | 1<<25 // and stores
			base             = 31 << 5
		)
		if word&loadsMask == loads && word&base == 30<<5 {
			word |= base // the stack pointer: x30 leads to code, where another probe is seen
		}
		out = append(out, binary.LittleEndian.AppendUint32(nil, word))
	}
	return out
}

// KnownARM64 returns instructions that a kernel treats by themselves.
func KnownARM64() (out [][]byte) {
	for _, word := range []uint32{
		0xd503201f, 0xd50320ff, 0xd503211f, 0xd503215f, 0xd503231f, 0xd503233f, 0xd503235f, 0xd503237f, 0xd503239f, 0xd50323bf, 0xd503241f, 0xd503245f, // NOP, PAC, BTI
		0xd503203f, 0xd503205f, 0xd503207f, 0xd503209f, 0xd5033f9f, 0xd5033fbf, 0xd5033fdf, // YIELD, WFE, WFI, SEV, DSB, DMB, ISB
		0xd4000001, 0xd4000002, 0xd4000003, 0xd4200000, 0xd4400000, 0xd420a000, 0xd4200080, 0xd42000a0, // SVC, HVC, SMC, BRK, HLT; BRK of probes
		0xd53b4200, 0xd51b4200, 0xd53b4400, 0xd51b4400, 0xd53bd040, 0xd53be040, 0xd53b4220, 0xd50342df, 0xd5380000, // MRS and MSR
		0xd61f03c0, 0xd63f03c0, 0xd65f03c0, 0xd69f03e0, 0xd6bf03e0, 0xd65f0bff, 0xd71f0bc0, // branches to x30
		0x14000002, 0x94000002, 0x54000040, 0x54000041, 0x34000043, 0xb5000043, 0x36000043, 0xb7000043, 0x10000040, 0x90000000, // two words on
		0x18000040, 0x58000040, 0x98000040, 0xd8000040, 0x1c000040, 0x5c000040, 0x9c000040, // literals
		0x885f7c60, 0x88027c60, 0xc85ffc60, 0xc802fc60, 0x88dffc60, 0x889ffc60, 0xb8e20060, 0x88a27c60, 0x085f7c60, // exclusive, acquire, LSE
		0xf90003e0, 0xf94003e0, 0xf81f0fe0, 0xf84107e0, 0xa9bf7bfd, 0xa8c17bfd, 0x910003fd, 0xd10043ff, 0x9100001f, // the stack
		0xd50b7423, 0xd50b7a23, 0xd50b7523, 0xd50b7b23, 0xd50b7e23, // DC ZVA, CVAC, IC IVAU, DC CVAU, CIVAC
		0x00000000, 0x0000dead,
	} {
		out = append(out, binary.LittleEndian.AppendUint32(nil, word))
	}
	return out
}

// slotARM64: the instruction is the second one, after which x30 leads to the last word but one of the slot: an instruction that reads
// there must not see a probe. Each word after it that runs adds to x15.
func slotARM64(code []byte, at, leave uint64) []byte {
	const (
		adrX30 = 0x100001de // adr x30, .+56
		addX15 = 0x910005ef // add x15, x15, #1
		b      = 0x14000000
	)
	out := binary.LittleEndian.AppendUint32(make([]byte, 0, slotSize), adrX30)
	out = append(out, code...)
	for len(out) < slotSize-4 {
		out = binary.LittleEndian.AppendUint32(out, addX15)
	}
	distance := int64(leave) - int64(at) - int64(len(out))
	return binary.LittleEndian.AppendUint32(out, b|uint32(distance/4)&0x03ffffff)
}
