package insn

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"strings"
	"sync"

	"github.com/bpfprologue/bpfprologue/internal/symbolic"
)

// What functions do not preserve: x0 to x18 and x30, of which x0 and x1 have results (AAPCS64, sections 6.1.1 and 6.9). The frame is at sp,
// which is number 31, and x29.
var arm64Operations = &operations{
	steps:  true,
	decode: decodeARM64, bits: 64, frame: 1<<31 | 1<<29, pointer: 29, lost: 1<<19 - 1 | 1<<30, results: 3,
	condition: conditionARM64, bitsOf: bitsARM64, leads: leadsARM64, global: globalARM64,
}

// arm64Row is what the instructions do whose words have a value under a mask, and what their operands are, by letters. The first row that
// fits counts.
//
// Registers: 'd' bits 0 to 4, 'n' 5 to 9, 'a' 10 to 14, 'm' 16 to 20, of which number 31 is zero; 'D' and 'N' have the stack pointer
// instead. 's' is 'm' shifted, 'x' extended and shifted. 'q' is none of the general ones. 'e' are the pairs of CASP, of which 'm' changes.
//
// Numbers: 'i' of ADD, 'l' of AND, 'w' of MOVZ, 'v' of MOVN, 'h' by how much MOVK shifts, 'r' and 'z' of a bit field, 'p' and 'P' the
// distances of ADR and ADRP, 'c' the condition of CSET.
//
// Memory at 'N': 'M' without a distance, 'O' with one of 12 bits in units of what is accessed, 'U' of 9 bits, 'B' and 'A' which change the
// register before the access and after it, 'R' with an index, '2', '3' and '4' of two registers, without a change and with one before and
// after; 'Q' and 'K' of an unknown size, the second one changing the register after it; 'Z' at 'd', of an unknown size. 'L' is memory at a
// distance from the instruction.
type arm64Row struct {
	mask, value uint32
	name, args  string
	does        effect
	tell        uint32    // bits that tell instructions apart which a name stands for
	reads       Registers // besides the operands
	writes      Registers
}

