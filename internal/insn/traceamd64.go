package insn

import (
	"bytes"

	"golang.org/x/arch/x86/x86asm"
)

// x86Conditions are the conditions of jumps that follow a comparison.
var x86Conditions = map[x86asm.Op]condition{
	x86asm.JA: above, x86asm.JAE: atLeast, x86asm.JB: below, x86asm.JBE: atMost, x86asm.JE: equal, x86asm.JNE: different,
	x86asm.JG: greater, x86asm.JGE: notLess, x86asm.JL: less, x86asm.JLE: notGreater,
}

// x86First has operations that write their first operand and the flags, and nothing else.
var x86First = x86Set(
	x86asm.ADC, x86asm.SBB, x86asm.OR, x86asm.XOR, x86asm.AND, x86asm.NOT, x86asm.NEG, x86asm.SAR, x86asm.SHR, x86asm.SHL, x86asm.ROL, x86asm.ROR,
	x86asm.SHLD, x86asm.SHRD, x86asm.BSF, x86asm.BSR, x86asm.TZCNT, x86asm.LZCNT, x86asm.POPCNT, x86asm.BSWAP, x86asm.BT, x86asm.BTS, x86asm.BTR, x86asm.BTC,
	x86asm.SETA, x86asm.SETAE, x86asm.SETB, x86asm.SETBE, x86asm.SETE, x86asm.SETG, x86asm.SETGE, x86asm.SETL, x86asm.SETLE,
	x86asm.SETNE, x86asm.SETNO, x86asm.SETNP, x86asm.SETNS, x86asm.SETO, x86asm.SETP, x86asm.SETS,
	x86asm.CMOVA, x86asm.CMOVAE, x86asm.CMOVB, x86asm.CMOVBE, x86asm.CMOVE, x86asm.CMOVG, x86asm.CMOVGE, x86asm.CMOVL, x86asm.CMOVLE,
	x86asm.CMOVNE, x86asm.CMOVNO, x86asm.CMOVNP, x86asm.CMOVNS, x86asm.CMOVO, x86asm.CMOVP, x86asm.CMOVS,
	x86asm.MOV, x86asm.MOVZX, x86asm.MOVSX, x86asm.MOVSXD, x86asm.LEA, x86asm.ADD, x86asm.SUB, x86asm.INC, x86asm.DEC,
)

// x86KeepsFlags has those of them that leave the flags as they are.
var x86KeepsFlags = x86Set(
	x86asm.MOV, x86asm.MOVZX, x86asm.MOVSX, x86asm.MOVSXD, x86asm.LEA, x86asm.NOT, x86asm.BSWAP,
	x86asm.SETA, x86asm.SETAE, x86asm.SETB, x86asm.SETBE, x86asm.SETE, x86asm.SETG, x86asm.SETGE, x86asm.SETL, x86asm.SETLE,
	x86asm.SETNE, x86asm.SETNO, x86asm.SETNP, x86asm.SETNS, x86asm.SETO, x86asm.SETP, x86asm.SETS,
	x86asm.CMOVA, x86asm.CMOVAE, x86asm.CMOVB, x86asm.CMOVBE, x86asm.CMOVE, x86asm.CMOVG, x86asm.CMOVGE, x86asm.CMOVL, x86asm.CMOVLE,
	x86asm.CMOVNE, x86asm.CMOVNO, x86asm.CMOVNP, x86asm.CMOVNS, x86asm.CMOVO, x86asm.CMOVP, x86asm.CMOVS,
)

// x86Step is one instruction, and what it can read.
type x86Step struct {
	*trace
	x86asm.Inst
	m    *x86
	addr uint64
}

// trace follows the first instruction in code.
func (m *x86) trace(t *trace, code []byte, addr uint64) condition {
	if bytes.HasPrefix(code, []byte{0xf3, 0x0f, 0x1e, 0xfa}) {
		return always // ENDBR64
	}
	inst, err := m.decode(code)
	if err != nil || inst.Op == 0 || m.vexSize(code) > 0 {
		t.loseAll()
		return always
	}
	s := x86Step{t, inst, m, addr}
	if c, ok := x86Conditions[inst.Op]; ok {
		t.branch = t.flags
		return c
	}
	s.run()
	return always
}

// target returns where the indirect jump at the start of code leads.
func (m *x86) target(t *trace, code []byte, addr uint64) value {
	inst, err := m.decode(code)
	if err != nil || inst.Op != x86asm.JMP {
		return t.unknown()
	}
	v, _ := x86Step{t, inst, m, addr}.read(inst.Args[0])
	return v
}

func (s x86Step) run() {
	to, from := s.Args[0], s.Args[1]
	sp, word := &s.regs[s.m.sp], uint8(s.m.mode)
	switch s.Op {
	case x86asm.JMP, x86asm.NOP, x86asm.RET:
	case x86asm.JCXZ, x86asm.JECXZ, x86asm.JRCXZ, x86asm.JNO, x86asm.JNP, x86asm.JNS, x86asm.JO, x86asm.JP, x86asm.JS:
	case x86asm.CALL:
		s.call(s.m.lost, s.m.results)
	case x86asm.PUSH:
		v, _ := s.read(to)
		*sp = s.low(s.plus(*sp, constant(uint64(word/8)), ^uint64(0)), word)
		s.store(*sp, word, v)
	case x86asm.POP:
		v := s.load(*sp, word)
		*sp = s.low(s.plus(*sp, constant(uint64(word/8)), 1), word)
		s.write(to, v)
	case x86asm.CDQE:
		s.regs[0] = s.lowSigned(s.regs[0], 32)
	case x86asm.CMP:
		a, bits := s.read(to)
		b, _ := s.read(from)
		s.compare(a, b, bits)
	case x86asm.TEST:
		a, bits := s.read(to)
		if s.flags.valid = to == from; s.flags.valid {
			s.compare(a, constant(0), bits)
		}
	default:
		if x86First[s.Op] {
			s.compute(to, from)
			return
		}
		s.other(to)
	}
}

