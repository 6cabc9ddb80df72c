package dwarfloc

import (
	"encoding/binary"

	"golang.org/x/arch/x86/x86asm"
)

// slotX86 says what an x86-64 instruction does to a slot.
func slotX86(code []byte, m slot) (size int, did slotEffect) {
	inst, err := x86asm.Decode(code, 64)
	// Where x86asm does not know what is behind a prefix, or code is cut short, it makes
	// the first byte an instruction, with no operation.
	if err != nil || inst.Op == 0 || x86Leaves[inst.Op] {
		return 0, slotLost
	}
	did = slotKept
	for i, a := range inst.Args {
		switch a := a.(type) {
		case x86asm.Rel:
			return 0, slotLost // a branch
		case x86asm.Reg:
			// It may be changed. That it is only read is rare, and may be how another
			// register comes to point into the frame.
			if x86Number[a] == int(m.base) {
				return 0, slotLost
			}
		case x86asm.Mem:
			if !x86Touches(a, inst.MemBytes, m) {
				continue
			}
			if i != 0 || !x86Stores[inst.Op] || a.Index != 0 || x86Disp(a) != m.off || int64(inst.MemBytes) != m.size {
				return 0, slotLost
			}
			did = slotStored
		}
	}
	return inst.Len, did
}

// endsX86: a store ends in the operand of the slot, or in a constant of up to four bytes
// behind that.
func endsX86(code []byte, m slot) bool {
	op, n := x86Operand(m)
	for _, constant := range [...]int{0, 1, 2, 4} {
		at := len(code) - constant - n
		if at > 0 && code[at]&^x86Reg == op[0] && string(code[at+1:at+n]) == string(op[1:n]) {
			return true
		}
	}
	return false
}

const (
	x86SP  = 7    // DWARF number of %rsp
	x86Reg = 0x38 // the bits of ModRM that name the other operand
)

// x86Operand returns how a slot is encoded, in n bytes: ModRM without the other
// operand, SIB for the stack pointer, displacement.
func x86Operand(m slot) (op [6]byte, n int) {
	op[0], n = 0x05, 1
	if m.base == x86SP {
		op[0], op[1], n = 0x04, 0x24, 2
	}
	switch {
	case m.off == 0 && m.base == x86SP:
	case m.off == int64(int8(m.off)):
		op[0] |= 0x40
		op[n] = byte(m.off)
		n++
	default:
		op[0] |= 0x80
		binary.LittleEndian.PutUint32(op[n:], uint32(m.off))
		n += 4
	}
	return op, n
}

// x86Touches reports whether an operand of n bytes is or may be in a slot; LEA's, which
// has no size, when its address is one of the slot's.
func x86Touches(a x86asm.Mem, n int, m slot) bool {
	if a.Base == 0 || x86Number[a.Base] != int(m.base) || a.Segment == x86asm.FS || a.Segment == x86asm.GS {
		return false
	}
	at := x86Disp(a)
	return a.Index != 0 || at < m.off+m.size && m.off < at+int64(max(n, 1))
}

// x86Disp is an operand's displacement: x86asm extends one of 32 bits with zeros.
func x86Disp(a x86asm.Mem) int64 { return int64(int32(a.Disp)) }

// x86Number is the DWARF number of general registers, whatever part of them, else -1.
var x86Number = func() (out [256]int) {
	for i := range out {
		out[i] = -1
	}
	for i, n := range [...]int{0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15} { // psABI, figure 3.36
		for _, first := range [...]x86asm.Reg{x86asm.AX, x86asm.EAX, x86asm.RAX} {
			out[int(first)+i] = n
		}
		if i < 4 {
			out[int(x86asm.AL)+i], out[int(x86asm.AH)+i] = n, n
		} else {
			out[int(x86asm.SPB)+i-4] = n
		}
	}
	return out
}()

func x86Set(ops ...x86asm.Op) map[x86asm.Op]bool {
	out := make(map[x86asm.Op]bool)
	for _, o := range ops {
		out[o] = true
	}
	return out
}

// x86Leaves are operations that do not go straight on, or move the stack pointer
// without naming it.
var x86Leaves = x86Set(
	x86asm.CALL, x86asm.LCALL, x86asm.JMP, x86asm.LJMP, x86asm.RET, x86asm.LRET, x86asm.IRET, x86asm.IRETD, x86asm.IRETQ,
	x86asm.SYSCALL, x86asm.SYSENTER, x86asm.SYSEXIT, x86asm.SYSRET, x86asm.INT, x86asm.INTO, x86asm.ICEBP, x86asm.UD1, x86asm.UD2, x86asm.HLT,
	x86asm.PUSH, x86asm.PUSHF, x86asm.PUSHFD, x86asm.PUSHFQ, x86asm.POP, x86asm.POPF, x86asm.POPFD, x86asm.POPFQ, x86asm.ENTER, x86asm.LEAVE,
)

// x86Stores are operations that write their first operand without reading it, as a
// spill does.
var x86Stores = x86Set(
	x86asm.MOV, x86asm.MOVD, x86asm.MOVQ, x86asm.MOVSS, x86asm.MOVSD_XMM, x86asm.MOVAPS, x86asm.MOVUPS, x86asm.MOVDQA, x86asm.MOVDQU,
	x86asm.SETA, x86asm.SETAE, x86asm.SETB, x86asm.SETBE, x86asm.SETE, x86asm.SETG, x86asm.SETGE, x86asm.SETL, x86asm.SETLE,
	x86asm.SETNE, x86asm.SETNO, x86asm.SETNP, x86asm.SETNS, x86asm.SETO, x86asm.SETP, x86asm.SETS,
)
