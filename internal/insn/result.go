package insn

import (
	"encoding/binary"

	"golang.org/x/arch/arm64/arm64asm"
	"golang.org/x/arch/x86/x86asm"
)

// Results finds calls, and whether the code after them uses the result in the first result
// register.
type Results struct {
	// Calls calls visit for each place in code, which begins at the address addr, that may
	// be a direct call: with the offset of what follows it and the address of the function.
	// On amd64 and i386 these are all bytes E8, also those inside other instructions.
	Calls func(code []byte, addr uint64, visit func(after int, target uint64))
	// Uses reports whether code reads the result before it writes the register. It follows
	// the code to the first jump, call or return.
	Uses func(code []byte) bool
}

// mostAfterCall is how many instructions after a call are looked at.
const mostAfterCall = 24

func (m *x86) calls(code []byte, addr uint64, visit func(after int, target uint64)) {
	for i := 0; i+5 <= len(code); i++ {
		if code[i] == 0xe8 {
			rel := int32(binary.LittleEndian.Uint32(code[i+1:]))
			visit(i+5, (addr+uint64(i+5)+uint64(int64(rel)))&mask(uint8(m.mode)))
		}
	}
}

// isRAX reports whether an operand is RAX or its low part.
func isRAX(a x86asm.Arg) bool {
	return a == x86asm.RAX || a == x86asm.EAX || a == x86asm.AX || a == x86asm.AL
}

// takesRAX reports whether an operand is memory whose address depends on RAX.
func takesRAX(a x86asm.Arg) bool {
	m, ok := a.(x86asm.Mem)
	return ok && (isRAX(m.Base) || isRAX(m.Index))
}

func (m *x86) uses(code []byte) bool {
	for range mostAfterCall {
		inst, err := m.decode(code)
		if err != nil || inst.Op == 0 {
			return false
		}
		code = code[inst.Len:]
		for i, a := range inst.Args {
			if takesRAX(a) && inst.Op != x86asm.NOP || i > 0 && isRAX(a) && !sameX86(inst) {
				return true
			}
		}
		switch inst.Op {
		case x86asm.CDQ, x86asm.CQO, x86asm.CWDE, x86asm.CDQE, x86asm.CBW, x86asm.CWD:
			return true
		case x86asm.MUL, x86asm.DIV, x86asm.IDIV, x86asm.IMUL:
			if inst.Args[1] == nil || isRAX(inst.Args[0]) && inst.Args[2] == nil {
				return true
			}
		case x86asm.CALL, x86asm.JMP, x86asm.RET, x86asm.UD2:
			return false
		}
		if !isRAX(inst.Args[0]) {
			continue
		}
		switch inst.Op {
		case x86asm.MOV, x86asm.MOVZX, x86asm.MOVSX, x86asm.MOVSXD, x86asm.LEA, x86asm.POP:
			return false
		}
		return !sameX86(inst) && !setsX86[inst.Op]
	}
	return false
}

// sameX86 reports whether an instruction clears a register: XOR EAX, EAX.
func sameX86(inst x86asm.Inst) bool {
	return (inst.Op == x86asm.XOR || inst.Op == x86asm.SUB) && inst.Args[0] == inst.Args[1]
}

// setsX86 are the instructions that set a byte register by a condition.
var setsX86 = map[x86asm.Op]bool{
	x86asm.SETA: true, x86asm.SETAE: true, x86asm.SETB: true, x86asm.SETBE: true, x86asm.SETE: true, x86asm.SETG: true,
	x86asm.SETGE: true, x86asm.SETL: true, x86asm.SETLE: true, x86asm.SETNE: true, x86asm.SETNO: true, x86asm.SETNP: true,
	x86asm.SETNS: true, x86asm.SETO: true, x86asm.SETP: true, x86asm.SETS: true,
}

func callsARM64(code []byte, addr uint64, visit func(after int, target uint64)) {
	for i := 0; i+4 <= len(code); i += 4 {
		if word := binary.LittleEndian.Uint32(code[i:]); word>>26 == 0b100101 { // BL
			visit(i+4, addr+uint64(i)+uint64(int64(int32(word<<6)>>6)*4))
		}
	}
}

func isX0(a arm64asm.Arg) bool { return a == arm64asm.X0 || a == arm64asm.W0 }

// takesX0 reports whether an operand reads X0 wherever it stands: as an address, shifted or
// extended.
func takesX0(a arm64asm.Arg) bool {
	switch a := a.(type) {
	case arm64asm.MemImmediate:
		return a.Base == arm64asm.RegSP(arm64asm.X0)
	case arm64asm.MemExtend:
		return a.Base == arm64asm.RegSP(arm64asm.X0) || isX0(a.Index)
	}
	return false
}

func usesARM64(code []byte) bool {
	for range mostAfterCall {
		if len(code) < 4 {
			return false
		}
		inst, err := decodeARM64(code)
		if err != nil {
			return false
		}
		code = code[4:]
		for i, a := range inst.Args {
			if takesX0(a) || i > 0 && isX0(a) {
				return true
			}
		}
		switch inst.Op {
		case arm64asm.BL, arm64asm.BLR, arm64asm.B, arm64asm.BR, arm64asm.RET:
			return false
		}
		if !isX0(inst.Args[0]) {
			continue
		}
		switch inst.Op {
		case arm64asm.STR, arm64asm.STP, arm64asm.STUR, arm64asm.STRB, arm64asm.STRH, arm64asm.STURB, arm64asm.STURH,
			arm64asm.CMP, arm64asm.CMN, arm64asm.TST, arm64asm.CBZ, arm64asm.CBNZ, arm64asm.TBZ, arm64asm.TBNZ:
			return true
		}
		return false
	}
	return false
}