// compute follows an operation that writes its first operand.
func (s x86Step) compute(to, from x86asm.Arg) {
	a, bits := s.read(to)
	b, width := s.read(from)
	out := s.unknown()
	flags := x86KeepsFlags[s.Op]
	switch s.Op {
	case x86asm.MOV:
		out = b
	case x86asm.MOVZX:
		out = s.low(b, width)
	case x86asm.MOVSX, x86asm.MOVSXD:
		out = s.lowSigned(b, width)
	case x86asm.LEA:
		out = s.address(from.(x86asm.Mem))
	case x86asm.ADD:
		out = s.plus(a, b, 1)
	case x86asm.INC:
		out = s.plus(a, constant(1), 1)
	case x86asm.DEC:
		out = s.plus(a, constant(1), ^uint64(0))
	case x86asm.SUB:
		s.compare(a, b, bits)
		out, flags = s.plus(a, b, ^uint64(0)), true
	case x86asm.XOR:
		if to == from {
			out = constant(0)
		}
	case x86asm.AND:
		out = s.and(a, b)
	case x86asm.SHL:
		if b.isConstant() {
			out = s.plus(constant(0), a, 1<<(b.c&uint64(bits-1)))
		}
	case x86asm.SHR:
		if n := b.c & uint64(bits-1); b.isConstant() && n > 0 {
			out = s.upTo(mask(bits) >> n)
		}
	}
	if s.Op == x86asm.BT {
		s.flags.valid = false
		return
	}
	s.write(to, out)
	s.flags.valid = s.flags.valid && flags
}

// other follows an operation that is in no table: those of vector registers are harmless.
func (s x86Step) other(to x86asm.Arg) {
	if r, ok := to.(x86asm.Reg); ok && r >= x86asm.M0 && r <= x86asm.X15 {
		s.flags.valid = false // COMISS
		return
	}
	if from, ok := s.Args[1].(x86asm.Reg); ok && from >= x86asm.M0 && from <= x86asm.X15 {
		if m, is := to.(x86asm.Mem); is {
			s.store(s.address(m), 128, s.unknown())
			return
		}
		if _, is := to.(x86asm.Reg); is {
			s.write(to, s.unknown()) // MOVD, CVTTSD2SI
			return
		}
	}
	s.loseAll()
}

// x86Width returns the bits of a general register, or 0.
func x86Width(r x86asm.Reg) uint8 {
	switch {
	case r >= x86asm.AL && r <= x86asm.R15B && (r < x86asm.AH || r > x86asm.BH):
		return 8
	case r >= x86asm.AX && r <= x86asm.R15W:
		return 16
	case r >= x86asm.EAX && r <= x86asm.R15L:
		return 32
	case r >= x86asm.RAX && r <= x86asm.R15:
		return 64
	}
	return 0
}

// read returns an operand and its width. The upper bits of the value are those of the whole
// register.
func (s x86Step) read(a x86asm.Arg) (v value, bits uint8) {
	switch a := a.(type) {
	case x86asm.Reg:
		if bits = x86Width(a); bits > 0 {
			return s.regs[s.m.number[a]], bits
		}
	case x86asm.Imm:
		return constant(uint64(a)), 64
	case x86asm.Mem:
		if bits = uint8(min(s.MemBytes, 8) * 8); bits > 0 && s.Op != x86asm.LEA {
			return s.load(s.address(a), bits), bits
		}
	}
	return s.unknown(), 64
}

// write sets an operand. A write of 32 bits clears the upper half of a register; one of 8 or 16
// leaves the rest, so that nothing is known of the whole.
func (s x86Step) write(a x86asm.Arg, v value) {
	switch a := a.(type) {
	case x86asm.Reg:
		n := s.m.number[a]
		if n < 0 {
			return
		}
		switch x86Width(a) {
		case 64:
		case 32:
			v = s.low(v, 32)
		default:
			v = s.unknown()
		}
		s.regs[n] = v
	case x86asm.Mem:
		s.store(s.address(a), uint8(max(s.MemBytes, 1)*8), v)
	}
}

// address returns the address of a memory operand.
func (s x86Step) address(m x86asm.Mem) value {
	if m.Segment == x86asm.FS || m.Segment == x86asm.GS || s.AddrSize != s.m.mode {
		return s.unknown()
	}
	out := constant(uint64(x86Disp(m)))
	if m.Base == x86asm.RIP {
		out.c += s.addr + uint64(s.Len)
	} else if m.Base != 0 {
		out = s.plus(out, s.regs[s.m.number[m.Base]], 1)
	}
	if m.Index != 0 {
		out = s.plus(out, s.regs[s.m.number[m.Index]], uint64(m.Scale))
	}
	return s.low(out, uint8(s.m.mode))
}
