package insn

import "sync"

// s390x: the frame pointer, in functions that need one, is r11 (ELF Application Binary Interface, s390x Supplement 1.6, section 1.2.1).
var s390x = sync.OnceValue(func() *Arch { return fromTables(&Arch{Step: 2, BigEndian: true}, s390Forms.next, s390Operations) })

// wordS390: the first two bits say how long an instruction is (z/Architecture Principles of Operation,
// chapter 5, "Instruction formats"). A word is six bytes, of which those after the instruction are 0.
func wordS390(code []byte) (word uint64, size int, ok bool) {
	if len(code) == 0 {
		return 0, 0, false
	}
	size = [4]int{2, 4, 4, 6}[code[0]>>6]
	if len(code) < size {
		return 0, 0, false
	}
	for i := range 6 {
		word <<= 8
		if i < size {
			word |= uint64(code[i])
		}
	}
	return word, size, true
}

// Distances are numbers of halfwords from the instruction's beginning.
var (
	s390I  = &distance{pieces: []piece{{16, 16, 1}}, bits: 17} // RI, RSI, RIE
	s390IL = &distance{pieces: []piece{{0, 32, 1}}, bits: 33}  // RIL
)

// s390Forms are the branches (chapter 7). The mask 15 branches always, 0 never, and register 0 stands for
// no branch. A return is a branch to r14, where the compiler did not choose another register; GCC traps by a
// branch into the branch itself.
var s390Forms = table(wordS390, piece{at: 40, bits: 8}, []form{
	{0xffff_0000_0000, 0x0101_0000_0000, ends, nil},        // PR
	{0xffff_0000_0000, 0x0001_0000_0000, traps, nil},       // the second half of a trap
	{0xff00_0000_0000, 0x0000_0000_0000, unknown, nil},     // never an instruction
	{0xff0f_0000_0000, 0x0500_0000_0000, 0, nil},           // BALR, no branch
	{0xff00_0000_0000, 0x0500_0000_0000, calls, nil},       // BALR
	{0xff0f_0000_0000, 0x0600_0000_0000, 0, nil},           // BCTR, no branch
	{0xff00_0000_0000, 0x0600_0000_0000, lost, nil},        // BCTR
	{0xff0f_0000_0000, 0x0700_0000_0000, idle, nil},        // NOPR, or a barrier
	{0xfff0_0000_0000, 0x0700_0000_0000, idle, nil},        // NOPR
	{0xffff_0000_0000, 0x07fe_0000_0000, ends, nil},        // BR r14
	{0xfff0_0000_0000, 0x07f0_0000_0000, ends | lost, nil}, // BR
	{0xff0f_0000_0000, 0x070e_0000_0000, leaves, nil},      // BCR to r14
	{0xff00_0000_0000, 0x0700_0000_0000, lost, nil},        // BCR
	{0xff0f_0000_0000, 0x0b00_0000_0000, 0, nil},           // BSM, no branch
	{0xff00_0000_0000, 0x0b00_0000_0000, ends | lost, nil}, // BSM
	{0xff0f_0000_0000, 0x0c00_0000_0000, 0, nil},           // BASSM, no branch
	{0xff00_0000_0000, 0x0c00_0000_0000, calls, nil},       // BASSM
	{0xff0f_0000_0000, 0x0d00_0000_0000, 0, nil},           // BASR, no branch
	{0xff00_0000_0000, 0x0d00_0000_0000, calls, nil},       // BASR

	{0xff00_0000_0000, 0x4500_0000_0000, calls, nil},       // BAL
	{0xff00_0000_0000, 0x4600_0000_0000, lost, nil},        // BCT
	{0xfff0_0000_0000, 0x4700_0000_0000, idle, nil},        // NOP
	{0xfff0_0000_0000, 0x47f0_0000_0000, ends | lost, nil}, // B
	{0xff00_0000_0000, 0x4700_0000_0000, lost, nil},        // BC
	{0xff00_0000_0000, 0x4d00_0000_0000, calls, nil},       // BAS
	{0xff00_0000_0000, 0x8200_0000_0000, ends, nil},        // LPSW
	{0xfe00_0000_0000, 0x8400_0000_0000, 0, s390I},         // BRXH, BRXLE
	{0xfe00_0000_0000, 0x8600_0000_0000, lost, nil},        // BXH, BXLE
	{0xffff_ffff_0000, 0xa7f4_0001_0000, traps, nil},       // a trap
	{0xff0f_ffff_0000, 0xa704_0001_0000, 0, nil},           // a trap under a condition
	{0xffff_0000_0000, 0xa704_0000_0000, idle, nil},        // JNOP
	{0xffff_0000_0000, 0xa7f4_0000_0000, ends, s390I},      // J
	{0xff0f_0000_0000, 0xa704_0000_0000, 0, s390I},         // BRC
	{0xff0f_0000_0000, 0xa705_0000_0000, calls, s390I},     // BRAS
	{0xff0e_0000_0000, 0xa706_0000_0000, 0, s390I},         // BRCT, BRCTG
	{0xffff_ffff_0000, 0xaf00_0000_0000, traps, nil},       // MC 0,0, the kernel's BUG
	{0xffff_0000_0000, 0xb240_0000_0000, calls, nil},       // BAKR
	{0xffff_0000_0000, 0xb258_0000_0000, calls, nil},       // BSG
	{0xffff_0000_0000, 0xb2b2_0000_0000, ends, nil},        // LPSWE

	{0xffff_0000_0000, 0xc004_0000_0000, idle, nil},        // JGNOP
	{0xffff_ffff_ffff, 0xc0f4_0000_0001, traps, nil},       // a trap
	{0xffff_0000_0000, 0xc0f4_0000_0000, ends, s390IL},     // JG
	{0xff0f_0000_0000, 0xc004_0000_0000, 0, s390IL},        // BRCL
	{0xff0f_0000_0000, 0xc005_0000_0000, calls, s390IL},    // BRASL
	{0xff0f_0000_0000, 0xcc06_0000_0000, 0, s390IL},        // BRCTH
	{0xff00_0000_00ff, 0xe300_0000_0046, lost, nil},        // BCTG
	{0xfff0_0000_00ff, 0xe3f0_0000_0047, ends | lost, nil}, // BI
	{0xff00_0000_00ff, 0xe300_0000_0047, lost, nil},        // BIC
	{0xff00_0000_00fe, 0xeb00_0000_0044, lost, nil},        // BXHG, BXLEG
	{0xff00_0000_00ff, 0xeb00_0000_0071, ends, nil},        // LPSWEY
	{0xff00_0000_00fe, 0xec00_0000_0044, 0, s390I},         // BRXHG, BRXLG
	{0xff00_0000_f0fe, 0xec00_0000_0064, 0, nil},           // CGRJ, CLGRJ, never
	{0xff00_0000_00fe, 0xec00_0000_0064, 0, s390I},         // CGRJ, CLGRJ
	{0xff00_0000_00fe, 0xec00_0000_0076, 0, s390I},         // CRJ, CLRJ
	{0xff00_0000_00fc, 0xec00_0000_007c, 0, s390I},         // CGIJ, CLGIJ, CIJ, CLIJ
	{0xff00_0000_00fe, 0xec00_0000_00e4, lost, nil},        // CGRB, CLGRB
	{0xff00_0000_00fe, 0xec00_0000_00f6, lost, nil},        // CRB, CLRB
	{0xff00_0000_00fc, 0xec00_0000_00fc, lost, nil},        // CGIB, CLGIB, CIB, CLIB
})
