package insn

import (
	"encoding/binary"

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
