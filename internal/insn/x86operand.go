package insn

import "encoding/binary"

// x86Memory is an operand in memory by the codes of its registers; -1 is none.
type x86Memory struct {
	base, index int8
	scale       uint8
	relative    bool // to the end of the instruction
	disp        int64
}

const x86SP = 4 // the code of RSP

// x86Short are the registers of addresses of 16 bits.
var x86Short = [8][2]int8{{3, 6}, {3, 7}, {5, 6}, {5, 7}, {6, -1}, {7, -1}, {5, -1}, {3, -1}}

// Address returns the register, by its code, and the displacement of the operand in memory that ModRM names; text is the instruction.
// base is -1 if it names none, or has none.
func (x *X86) Address(text []byte) (base int8, disp int64) {
	m := x.memory(text)
	return m.base, m.disp
}

// memory returns the operand in memory that ModRM names, if it names one.
func (x *X86) memory(text []byte) x86Memory {
	m := x86Memory{base: -1, index: -1}
	mod, rm := x.ModRM>>6, x.ModRM&7
	if !x.hasModRM || mod == 3 || x.after > len(text) {
		return m
	}
	at := text[x.after:]
	m.base = int8(rm | x.rex&1<<3)
	if rm == 4 && len(at) > 0 {
		sib := at[0]
		at = at[1:]
		m.base = int8(sib&7 | x.rex&1<<3)
		if m.index, m.scale = int8(sib>>3&7|x.rex&2<<2), sib>>6; m.index == x86SP {
			m.index = -1
		}
		rm = sib & 7
	}
	switch {
	case mod == 1 && len(at) >= 1:
		m.disp = int64(int8(at[0]))
	case (mod == 2 || mod == 0 && rm == 5) && len(at) >= 4:
		m.disp = int64(int32(binary.LittleEndian.Uint32(at)))
	}
	if mod == 0 && rm == 5 {
		m.base, m.relative = -1, x.ModRM&7 == 5
	}
	return m
}

// memoryShort returns it if addresses have 16 bits.
func (x *X86) memoryShort(text []byte) x86Memory {
	mod, rm := x.ModRM>>6, x.ModRM&7
	m := x86Memory{base: x86Short[rm][0], index: x86Short[rm][1]}
	switch at := text[x.after:]; {
	case mod == 1 && len(at) >= 1:
		m.disp = int64(int8(at[0]))
	case (mod == 2 || mod == 0 && rm == 6) && len(at) >= 2:
		m.disp = int64(int16(binary.LittleEndian.Uint16(at)))
	}
	if mod == 0 && rm == 6 {
		m.base = -1
	}
	return m
}

// x86Step is one instruction and its row.
type x86Step struct {
	*x86
	*X86
	row  *x86Row
	text []byte
	op   *operation
}

// operation decodes the first instruction in code. ok is false if no row says what it does.
func (m *x86) operation(code []byte, op *operation) (ok bool) {
	var x X86
	if !x.decode(code, m.narrow) {
		return false
	}
	r := m.row(&x)
	if r == nil {
		return false
	}
	op.name, op.does, op.reads, op.writes, op.code = r.name, r.does, r.reads, r.writes, r.code
	if r.coded {
		op.code |= uint32(x.mandatory)
		if r.count == 0 {
			op.code |= uint32(x.Reg()) << 8
		}
	}
	s := x86Step{m, &x, r, code[:x.Size], op}
	for i := range int(r.count) {
		s.operand(r.args[i], &op.list[i])
	}
	op.count = r.count
	s.widths()
	return true
}

// widths says how many bits the operation is about: those of its first operand, or what is extended.
func (s *x86Step) widths() {
	e, op := &s.op.does, s.op
	if op.count == 0 {
		return
	}
	bits := s.width(s.row.args[0].width)
	if e.bits = bits; e.verb == extends {
		e.bits = s.width(s.row.args[1].width)
	}
	if op.list[0].kind != registerOperand || bits >= s.bits {
		return
	}
	// A write of 32 bits clears the upper half of a register; one of 8 or 16 leaves the rest.
	if e.to = bits; bits < 32 {
		e.flags |= keepsUpper
	}
}

