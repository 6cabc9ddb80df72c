package insn

import (
	"bytes"
	"encoding/binary"
	"slices"

	"golang.org/x/arch/x86/x86asm"
)

func isInt3(code []byte) bool { return len(code) > 0 && code[0] == 0xcc }

func raisesX86(code []byte) bool {
	x, ok := DecodeX86(code)
	switch {
	case !ok || x.VEX:
		return false
	case x.OpcodeSize == 2:
		return x.Opcode[1] == 0x0b || slices.Contains(trapsX86, x.Opcode[1])
	}
	return x.OpcodeSize == 1 && x.Opcode[0] >= 0xcc && x.Opcode[0] <= 0xce
}

// trapsX86 lists the second bytes of UD1 and UD0.
var trapsX86 = []byte{0xb9, 0xff}

// next says where control goes after an instruction, by the fields of its encoding alone.
func (m *x86) next(code []byte) (Insn, bool) {
	var x X86
	if !x.decode(code, m.mode == 32) {
		return Insn{}, false
	}
	in := Insn{Size: x.Size, Onward: true}
	if x.VEX {
		return in, true
	}
	op := x.Opcode[0]
	switch x.OpcodeSize {
	case 1:
	case 2:
		switch op = x.Opcode[1]; {
		case op&0xf0 == 0x80: // Jcc
			in.Branches, in.Target = true, int64(x.Size)+x.Immediate
		case op == 0x07 || op == 0x35: // SYSRET, SYSEXIT
			in.Onward = false
		case op == 0x0b || slices.Contains(trapsX86, op): // UD2; execution may continue after it: it is also the trap of a WARN
			in.Trap = true
		case op == 0x1f:
			in.Nop = true
		}
		return in, true
	default:
		return in, true
	}
	switch {
	case op&0xf0 == 0x70, op >= 0xe0 && op <= 0xe3, op == 0xc7 && x.ModRM == 0xf8: // Jcc, LOOP, JCXZ; XBEGIN
		in.Branches, in.Target = true, int64(x.Size)+x.Immediate
	case op == 0xe9, op == 0xeb:
		in.Onward, in.Branches, in.Target = false, true, int64(x.Size)+x.Immediate
	case op == 0xe8:
		in.Call, in.Target = true, int64(x.Size)+x.Immediate
	case op == 0x9a:
		in.Call = true // a far one
	case op == 0xea:
		in.Onward, in.Lost = false, true
	case op == 0xff:
		switch x.Reg() {
		case 2, 3:
			in.Call = true
		case 4, 5:
			in.Onward, in.Lost = false, true
		}
	case op == 0xc2, op == 0xc3, op == 0xca, op == 0xcb, op == 0xcf: // RET, far RET, IRET
		in.Onward = false
	case op == 0xcc, op == 0xcd && x.Immediate == 3:
		in.Trap = true
	case op == 0x90:
		in.Nop = x.REX&1 == 0 && x.Last != 0xf3 // else XCHG of R8, PAUSE
	}
	return in, true
}

// decode decodes an instruction. x86asm 0.30 panics if the code ends after a VEX prefix and its
// opcode (decodeAVX).
func (m *x86) decode(code []byte) (inst x86asm.Inst, err error) {
	defer func() {
		if recover() != nil {
			err = x86asm.ErrTruncated
		}
	}()
	return x86asm.Decode(code, m.mode)
}

// vexSize returns the size of an instruction with a VEX or EVEX prefix, or 0 for others.
// x86asm 0.30 does not know SHLX and other BMI2 instructions, and takes VZEROUPPER for eight
// bytes. None of them branches. They have a ModRM byte, as IMUL has, except VZEROUPPER
// and VZEROALL, and a constant of one byte in the map 0F 3A and for some opcodes of the map
// 0F (Intel SDM, volume 2, section 2.3.11 and appendix A).
func (m *x86) vexSize(code []byte) int {
	prefixes := 0
	for prefixes < len(code) && bytes.IndexByte(x86Segments, code[prefixes]) >= 0 {
		prefixes++
	}
	c := code[prefixes:]
	if len(c) < 3 || m.mode == 32 && c[1]>>6 != 3 {
		return 0 // LDS, LES and BOUND of 32-bit code have an operand in memory
	}
	at, opcodes := 0, byte(1) // of the opcode; of its map
	switch c[0] {
	case 0xc5:
		at = 2
	case 0xc4:
		at, opcodes = 3, c[1]&0x1f
	case 0x62:
		at, opcodes = 4, c[1]&0x07
	}
	if at == 0 || at >= len(c) || opcodes == 0 {
		return 0
	}
	size, opcode := prefixes+at+1, c[at]
	if opcodes == 1 && opcode == 0x77 && c[0] != 0x62 {
		return size // VZEROUPPER, VZEROALL
	}
	imul, err := m.decode(append([]byte{0x0f, 0xaf}, c[at+1:min(len(c), at+9)]...))
	if err != nil || imul.Op == 0 {
		return 0
	}
	size += imul.Len - 2
	if opcodes == 3 || opcodes == 1 && bytes.IndexByte(vexConstant, opcode) >= 0 {
		size++
	}
	if size > len(code) {
		return 0
	}
	return size
}

// vexConstant lists the opcodes of the map 0F that a constant follows: shuffles and shifts,
// VCMP, VPINSRW, VPEXTRW, VSHUFP.
var vexConstant = []byte{0x70, 0x71, 0x72, 0x73, 0xc2, 0xc4, 0xc5, 0xc6}

// x86Segments lists the prefixes that may stand before a VEX prefix.
var x86Segments = []byte{0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65, 0x67}

