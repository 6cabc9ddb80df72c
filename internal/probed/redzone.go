package probed

import "github.com/bpfprologue/bpfprologue/internal/insn"

// The red zone is the 128 bytes below the stack pointer, which functions that call nothing may use as a frame (System V ABI, AMD64
// Architecture Processor Supplement, section 3.2.2).

const (
	x86SP = 4 // the number of RSP in an encoding, and of RBP
	x86FP = 5
)

// redZoneX86 reports whether a function's code may keep something below the stack pointer: it has an operand there; or one below a
// frame pointer where the stack pointer was not lowered as far; or it copies the stack pointer, does not lower it, and calls nothing.
// Code that does not decode counts as such code.
func redZoneX86(code []byte) bool {
	var lowered, deepest int64
	var calls, framed, copied bool
	for len(code) > 0 {
		x, ok := insn.DecodeX86(code)
		if !ok {
			return true
		}
		text := code[:x.Size]
		code = code[x.Size:]
		base, disp := x.Address(text)
		if x.EVEX && x.ModRM>>6 == 1 {
			disp *= 64 // at most: it is in elements
		}
		switch op := x.Opcode[0]; {
		case base == x86SP && disp < 0:
			return true
		case base == x86FP:
			deepest = min(deepest, disp)
		case x.VEX || x.OpcodeSize != 1:
		case op&0xf8 == 0x50 || op == 0x68 || op == 0x6a: // PUSH
			lowered += 8
		case (op == 0x81 || op == 0x83) && x.ModRM == 0xe8|x86SP: // SUB of a constant
			lowered += x.Immediate
		case (op == 0x81 || op == 0x83) && x.ModRM == 0xe0|x86SP: // AND, to align it
			lowered++
		case op == 0xe8 || op == 0xff && x.Reg() == 2:
			calls = true
		case op == 0x89 && x.ModRM>>3 == 0x18|x86SP, op == 0x8b && x.ModRM&0xc7 == 0xc0|x86SP && x.REX&1 == 0: // MOV from it
			if to := moved(&x); to == x86FP {
				framed = true
			} else {
				copied = true
			}
		}
	}
	// The frame pointer itself was pushed above what it points to.
	return !calls && (framed && -deepest > max(lowered-8, 0) || copied && lowered == 0)
}

// moved returns the register that a MOV between registers writes.
func moved(x *insn.X86) byte {
	if x.Opcode[0] == 0x89 {
		return x.ModRM&7 | x.REX&1<<3
	}
	return x.Reg() | x.REX&4<<1
}