// arm64Rows follows the encoding groups of the Arm ARM, C4.1. Without bits in its effect, bit 31 of an instruction says whether it is about 64
// or 32.
var arm64Rows = []arm64Row{
	{mask: 0x9f000000, value: 0x10000000, name: "adr", args: "dp", does: effect{verb: addresses, bits: 64}},
	{mask: 0x9f000000, value: 0x90000000, name: "adrp", args: "dP", does: effect{verb: addresses, bits: 64}},
	{mask: 0x7fffffe0, value: 0x110003e0, name: "mov", args: "DN", does: effect{verb: moves}},
	{mask: 0x7ffffc1f, value: 0x1100001f, name: "mov", args: "DN", does: effect{verb: moves}},
	{mask: 0x7f800000, value: 0x11000000, name: "add", args: "DNi", does: effect{verb: adds}},
	{mask: 0x7f800000, value: 0x31000000, name: "adds", args: "dNi", does: effect{verb: adds, flags: flagged}},
	{mask: 0x7f800000, value: 0x51000000, name: "sub", args: "DNi", does: effect{verb: subtracts}},
	{mask: 0x7f800000, value: 0x71000000, name: "subs", args: "dNi", does: effect{verb: subtracts, flags: compared}},
	{mask: 0x7f800000, value: 0x12000000, name: "and", args: "Dnl", does: effect{verb: masks}},
	{mask: 0x7f8003e0, value: 0x320003e0, name: "mov", args: "Dl", does: effect{verb: moves}},
	{mask: 0x7f800000, value: 0x32000000, name: "orr", args: "Dnl", does: effect{verb: computes}},
	{mask: 0x7f800000, value: 0x52000000, name: "eor", args: "Dnl", does: effect{verb: flips}},
	{mask: 0x7f800000, value: 0x72000000, name: "ands", args: "dnl", does: effect{verb: masks, flags: flagged}},
	{mask: 0x7f800000, value: 0x12800000, name: "movn", args: "dv", does: effect{verb: moves}},
	{mask: 0x7f800000, value: 0x52800000, name: "mov", args: "dw", does: effect{verb: moves}},
	{mask: 0x7f800000, value: 0x72800000, name: "movk", args: "dwh", does: effect{verb: selects, flags: firstToo}},
	{mask: 0x7f800000, value: 0x13000000, name: "sbfm", args: "dnrz", does: effect{verb: selects}},
	{mask: 0x7f800000, value: 0x33000000, name: "bfm", args: "dnrz", does: effect{verb: computes, flags: firstToo}},
	{mask: 0x7f800000, value: 0x53000000, name: "ubfm", args: "dnrz", does: effect{verb: selects}},
	{mask: 0x7f800000, value: 0x13800000, name: "extr", args: "dnm", does: effect{verb: computes}},

	{mask: 0x7f200000, value: 0x0b000000, name: "add", args: "dns", does: effect{verb: adds}},
	{mask: 0x7f200000, value: 0x2b000000, name: "adds", args: "dns", does: effect{verb: adds, flags: flagged}},
	{mask: 0x7f200000, value: 0x4b000000, name: "sub", args: "dns", does: effect{verb: subtracts}},
	{mask: 0x7f200000, value: 0x6b000000, name: "subs", args: "dns", does: effect{verb: subtracts, flags: compared}},
	{mask: 0x7f200000, value: 0x0b200000, name: "add", args: "DNx", does: effect{verb: adds}},
	{mask: 0x7f200000, value: 0x2b200000, name: "adds", args: "dNx", does: effect{verb: adds, flags: flagged}},
	{mask: 0x7f200000, value: 0x4b200000, name: "sub", args: "DNx", does: effect{verb: subtracts}},
	{mask: 0x7f200000, value: 0x6b200000, name: "subs", args: "dNx", does: effect{verb: subtracts, flags: compared}},
	{mask: 0x7fe0ffe0, value: 0x2a0003e0, name: "mov", args: "dm", does: effect{verb: moves}},
	{mask: 0x7f200000, value: 0x0a000000, name: "and", args: "dns", does: effect{verb: computes}},
	{mask: 0x7f200000, value: 0x0a200000, name: "bic", args: "dns", does: effect{verb: computes}},
	{mask: 0x7f200000, value: 0x2a000000, name: "orr", args: "dns", does: effect{verb: computes}},
	{mask: 0x7f200000, value: 0x2a200000, name: "orn", args: "dns", does: effect{verb: computes}},
	{mask: 0x7f200000, value: 0x4a000000, name: "eor", args: "dns", does: effect{verb: flips}},
	{mask: 0x7f200000, value: 0x4a200000, name: "eon", args: "dns", does: effect{verb: computes}},
	{mask: 0x7fe0fc1f, value: 0x6a00001f, name: "tst", args: "nm", does: effect{verb: tests}},
	{mask: 0x7f200000, value: 0x6a000000, name: "ands", args: "dns", does: effect{verb: computes, flags: flagged}},
	{mask: 0x7f200000, value: 0x6a200000, name: "bics", args: "dns", does: effect{verb: computes, flags: flagged}},
	{mask: 0x7fe0fc00, value: 0x1a000000, name: "adc", args: "dnm", does: effect{verb: computes}},
	{mask: 0x7fe0fc00, value: 0x3a000000, name: "adcs", args: "dnm", does: effect{verb: computes, flags: flagged}},
	{mask: 0x7fe0fc00, value: 0x5a000000, name: "sbc", args: "dnm", does: effect{verb: computes}},
	{mask: 0x7fe0fc00, value: 0x7a000000, name: "sbcs", args: "dnm", does: effect{verb: computes, flags: flagged}},
	{mask: 0x3fe00c10, value: 0x3a400000, name: "ccmp", args: "nm", does: effect{verb: nothing, flags: flagged}, tell: 1 << 30},
	{mask: 0x3fe00c10, value: 0x3a400800, name: "ccmp", args: "n", does: effect{verb: nothing, flags: flagged}, tell: 1 << 30},
	{mask: 0x7fff0fe0, value: 0x1a9f07e0, name: "cset", args: "dc", does: effect{verb: decides}},
	{mask: 0x7fe00c00, value: 0x1a800000, name: "csel", args: "dnm", does: effect{verb: chooses}},
	{mask: 0x7fe00c00, value: 0x1a800400, name: "csinc", args: "dnm", does: effect{verb: computes}},
	{mask: 0x7fe00c00, value: 0x5a800000, name: "csinv", args: "dnm", does: effect{verb: computes}},
	{mask: 0x7fe00c00, value: 0x5a800400, name: "csneg", args: "dnm", does: effect{verb: computes}},
	{mask: 0x7fff0000, value: 0x5ac00000, name: "rev and the like", args: "dn", does: effect{verb: computes}, tell: 0xfc00},
	{mask: 0xffff0000, value: 0xdac10000, name: "pacia and the like", args: "dN", does: effect{verb: computes, flags: firstToo}, tell: 0xfc00},
	{mask: 0x7fe0fc00, value: 0x1ac02000, name: "lslv", args: "dnm", does: effect{verb: shiftsLeft, flags: around}},
	{mask: 0x7fe0fc00, value: 0x1ac02400, name: "lsrv", args: "dnm", does: effect{verb: shiftsRight, flags: around}},
	{mask: 0xffe0fc00, value: 0x9ac01000, name: "irg", args: "DNm", does: effect{verb: computes}},
	{mask: 0x7fe00000, value: 0x1ac00000, name: "udiv and the like", args: "dNm", does: effect{verb: computes}, tell: 0xfc00},
	{mask: 0x7f000000, value: 0x1b000000, name: "madd and the like", args: "dnma", does: effect{verb: computes}, tell: 0xe08000},

	// LDADD, SWP, LDAPR; exclusive and ordered accesses.
	{mask: 0x3f200c00, value: 0x38200000, name: "ldadd and the like", args: "dmM", does: effect{verb: computes, flags: memoryToo}, tell: 0xf000},
	{mask: 0x3fe00000, value: 0x08000000, name: "stxr", args: "mdM", does: effect{verb: computes, flags: memoryToo}, tell: 3<<30 | 1<<15},
	{mask: 0xbfe00000, value: 0x88200000, name: "stxp", args: "mdaQ", does: effect{verb: computes, flags: memoryToo}, tell: 3<<30 | 1<<15},
	{mask: 0x3fe00000, value: 0x08400000, name: "ldxr", args: "dM", does: effect{verb: loads}, tell: 3<<30 | 1<<15},
	{mask: 0xbfe00000, value: 0x88600000, name: "ldxp", args: "daM", does: effect{verb: loadsTwo}, tell: 3<<30 | 1<<15},
	{mask: 0x3fe00000, value: 0x08800000, name: "stlr", args: "dM", does: effect{verb: stores}, tell: 3<<30 | 1<<15},
	{mask: 0x3fe00000, value: 0x08c00000, name: "ldar", args: "dM", does: effect{verb: loads}, tell: 3<<30 | 1<<15},
	{mask: 0x3fa00000, value: 0x08a00000, name: "cas", args: "mdM", does: effect{verb: computes, flags: firstToo | memoryToo}, tell: 3<<30 | 1<<15 | 1<<22},
	{mask: 0xbfa00000, value: 0x08200000, name: "casp", args: "eQ", does: effect{verb: computes, flags: elsewhere | memoryToo}, tell: 3<<30 | 1<<15 | 1<<22},

	{mask: 0xff000000, value: 0x18000000, name: "ldr", args: "dL", does: effect{verb: loads, bits: 32}},
	{mask: 0xff000000, value: 0x58000000, name: "ldr", args: "dL", does: effect{verb: loads, bits: 64}},
	{mask: 0xff000000, value: 0x98000000, name: "ldrsw", args: "dL", does: effect{verb: loads, bits: 32, flags: signedBits}},
	{mask: 0xff000000, value: 0xd8000000, name: "prfm", args: "L", does: effect{verb: nothing}},
	{mask: 0x3f000000, value: 0x1c000000, name: "ldr", args: "qL", does: effect{verb: loads, flags: elsewhere}},
	{mask: 0xbf400000, value: 0x0d000000, name: "st1", args: "qQ", does: effect{verb: stores, flags: elsewhere}, tell: 0x20f000},
	{mask: 0xbf400000, value: 0x0d400000, name: "ld1", args: "qQ", does: effect{verb: loads, flags: elsewhere}, tell: 0x20f000},
	{mask: 0xbfc00000, value: 0x0c000000, name: "st1", args: "qQ", does: effect{verb: stores, flags: elsewhere}, tell: 0xf000},
	{mask: 0xbfc00000, value: 0x0c400000, name: "ld1", args: "qQ", does: effect{verb: loads, flags: elsewhere}, tell: 0xf000},
	{mask: 0xbfc00000, value: 0x0c800000, name: "st1", args: "qKm", does: effect{verb: stores, flags: elsewhere}, tell: 0xf000},
	{mask: 0xbfc00000, value: 0x0cc00000, name: "ld1", args: "qKm", does: effect{verb: loads, flags: elsewhere}, tell: 0xf000},

	{mask: 0xfc000000, value: 0x14000000, name: "b", does: effect{verb: nothing}},
	{mask: 0xfc000000, value: 0x94000000, name: "bl"},
	{mask: 0xfe000000, value: 0xd6000000, name: "br and the like", args: "n", tell: 0x01fffc00},
	{mask: 0xffe0001f, value: 0xd4200000, name: "brk", does: effect{verb: nothing}},
	{mask: 0xff000000, value: 0x54000000, name: "b.cond", does: effect{verb: nothing}},
	{mask: 0x7e000000, value: 0x34000000, name: "cbz", args: "d", does: effect{verb: nothing}, tell: 1 << 24},
	{mask: 0x7e000000, value: 0x36000000, name: "tbz", args: "d", does: effect{verb: nothing}, tell: 1 << 24},

	// Hints, of which some sign x30 or x17; barriers; system registers; what clears memory.
	{mask: 0xffffffff, value: 0xd50320ff, name: "xpaclri", does: effect{verb: nothing}, reads: 1 << 30, writes: 1 << 30},
	{mask: 0xffffff1f, value: 0xd503211f, name: "pacia1716", does: effect{verb: nothing}, reads: 3 << 16, writes: 1 << 17},
	{mask: 0xffffff1f, value: 0xd503231f, name: "paciasp", does: effect{verb: nothing}, reads: 1<<30 | 1<<31, writes: 1 << 30},
	{mask: 0xfffff01f, value: 0xd503201f, name: "hint", does: effect{verb: nothing}, tell: 0xfe0},
	{mask: 0xffffffc0, value: 0xd5031000, name: "wfet", args: "d", does: effect{verb: nothing}},
	{mask: 0xfffff01f, value: 0xd503301f, name: "barrier", does: effect{verb: nothing}, tell: 0xe0},
	{mask: 0xfffff0ff, value: 0xd50040bf, name: "msr spsel", does: effect{verb: nothing}, writes: 1 << 31},
	{mask: 0xfff8f01f, value: 0xd500401f, name: "msr", does: effect{verb: nothing, flags: flagged}, tell: 0x700e0},
	{mask: 0xffffff00, value: 0xd50b7400, name: "dc zva", args: "qZ", does: effect{verb: stores, flags: elsewhere}},
	{mask: 0xfff80000, value: 0xd5080000, name: "sys", args: "d", does: effect{verb: nothing}, tell: 0x7ffe0},
	{mask: 0xfff00000, value: 0xd5100000, name: "msr", args: "d", does: effect{verb: nothing, flags: flagged}},
	{mask: 0xffe00000, value: 0xd5200000, name: "mrs", args: "d", does: effect{verb: computes, bits: 64}},

	// Vectors and floating point: what moves to general registers, and what compares.
	{mask: 0xbfe0fc00, value: 0x0e003c00, name: "umov", args: "dq", does: effect{verb: computes, bits: 64}},
	{mask: 0xbfe0fc00, value: 0x0e002c00, name: "smov", args: "dq", does: effect{verb: computes, bits: 64}},
	{mask: 0xbfe0fc00, value: 0x0e000c00, name: "dup", args: "qn", does: effect{verb: computes, flags: elsewhere}},
	{mask: 0xffe0fc00, value: 0x4e001c00, name: "ins", args: "qn", does: effect{verb: computes, flags: elsewhere}},
	{mask: 0x1f000000, value: 0x0e000000, name: "vector", args: "qq", does: effect{verb: computes, flags: elsewhere}, tell: 0xffe0fc00},
	{mask: 0x5f26fc00, value: 0x1e220000, name: "scvtf", args: "qn", does: effect{verb: computes, flags: elsewhere}, tell: 0x10000},
	{mask: 0x5f27fc00, value: 0x1e270000, name: "fmov", args: "qn", does: effect{verb: computes, flags: elsewhere}},
	{mask: 0x5f27fc00, value: 0x1e260000, name: "fmov", args: "dq", does: effect{verb: computes, bits: 64, flags: flagged}, tell: 0xdf0000},
	{mask: 0x5f20fc00, value: 0x1e200000, name: "fcvtzs and the like", args: "dq", does: effect{verb: computes, bits: 64}, tell: 0xdf0000},
	{mask: 0x5f260000, value: 0x1e020000, name: "scvtf", args: "qn", does: effect{verb: computes, flags: elsewhere}, tell: 0x10000},
	{mask: 0x5f200000, value: 0x1e000000, name: "fcvtzs of fixed point", args: "dq", does: effect{verb: computes, bits: 64}, tell: 0xdf0000},
	{mask: 0x5f203c00, value: 0x1e202000, name: "fcmp", args: "qq", does: effect{verb: nothing, flags: flagged}},
	{mask: 0x5f200c00, value: 0x1e200400, name: "fccmp", args: "qq", does: effect{verb: nothing, flags: flagged}},
	{mask: 0x1e000000, value: 0x1e000000, name: "float", args: "qq", does: effect{verb: computes, flags: elsewhere}, tell: 0xffe0fc00},
}

