package insn

import "sync"

// arm is A32, the instructions of four bytes. Thumb is not decoded.
var arm = sync.OnceValue(func() *Arch { return fromTables(&Arch{Fixed: 4}, armForms.next, armOperations) })

// Distances are from the instruction's address and eight. BLX has a bit for half a word.
var (
	arm24 = &distance{pieces: []piece{{0, 24, 2}}, bits: 26, plus: 8}
	arm25 = &distance{pieces: []piece{{0, 24, 2}, {24, 1, 1}}, bits: 26, plus: 8}
)

// armForms are what writes the program counter (Arm Architecture Reference Manual, ARMv7-A, chapter A5). Bits
// 28 to 31 are the condition: 14 is always, 15 stands for other instructions.
var armForms = table(wordOfFour, piece{at: 20, bits: 8}, append([]form{
	{0xfe000000, 0xfa000000, calls, arm25}, // BLX, of which the lowest bit is half a word
	{0xfe50ffff, 0xf8100a00, ends, nil},    // RFE
	{0xf0000000, 0xf0000000, 0, nil},       // others without a condition
	{0xffffffff, 0xe320f000, idle, nil},    // NOP
	{0xffffffff, 0xe1a00000, idle, nil},    // MOV r0, r0
}, underConditions([]form{
	{0x0f000000, 0x0a000000, ends, arm24},      // B
	{0x0f000000, 0x0b000000, calls, arm24},     // BL
	{0x0fffffff, 0x012fff1e, ends, nil},        // BX lr
	{0x0ffffff0, 0x012fff10, ends | lost, nil}, // BX
	{0x0ffffff0, 0x012fff20, ends | lost, nil}, // BXJ
	{0x0ffffff0, 0x012fff30, calls, nil},       // BLX
	{0x0ff000f0, 0x01200070, traps, nil},       // BKPT
	{0x0ff000f0, 0x07f000f0, traps, nil},       // UDF, the kernel's BUG
	{0x0fffffff, 0x0160006e, ends, nil},        // ERET
	{0x0fffffff, 0x01a0f00e, ends, nil},        // MOV pc, lr
	{0x0fffffff, 0x01b0f00e, ends, nil},        // MOVS pc, lr, the return from an exception
	{0x0ffff000, 0x025ef000, ends, nil},        // SUBS pc, lr
	{0x0d900000, 0x01100000, 0, nil},           // TST, TEQ, CMP, CMN
	{0x0d900000, 0x01000000, 0, nil},           // MRS, MSR, CLZ, MOVW, MOVT
	{0x0e000090, 0x00000090, 0, nil},           // multiplication, loads of halfwords
	{0x0c00f000, 0x0000f000, ends | lost, nil}, // computed, as ADD pc
	{0x0ffff000, 0x049df000, ends, nil},        // POP {pc}
	{0x0e000010, 0x06000010, 0, nil},           // media
	{0x0c500000, 0x04500000, 0, nil},           // LDRB
	{0x0c10f000, 0x0410f000, ends | lost, nil}, // LDR pc
	{0x0e1f8000, 0x081d8000, ends, nil},        // LDM of the stack with pc
	{0x0e1f8000, 0x081b8000, ends, nil},        // LDM of the frame with pc
	{0x0e108000, 0x08108000, ends | lost, nil}, // LDM with pc
})...))

// underConditions returns each form twice: always, and under a condition, which goes on.
func underConditions(list []form) (out []form) {
	for _, f := range list {
		always, maybe := f, f
		always.mask, always.value = f.mask|0xf0000000, f.value|0xe0000000
		if maybe.does&ends != 0 && f.to == nil && f.does&lost == 0 {
			maybe.does |= leaves
		}
		maybe.does &^= ends | traps
		out = append(out, always, maybe)
	}
	return out
}
