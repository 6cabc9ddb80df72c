package insn

import (
	"bytes"

	"golang.org/x/arch/x86/x86asm"
)

// Writes is what an instruction changes, flags aside.
type Writes struct {
	Registers Registers
	Memory    bool
}

// Touches reports whether something of what is in other changes.
func (w Writes) Touches(other Writes) bool {
	return w.Registers&other.Registers != 0 || w.Memory && other.Memory
}

// x86Writes has operations that change their first operand and nothing else, or, if false,
// nothing at all.
var x86Writes = func() map[x86asm.Op]bool {
	out := map[x86asm.Op]bool{x86asm.CMP: false, x86asm.TEST: false, x86asm.NOP: false}
	for op := range x86Updates {
		out[op] = true
	}
	for op := range x86Stores {
		out[op] = true
	}
	for _, op := range []x86asm.Op{
		x86asm.LEA, x86asm.MOVZX, x86asm.MOVSX, x86asm.MOVSXD, x86asm.PXOR, x86asm.XORPS, x86asm.XORPD,
		x86asm.CMOVA, x86asm.CMOVAE, x86asm.CMOVB, x86asm.CMOVBE, x86asm.CMOVE, x86asm.CMOVG, x86asm.CMOVGE, x86asm.CMOVL, x86asm.CMOVLE, x86asm.CMOVNE, x86asm.CMOVNS, x86asm.CMOVS,
	} {
		out[op] = true
	}
	delete(out, x86asm.XADD) // changes both operands
	return out
}()

func (m *x86) writes(code []byte) (w Writes, ok bool) {
	if m.vexSize(code) > 0 {
		return writesVEX(code)
	}
	inst, err := m.decode(code)
	if err != nil || inst.Op == 0 {
		return w, false
	}
	changes, known := x86Writes[inst.Op]
	if !known || !changes {
		return w, known
	}
	switch a := inst.Args[0].(type) {
	case x86asm.Reg:
		if n := m.number[a]; n >= 0 {
			w.Registers = 1 << n
		}
	case x86asm.Mem:
		w.Memory = true
	default:
		return w, false
	}
	return w, true
}

// vexGeneral has the opcodes with a VEX or EVEX prefix, by their map, that write a general register: moves and conversions to one,
// comparisons of text, BMI.
var vexGeneral = map[byte][]byte{
	1: {0x2c, 0x2d, 0x50, 0x78, 0x79, 0x7e, 0x92, 0x93, 0xc5, 0xd7},
	2: {0xe0, 0xe1, 0xe2, 0xe3, 0xe4, 0xe5, 0xe6, 0xe7, 0xe8, 0xe9, 0xea, 0xeb, 0xec, 0xed, 0xee, 0xef, 0xf2, 0xf3, 0xf5, 0xf6, 0xf7},
	3: {0x14, 0x15, 0x16, 0x17, 0x60, 0x61, 0x62, 0x63, 0xf0},
	5: {0x2c, 0x2d, 0x78, 0x79, 0x7e},
}

// writesVEX is writes for an instruction with a VEX or EVEX prefix: most write vector registers, or memory.
func writesVEX(code []byte) (w Writes, ok bool) {
	x, ok := DecodeX86(code)
	if !ok || x.Map == 0 || x.Map > 6 || x.Map == 4 || bytes.IndexByte(vexGeneral[x.Map], x.Opcode[0]) >= 0 {
		return w, false
	}
	w.Memory = x.hasModRM && x.ModRM>>6 != 3
	return w, true
}