// width returns the bits of an operand by its letter.
func (s *x86Step) width(letter byte) uint8 {
	switch letter {
	case 'b':
		return 8
	case 'w':
		return 16
	case 'd':
		return 32
	case 'q':
		return 64
	case 'v', 'h', 'y':
		bits := uint8(32)
		switch {
		case s.rex&8 != 0:
			bits = 64
		case s.OperandSize && letter != 'y':
			bits = 16
		}
		if letter == 'h' {
			bits /= 2
		}
		return bits
	case 'p', 'a':
		if s.OperandSize && letter == 'p' {
			return 16
		}
		return s.bits
	case 's', 'c', 'm':
		return uint8(min(s.size(letter), 16) * 8)
	case 'x':
		return 128
	}
	return 64
}

// size returns the bytes of an operand in memory by its letter; -1 is not known, and 0 is none.
func (s *x86Step) size(letter byte) int32 {
	vector := int32(16) << s.length
	switch letter {
	case 'x':
		return vector
	case 's', 'c': // a scalar, as the prefix says; 'c' of an instruction that has only scalars
		switch {
		case s.mandatory == 0xf3, s.mandatory == 0 && letter == 'c':
			return 4
		case s.mandatory == 0xf2, letter == 'c':
			return 8
		}
		return vector
	case 'm':
		if s.mandatory == 0 && !s.VEX {
			return 8
		}
		return vector
	case 't':
		return 10
	case 'n':
		return -1
	case '.':
		return 0
	}
	return int32(s.width(letter) / 8)
}

// operand makes an operand of its letters.
func (s *x86Step) operand(arg x86Arg, a *operand) {
	*a = operand{reg: -1, plus: -1}
	switch arg.kind {
	case 'E', 'W', 'U':
		switch {
		case s.ModRM < 0xc0:
			s.memoryOperand(arg, a)
		case arg.kind != 'W':
			s.register(s.ModRM&7|s.rex&1<<3, arg.width, a)
		}
	case 'M':
		if s.ModRM < 0xc0 {
			s.memoryOperand(arg, a)
		}
	case 'R':
		s.register(s.ModRM&7|s.rex&1<<3, arg.width, a)
	case 'G':
		s.register(s.Reg()|s.rex&4<<1, arg.width, a)
	case 'Z':
		s.register(s.Opcode[s.OpcodeSize-1]&7|s.rex&1<<3, arg.width, a)
	case 'B':
		s.register(s.second, arg.width, a)
	case 'A':
		a.kind, a.reg = registerOperand, s.numbers[0]
	case 'C':
		a.kind, a.reg = registerOperand, s.numbers[1]
	case 'D':
		a.kind, a.reg = registerOperand, s.numbers[2]
	case 'I':
		a.kind, a.n = numberOperand, s.Immediate
	case '1':
		a.kind, a.n = numberOperand, 1
	case 'O':
		a.kind, a.n, a.size, a.away = memoryOperand, s.Immediate, s.size(arg.width), s.away
	case 'X', 'Y':
		code := 6 + int8(arg.kind-'X') // of RSI or RDI
		*a = operand{kind: memoryOperand, reg: s.numbers[code], plus: -1, size: s.size(arg.width), away: s.away && arg.kind == 'X', odd: s.Repeat || s.AddressSize}
		s.op.reads |= 1 << a.reg
		if s.Repeat {
			s.op.reads |= 1 << s.numbers[1]
			s.op.writes |= 1 << s.numbers[1]
		}
		s.op.writes |= 1 << a.reg
	}
}

// register makes an operand of a register by its code.
func (s *x86Step) register(code byte, width byte, a *operand) {
	a.kind = registerOperand
	if width == 'b' && code >= 4 && code < 8 && s.REX == 0 && !s.VEX {
		code -= 4 // AH to BH
		a.odd = true
	}
	a.reg = s.numbers[code&15]
}

// memoryOperand makes an operand in memory.
func (s *x86Step) memoryOperand(arg x86Arg, a *operand) {
	a.kind = memoryOperand
	m := s.memory(s.text)
	if s.narrow && s.AddressSize {
		m = s.memoryShort(s.text)
	}
	if m.base >= 0 {
		a.reg = s.numbers[m.base]
	}
	if m.index >= 0 {
		a.plus, a.scale = s.numbers[m.index], m.scale
	}
	a.n, a.size, a.away = m.disp, s.size(arg.width), s.away
	if m.relative && !s.narrow {
		a.here = true
		a.n += int64(s.Size)
	}
	// What is elsewhere, or of a size that is not known. A displacement of one byte of EVEX is in elements.
	a.odd = s.AddressSize || s.EVEX
	if a.size < 0 || arg.kind == 'U' {
		a.from, a.odd = !a.odd, true
	}
	a.size = max(a.size, 0)
}