// arm64Accesses returns the loads and stores of one register, or of two, in all forms of their addresses.
func arm64Accesses() (out []arm64Row) {
	const size, vector, opc = 30, 1 << 26, 22
	for _, form := range []struct {
		mask, value uint32
		letter      string // of the name and of the address
		address     string
	}{
		{0xffc00000, 0x39000000, "", "O"}, {0xffe00c00, 0x38000000, "u", "U"}, {0xffe00c00, 0x38000400, "", "A"},
		{0xffe00c00, 0x38000800, "t", "U"}, {0xffe00c00, 0x38000c00, "", "B"}, {0xffe00c00, 0x38200800, "", "R"},
	} {
		add := func(which uint32, name, register string, does effect) {
			name = name[:2] + form.letter + name[2:]
			out = append(out, arm64Row{mask: form.mask, value: form.value | which, name: name, args: register + form.address, does: does})
		}
		for n, suffix := range [...]string{"rb", "rh", "r", "r"} {
			at, bits := uint32(n)<<size, uint8(8)<<n
			add(at, "st"+suffix, "d", effect{verb: stores, bits: bits})
			add(at|1<<opc, "ld"+suffix, "d", effect{verb: loads, bits: bits})
			add(at|vector, "str", "q", effect{verb: stores, bits: bits, flags: elsewhere})
			add(at|vector|1<<opc, "ldr", "q", effect{verb: loads, bits: bits, flags: elsewhere})
		}
		for n, suffix := range [...]string{"rsb", "rsh", "rsw"} {
			at, bits := uint32(n)<<size, uint8(8)<<n
			add(at|2<<opc, "ld"+suffix, "d", effect{verb: loads, bits: bits, flags: signedBits})
			if n < 2 {
				add(at|3<<opc, "ld"+suffix, "d", effect{verb: loads, bits: bits, to: 32, flags: signedBits})
			}
		}
		add(3<<size|2<<opc, "prfm", "", effect{verb: nothing, bits: 64})
		add(vector|2<<opc, "str", "q", effect{verb: stores, bits: 128, flags: elsewhere})
		add(vector|3<<opc, "ldr", "q", effect{verb: loads, bits: 128, flags: elsewhere})
	}
	for mode, address := range [...]string{"2", "4", "2", "3"} {
		add := func(which uint32, name string, register string, does effect) {
			if mode == 0 {
				name = name[:2] + "n" + name[2:]
			}
			out = append(out, arm64Row{mask: 0xffc00000, value: 0x28000000 | uint32(mode)<<23 | which, name: name, args: register + register + address, does: does})
		}
		for n, bits := range [...]uint8{32, 64} {
			at := uint32(n) << 31
			add(at, "stp", "d", effect{verb: storesTwo, bits: bits})
			add(at|1<<opc, "ldp", "d", effect{verb: loadsTwo, bits: bits})
		}
		if mode > 0 {
			add(1<<size|1<<opc, "ldpsw", "d", effect{verb: loadsTwo, bits: 32, flags: signedBits})
		}
		for n, bits := range [...]uint8{32, 64, 128} {
			at := uint32(n)<<size | vector
			add(at, "stp", "q", effect{verb: storesTwo, bits: bits, flags: elsewhere})
			add(at|1<<opc, "ldp", "q", effect{verb: loadsTwo, bits: bits, flags: elsewhere})
		}
	}
	for i := range out {
		// The second register of a pair is elsewhere in the word.
		out[i].args = strings.Replace(out[i].args, "dd", "da", 1)
	}
	return out
}

