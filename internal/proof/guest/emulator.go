package guest

import (
	"bytes"

	"github.com/bpfprologue/bpfprologue/internal/insn"
)

// EndsEmulator reports whether an instruction of amd64 ends Debian 12's emulator, QEMU 7.2, which a processor of a guest is: when it
// translates the instruction a condition of its own does not hold, with a probe and without. It was given all 1.3 million encodings
// that package harm knows without a kernel, where 276 end it, of three kinds, and no others of these kinds do not:
//
//   - VROUNDSS and VROUNDSD with VEX.L, which processors ignore (gen_VROUNDSS, gen_VROUNDSD)
//   - VPINSRW without the prefix 66, an encoding that processors do not have (gen_pinsr)
//   - BT, BTS, BTR and BTC of a register with LOCK, for which processors raise #UD
//
// A fourth kind makes it fault, which without a kernel looks like a fault of the program: opcode 0C of the map
// 0F 38 without the prefix 66, with which it is VPERMILPS. Of 454,147 of the encodings no others do.
func EndsEmulator(code []byte) bool {
	x, ok := insn.DecodeX86(code)
	if !ok || x.EVEX {
		return false
	}
	if !x.VEX {
		if x.OpcodeSize == 3 && x.Opcode == [3]byte{0x0f, 0x38, 0x0c} {
			return !bytes.ContainsAny(code[:bytes.IndexByte(code, 0x0f)], "\x66\xf2\xf3")
		}
		if x.OpcodeSize != 2 || x.Opcode[0] != 0x0f || !x.Locked || x.ModRM < 0xc0 {
			return false
		}
		switch x.Opcode[1] {
		case 0xa3, 0xab, 0xb3, 0xbb:
			return true
		}
		return x.Opcode[1] == 0xba && x.Reg() >= 4
	}
	space, last, opcode := byte(1), code[1], code[2]
	if code[0] == 0xc4 {
		space, last, opcode = code[1]&0x1f, code[2], code[3]
	}
	return space == 2 && opcode == 0x0c && last&3 == 0 || space == 3 && opcode&^1 == 0x0a && last&7 == 5 || space == 1 && opcode == 0xc4 && last&3 == 0
}