// slot says what an instruction does to a slot.
func (m *x86) slot(code []byte, of Slot) (size int, did Effect) {
	inst, err := m.decode(code)
	// As in next, no operation means that the instruction is unknown.
	if err != nil || inst.Op == 0 || x86Leaves[inst.Op] {
		return 0, Lost
	}
	size = inst.Len
	if n := m.vexSize(code); n > 0 {
		size = n
	}
	did = Kept
	for i, a := range inst.Args {
		switch a := a.(type) {
		case x86asm.Rel:
			return 0, Lost // a branch
		case x86asm.Reg:
			// It may be changed. Merely reading it is rare, and can make another register
			// point into the frame.
			if m.number[a] == int(of.Base) {
				return 0, Lost
			}
		case x86asm.Mem:
			if !m.touches(a, inst.MemBytes, of) {
				continue
			}
			if i != 0 || !x86Stores[inst.Op] || a.Index != 0 || x86Disp(a) != of.Off || int64(inst.MemBytes) != of.Size {
				return 0, Lost
			}
			did = Stored
		}
	}
	return size, did
}

// ends tests whether code ends with the slot's operand, or with a constant of up to
// four bytes after that, as a store does.
func (m *x86) ends(code []byte, of Slot) bool {
	op, n := m.operand(of)
	for _, constant := range [...]int{0, 1, 2, 4} {
		at := len(code) - constant - n
		if at > 0 && code[at]&^x86Reg == op[0] && string(code[at+1:at+n]) == string(op[1:n]) {
			return true
		}
	}
	return false
}

const x86Reg = 0x38 // the bits of ModRM that name the other operand

// operand returns how a slot is encoded, in n bytes: ModRM without the other
// operand, SIB for the stack pointer, displacement.
func (m *x86) operand(of Slot) (op [6]byte, n int) {
	op[0], n = 0x05, 1
	if of.Base == m.sp {
		op[0], op[1], n = 0x04, 0x24, 2
	}
	switch {
	case of.Off == 0 && of.Base == m.sp:
	case of.Off == int64(int8(of.Off)):
		op[0] |= 0x40
		op[n] = byte(of.Off)
		n++
	default:
		op[0] |= 0x80
		binary.LittleEndian.PutUint32(op[n:], uint32(of.Off))
		n += 4
	}
	return op, n
}

// touches reports whether an operand of n bytes overlaps a slot, or may do so. LEA's
// operand has no size and overlaps if its address is in the slot.
func (m *x86) touches(a x86asm.Mem, n int, of Slot) bool {
	if a.Base == 0 || m.number[a.Base] != int(of.Base) || a.Segment == x86asm.FS || a.Segment == x86asm.GS {
		return false
	}
	at := x86Disp(a)
	return a.Index != 0 || at < of.Off+of.Size && of.Off < at+int64(max(n, 1))
}

// x86Disp returns an operand's displacement, which x86asm zero-extends if it has 32 bits.
func x86Disp(a x86asm.Mem) int64 { return int64(int32(a.Disp)) }

func x86Set(ops ...x86asm.Op) map[x86asm.Op]bool {
	out := make(map[x86asm.Op]bool)
	for _, o := range ops {
		out[o] = true
	}
	return out
}

// x86Leaves has the operations after which execution may continue elsewhere, or that
// change the stack pointer without naming it.
var x86Leaves = x86Set(
	x86asm.CALL, x86asm.LCALL, x86asm.JMP, x86asm.LJMP, x86asm.RET, x86asm.LRET, x86asm.IRET, x86asm.IRETD, x86asm.IRETQ,
	x86asm.SYSCALL, x86asm.SYSENTER, x86asm.SYSEXIT, x86asm.SYSRET, x86asm.INT, x86asm.INTO, x86asm.ICEBP, x86asm.UD1, x86asm.UD2, x86asm.HLT,
	x86asm.PUSH, x86asm.PUSHF, x86asm.PUSHFD, x86asm.PUSHFQ, x86asm.POP, x86asm.POPF, x86asm.POPFD, x86asm.POPFQ, x86asm.ENTER, x86asm.LEAVE,
)

// x86Stores has the operations that write their first operand without reading it, as a
// spill does.
var x86Stores = x86Set(
	x86asm.MOV, x86asm.MOVD, x86asm.MOVQ, x86asm.MOVSS, x86asm.MOVSD_XMM, x86asm.MOVAPS, x86asm.MOVUPS, x86asm.MOVDQA, x86asm.MOVDQU,
	x86asm.SETA, x86asm.SETAE, x86asm.SETB, x86asm.SETBE, x86asm.SETE, x86asm.SETG, x86asm.SETGE, x86asm.SETL, x86asm.SETLE,
	x86asm.SETNE, x86asm.SETNO, x86asm.SETNP, x86asm.SETNS, x86asm.SETO, x86asm.SETP, x86asm.SETS,
)

func (m *x86) shape(code []byte) uint64 {
	inst, err := m.decode(code)
	if err != nil {
		return 0
	}
	shape := uint64(inst.Op)<<16 | uint64(inst.MemBytes)<<8
	for _, a := range inst.Args {
		shape *= 3
		switch a.(type) {
		case x86asm.Reg:
			shape++
		case x86asm.Mem:
			shape += 2
		}
	}
	return shape
}

func (m *x86) global(code []byte, addr uint64) (at uint64, ok bool) {
	inst, err := m.decode(code)
	if err != nil || inst.Op == x86asm.LEA || inst.Op == x86asm.NOP {
		return 0, false
	}
	for _, a := range inst.Args {
		if at, is := a.(x86asm.Mem); is && at.Base == x86asm.RIP && at.Index == 0 {
			return addr + uint64(inst.Len) + uint64(x86Disp(at)), true
		}
	}
	return 0, false
}