var arm64Key = piece{at: 21, bits: 11}

// arm64Table has all rows, and their numbers by the key.
type arm64Table struct {
	rows []arm64Row
	by   [][]uint16
}

// arm64All is made when an operation is asked for: most processes ask for none.
var arm64All = sync.OnceValue(func() *arm64Table {
	rows := slices.Concat(arm64Rows, arm64Accesses())
	return &arm64Table{rows, byKey(arm64Key, len(rows), func(i int) (mask, value uint64) {
		return uint64(rows[i].mask), uint64(rows[i].value)
	})}
})

func decodeARM64(code []byte, op *operation) (ok bool) {
	if len(code) < 4 {
		return false
	}
	word, all := binary.LittleEndian.Uint32(code), arm64All()
	for _, i := range all.by[word>>arm64Key.at] {
		if r := &all.rows[i]; word&r.mask == r.value {
			arm64Word(word).operation(r, op)
			return true
		}
	}
	return false
}

// arm64Word is an instruction.
type arm64Word uint32

func (w arm64Word) field(at, bits uint8) uint32 { return uint32(w) >> at & (1<<bits - 1) }

func (w arm64Word) signed(at, bits uint8) int64 {
	return int64(symbolic.Signed(uint64(w.field(at, bits)), bits))
}

// operation makes an operation of an instruction and its row.
func (w arm64Word) operation(r *arm64Row, op *operation) {
	op.name, op.does, op.code, op.reads, op.writes, op.count = r.name, r.does, uint32(w)&r.tell, r.reads, r.writes, 0
	if op.does.bits == 0 {
		op.does.bits = 32 << (uint32(w) >> 31)
	}
	for i := range len(r.args) {
		a := &op.list[op.count]
		op.count++
		w.operand(r.args[i], a, &op.does)
		switch r.args[i] {
		case 'z':
			op.code = w.form()
		case 'e':
			op.reads = 3<<w.field(16, 5) | 3<<w.field(0, 5)
			op.writes = 3 << w.field(16, 5)
		}
	}
}

// operand makes an operand of its letter in a row.
func (w arm64Word) operand(letter byte, a *operand, e *effect) {
	*a = operand{reg: -1, plus: -1}
	switch letter {
	case 'd', 'n', 'a', 'm', 's', 'x':
		*a = w.register(letter)
	case 'D', 'N':
		a.kind, a.reg = registerOperand, int8(w.field(0, 5))
		if letter == 'N' {
			a.reg = int8(w.field(5, 5))
		}
	case 'q', 'e':
	case 'M', 'O', 'U', 'A', 'B', 'R', 'Q', 'K', 'Z', 'L', '2', '3', '4':
		w.memory(letter, a, e)
	default:
		a.kind, a.n = numberOperand, w.number(letter)
	}
}

// form tells the forms of a bit field apart: LSL, what is shifted to the left otherwise, extensions, shifts to the right, and what is taken
// out.
func (w arm64Word) form() uint32 {
	r, last := w.field(16, 6), w.field(10, 6)
	switch {
	case last+1 == r:
		return 1
	case last < r:
		return 2
	case r == 0:
		return 8 + last
	case last+1 == 32<<(uint32(w)>>31):
		return 4
	}
	return 5
}

// register returns a register as an operand: number 31 is zero.
func (w arm64Word) register(letter byte) operand {
	at := uint8(16)
	switch letter {
	case 'd':
		at = 0
	case 'n':
		at = 5
	case 'a':
		at = 10
	}
	a := operand{kind: registerOperand, reg: int8(w.field(at, 5)), plus: -1}
	switch {
	case a.reg == 31:
		return operand{kind: numberOperand, reg: -1, plus: -1}
	case letter == 's':
		a.scale, a.odd = uint8(w.field(10, 6)), w.field(22, 2) != 0
	case letter == 'x':
		a.scale, a.cut = uint8(w.field(10, 3)), w.cut()
	}
	return a
}

// cut is how a register is extended: option 0 is uxtb, 3 uxtx, 4 sxtb, 7 sxtx.
func (w arm64Word) cut() int8 { return [...]int8{8, 16, 32, 0, -8, -16, -32, 0}[w.field(13, 3)] }

// number returns a number as an operand.
func (w arm64Word) number(letter byte) int64 {
	shift := 16 * w.field(21, 2)
	switch letter {
	case 'i':
		return int64(w.field(10, 12)) << (12 * w.field(22, 1))
	case 'l':
		return int64(w.mask())
	case 'w':
		return int64(w.field(5, 16)) << shift
	case 'v':
		return ^(int64(w.field(5, 16)) << shift)
	case 'h':
		return int64(shift)
	case 'r':
		return int64(w.field(16, 6))
	case 'z':
		return int64(w.field(10, 6))
	case 'p':
		return w.signed(5, 19)<<2 | int64(w.field(29, 2))
	case 'P':
		return (w.signed(5, 19)<<2 | int64(w.field(29, 2))) << 12
	case 'c':
		return int64(arm64Conditions[w.field(12, 4)^1])
	}
	return 0
}

// mask returns the number of AND (Arm ARM, DecodeBitMasks): an element of ones, which is rotated and repeated. It is 0 for what is none.
func (w arm64Word) mask() uint64 {
	n, rotate, ones := w.field(22, 1), w.field(16, 6), w.field(10, 6)
	size := uint32(1) << bits.Len32(n<<6|^ones&0x3f) >> 1 // of an element
	if size < 2 || size > 32<<(uint32(w)>>31) {
		return 0
	}
	count, rotate := ones&(size-1)+1, rotate&(size-1)
	if count == size {
		return 0
	}
	element := symbolic.Mask(uint8(count))
	element = (element>>rotate | element<<(size-rotate)) & symbolic.Mask(uint8(size))
	for ; size < 64; size *= 2 {
		element |= element << size
	}
	return element & symbolic.Mask(uint8(32<<(uint32(w)>>31)))
}

// memory makes an operand in memory.
func (w arm64Word) memory(letter byte, a *operand, e *effect) {
	a.kind, a.reg = memoryOperand, int8(w.field(5, 5))
	scale := uint8(bits.TrailingZeros8(e.bits)) - 3 // of what is accessed
	switch letter {
	case 'M': // by the bits that most accesses have for it
		e.bits = 8 << w.field(30, 2)
	case 'O':
		a.n = int64(w.field(10, 12)) << scale
	case 'U':
		a.n = w.signed(12, 9)
	case 'B', 'A':
		a.n, a.moves, a.after = w.signed(12, 9), true, letter == 'A'
	case 'R':
		a.cut, a.scale = w.cut(), uint8(w.field(12, 1))*scale
		if a.plus = int8(w.field(16, 5)); a.plus == 31 {
			a.plus = -1
		}
	case '2', '3', '4':
		a.n, a.moves, a.after = w.signed(15, 7)<<scale, letter != '2', letter == '4'
	case 'Q':
		a.odd = true
	case 'K':
		a.odd, a.moves, a.after = true, true, true
	case 'Z':
		a.odd, a.reg = true, int8(w.field(0, 5))
	case 'L':
		a.reg, a.here, a.n = -1, true, w.signed(5, 19)<<2
	}
}

// globalARM64 returns the address that ADR or ADRP computes.
func globalARM64(op *operation, addr uint64) (uint64, bool) {
	if op.name == "adrp" {
		addr &^= 0xfff
	}
	return addr + uint64(op.list[1].n), true
}

// bitsARM64 is MOVK, and SBFM and UBFM, of which SXTW, UXTB, LSL and LSR by a number are forms.
func bitsARM64(t *symbolic.Trace, op *operation, e effect) symbolic.Value {
	from, bits := t.Unknown(), e.bits
	if a := &op.list[0]; op.name == "movk" {
		if a.kind == registerOperand && t.Regs[a.reg].IsConstant() {
			return symbolic.Constant(t.Regs[a.reg].Const&^(0xffff<<op.list[2].n) | uint64(op.list[1].n))
		}
		return from
	}
	if a := &op.list[1]; a.kind == registerOperand {
		from = t.Low(t.Regs[a.reg], bits)
	} else {
		from = symbolic.Constant(0)
	}
	r, last := uint8(op.list[2].n), uint8(op.list[3].n)
	unsigned := op.name == "ubfm"
	if last+1 == bits { // LSR, ASR
		t.Last = symbolic.Operation{Of: from, By: symbolic.Constant(uint64(r)), Bits: bits, Signed: !unsigned}
	}
	switch {
	case !unsigned && r == 0:
		return t.LowSigned(from, last+1)
	case !unsigned:
	case r == 0:
		return t.Low(from, last+1)
	case last+1 == r: // LSL
		return t.Plus(symbolic.Constant(0), from, 1<<(bits-r))
	case last+1 == bits: // LSR
		return t.ShiftRight(from, r, bits)
	case last >= r: // UBFX
		return t.UpTo(symbolic.Mask(last - r + 1))
	default: // UBFIZ
		return t.Plus(symbolic.Constant(0), t.Low(from, last+1), 1<<(bits-r))
	}
	return t.Unknown()
}

// arm64Conditions are the conditions by their numbers (Arm ARM, C1.2.4).
var arm64Conditions = [16]symbolic.Condition{0: symbolic.Equal, 1: symbolic.Different, 2: symbolic.AtLeast, 3: symbolic.Below, 8: symbolic.Above, 9: symbolic.AtMost, 10: symbolic.NotLess, 11: symbolic.Less, 12: symbolic.Greater, 13: symbolic.NotGreater}

// conditionARM64 follows B.cond, or a branch that tests whether a register, or its bit 0 or 32, is zero. Without optimization, clang 15 and 16
// let it test the result of CSET.
func conditionARM64(t *symbolic.Trace, code []byte) symbolic.Condition {
	w := arm64Word(binary.LittleEndian.Uint32(code))
	switch {
	case w&0xff000000 == 0x54000000:
		t.Branch = t.Flags
		return arm64Conditions[w.field(0, 4)]
	case w&0x7e000000 != 0x34000000 && w&0x7ef80000 != 0x36000000:
		return symbolic.Always
	}
	v, c, bits := symbolic.Constant(0), symbolic.Equal, uint8(32<<w.field(31, 1))
	if a := w.register('d'); a.kind == registerOperand {
		v = t.Regs[a.reg]
	}
	t.Branch = symbolic.Comparison{A: t.Low(v, bits), B: symbolic.Constant(0), Bits: bits, Valid: w.field(25, 1) == 0}
	if d, ok := t.Decided[v.Single()]; ok && w.field(31, 1) == 0 {
		t.Branch, c = d.Comparison, d.Holds.Opposite()
	}
	if w.field(24, 1) != 0 {
		return c.Opposite()
	}
	return c
}

// leadsARM64 is BR. BRAA is not followed.
func leadsARM64(_ *operations, t *symbolic.Trace, code []byte, _ uint64) symbolic.Value {
	w := arm64Word(binary.LittleEndian.Uint32(code))
	if a := w.register('n'); w.field(11, 1) == 0 && a.kind == registerOperand {
		return t.Regs[a.reg]
	}
	return t.Unknown()
}
