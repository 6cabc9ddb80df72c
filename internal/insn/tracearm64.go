package insn

import "encoding/binary"

const (
	// arm64Lost are the registers that functions do not preserve: x0 to x18 and x30 (AAPCS64,
	// section 6.1.1).
	arm64Lost Registers = 1<<19 - 1 | 1<<30
	// arm64Result are those with results: x0 and x1 (section 6.9).
	arm64Result Registers = 3
)

// arm64SP is the number of the stack pointer.
const arm64SP = 31

// arm64Conditions are the conditions by their numbers (Arm ARM, C1.2.4).
var arm64Conditions = [16]condition{0: equal, 1: different, 2: atLeast, 3: below, 8: above, 9: atMost, 10: notLess, 11: less, 12: greater, 13: notGreater}

// arm64Step is one instruction. It is decoded here by the encoding groups of the Arm ARM, C4.1:
// arm64asm does not export the shifts and extensions of operands.
type arm64Step struct {
	*trace
	word uint32
	addr uint64
}

// arm64Forms lists the instructions that matter to jump tables. Each must come before the more
// general ones; the last ones lose what they may write.
var arm64Forms = []struct {
	mask, value uint32
	run         func(arm64Step)
}{
	{0x1f000000, 0x10000000, arm64Step.adr},
	{0x1f800000, 0x11000000, arm64Step.addImmediate},
	{0x1f800000, 0x12000000, arm64Step.andImmediate},
	{0x1f800000, 0x12800000, arm64Step.moveWide},
	{0x1f800000, 0x13000000, arm64Step.bitfield},
	{0x1f200000, 0x0b000000, arm64Step.addShifted},
	{0x1f200000, 0x0b200000, arm64Step.addExtended},
	{0x7fe0ffe0, 0x2a0003e0, arm64Step.moveRegister},
	{0x7f000000, 0x2a000000, arm64Step.unknownRd},    // ORR, ORN
	{0x7f000000, 0x0a000000, arm64Step.unknownRd},    // AND, BIC
	{0x7f000000, 0x4a000000, arm64Step.unknownRd},    // EOR, EON
	{0x7f000000, 0x6a000000, arm64Step.unknownFlags}, // ANDS, BICS
	{0x1fe00000, 0x1a000000, arm64Step.unknownFlags}, // ADC, SBC
	{0x3fe00000, 0x3a400000, arm64Step.conditional},  // CCMP, CCMN
	{0x1f800000, 0x13800000, arm64Step.unknownRd},    // EXTR
	{0x1f000000, 0x1b000000, arm64Step.unknownRd},    // three operands, as MADD
	{0x7fe00000, 0x1ac00000, arm64Step.unknownRd},    // two operands, as UDIV
	{0x7fe00000, 0x5ac00000, arm64Step.unknownRd},    // one operand, as CLZ
	{0x7fff0fe0, 0x1a9f07e0, arm64Step.set01},        // CSET
	{0x3fe00000, 0x1a800000, arm64Step.unknownRd},    // CSEL and the like
	{0x3b200c00, 0x38200800, arm64Step.loadRegister},
	{0x3b000000, 0x39000000, arm64Step.loadOffset},
	{0x3b200c00, 0x38000000, arm64Step.loadUnscaled}, // LDUR, STUR
	{0x3b200400, 0x38000400, arm64Step.loadIndexed},
	{0x3a000000, 0x28000000, arm64Step.loadPair},
	{0x3b200c00, 0x38200000, arm64Step.atomic},       // LDADD, SWP
	{0x3f000000, 0x08000000, arm64Step.exclusive},    // LDXR, STXR, LDAR, CAS
	{0x3b000000, 0x18000000, arm64Step.unknownRd},    // LDR of a literal
	{0xbe000000, 0x0c000000, arm64Step.structures},   // LD1, ST4
	{0xfc000000, 0x14000000, func(arm64Step) {}},     // B
	{0xff000010, 0x54000000, func(arm64Step) {}},     // B.cond
	{0x7c000000, 0x34000000, func(arm64Step) {}},     // TBZ, TBNZ
	{0xfc000000, 0x94000000, arm64Step.branchLink},   // BL
	{0xfefff000, 0xd63f0000, arm64Step.branchLink},   // BLR, BLRAA
	{0xfefff000, 0xd61f0000, func(arm64Step) {}},     // BR, BRAA
	{0xffe0001f, 0xd4200000, func(arm64Step) {}},     // BRK
	{0xffe00000, 0xd5200000, arm64Step.unknownRd},    // MRS, SYSL
	{0xffe00000, 0xd5000000, func(arm64Step) {}},     // MSR, SYS, barriers, hints as BTI
	{0x1f000000, 0x0e000000, arm64Step.unknownRd},    // SIMD; UMOV writes a general register
	{0x1f000000, 0x1e000000, arm64Step.unknownFlags}, // floating point; FCMP sets the flags
}

// traceARM64 follows the first instruction in code.
func traceARM64(t *trace, code []byte, addr uint64) condition {
	s := arm64Step{t, binary.LittleEndian.Uint32(code), addr}
	switch {
	case s.word&0xff000010 == 0x54000000: // B.cond
		t.branch = t.flags
		return arm64Conditions[s.word&15]
	case s.word&0x7e000000 == 0x34000000, s.word&0x7ef80000 == 0x36000000: // CBZ, CBNZ; TBZ, TBNZ of bit 0 or 32
		return s.zero()
	}
	for _, f := range arm64Forms {
		if s.word&f.mask == f.value {
			f.run(s)
			return always
		}
	}
	t.loseAll()
	return always
}

// targetARM64 returns where the indirect jump at the start of code leads.
func targetARM64(t *trace, code []byte, addr uint64) value {
	s := arm64Step{t, binary.LittleEndian.Uint32(code), addr}
	if s.field(11, 1) != 0 {
		return t.unknown() // BRAA
	}
	return s.reg(s.field(5, 5))
}

func (s arm64Step) field(at, bits uint8) uint32 { return s.word >> at & (1<<bits - 1) }

// width returns 64 or 32, by the bit that most instructions have for it.
func (s arm64Step) width() uint8 { return uint8(32 + 32*s.field(31, 1)) }

// reg returns a register: number 31 is zero.
func (s arm64Step) reg(n uint32) value {
	if n == arm64SP {
		return constant(0)
	}
	return s.regs[n]
}

func (s arm64Step) set(n uint32, v value, bits uint8) {
	if n != arm64SP {
		s.regs[n] = s.low(v, bits)
	}
}

// zero returns the condition of a branch that tests whether a register, or its bit 0, is zero.
// Without optimization, clang 15 and 16 let it test the result of CSET.
func (s arm64Step) zero() condition {
	v, c := s.reg(s.field(0, 5)), equal
	s.branch = comparison{a: s.low(v, s.width()), b: constant(0), bits: s.width(), valid: s.field(25, 1) == 0}
	if d, ok := s.decided[v.single()]; ok && s.field(31, 1) == 0 {
		s.branch, c = d.comparison, d.holds.opposite()
	}
	if s.field(24, 1) != 0 {
		return c.opposite()
	}
	return c
}

// set01 is CSET, which is CSINC of zeros under the opposite condition.
func (s arm64Step) set01() {
	v := s.upTo(1)
	s.decided[v.single()] = decision{s.flags, arm64Conditions[s.field(12, 4)^1]}
	s.set(s.field(0, 5), v, 64)
}

func (s arm64Step) unknownRd() { s.set(s.field(0, 5), s.unknown(), 64) }

func (s arm64Step) unknownFlags() {
	s.unknownRd()
	s.flags.valid = false
}

func (s arm64Step) conditional() { s.flags.valid = false }

func (s arm64Step) atomic() {
	s.unknownRd()
	s.forget()
}

// exclusive loses all registers that an instruction of the group may write.
func (s arm64Step) exclusive() {
	s.lose((1<<s.field(0, 5) | 1<<s.field(10, 5) | 1<<s.field(16, 5)) &^ (1 << arm64SP))
	s.forget()
}

// structures may change the address's register after the access.
func (s arm64Step) structures() {
	if s.field(23, 1) != 0 {
		s.regs[s.field(5, 5)] = s.unknown()
	}
	s.forget()
}

func (s arm64Step) branchLink() {
	s.call(arm64Lost, arm64Result)
}

// adr is ADR and ADRP.
func (s arm64Step) adr() {
	off := signed(uint64(s.field(5, 19)<<2|s.field(29, 2)), 21)
	to := s.addr + off
	if s.word>>31 != 0 {
		to = s.addr&^0xfff + off<<12
	}
	s.set(s.field(0, 5), constant(to), 64)
}

// sum is ADD, ADDS, SUB and SUBS of a and b. With the flags, SUBS to the zero register is CMP.
func (s arm64Step) sum(a, b value) value {
	subtract, flags := s.field(30, 1) != 0, s.field(29, 1) != 0
	scale := uint64(1)
	if subtract {
		scale = ^uint64(0)
	}
	if flags {
		if s.flags.valid = subtract; subtract {
			s.compare(a, b, s.width())
		}
	}
	return s.plus(a, b, scale)
}

func (s arm64Step) addImmediate() {
	imm := uint64(s.field(10, 12)) << (12 * s.field(22, 1))
	v := s.low(s.sum(s.regs[s.field(5, 5)], constant(imm)), s.width())
	if s.field(29, 1) == 0 {
		s.regs[s.field(0, 5)] = v // may be the stack pointer
	} else {
		s.set(s.field(0, 5), v, 64)
	}
}

func (s arm64Step) addShifted() {
	b, bits := s.reg(s.field(16, 5)), s.width()
	switch n := uint64(s.field(10, 6)); {
	case s.field(22, 2) == 0:
		b = s.plus(constant(0), b, 1<<n)
	default:
		b = s.unknown()
	}
	s.set(s.field(0, 5), s.sum(s.reg(s.field(5, 5)), b), bits)
}

// extended returns a register, extended and shifted: uxtb is 0, uxtx 3, sxtb 4, sxtx 7.
func (s arm64Step) extended(n, option, shift uint32) value {
	v, bits := s.reg(n), uint8(8)<<(option&3)
	if option < 4 {
		v = s.low(v, bits)
	} else {
		v = s.lowSigned(v, bits)
	}
	return s.plus(constant(0), v, 1<<shift)
}

func (s arm64Step) addExtended() {
	b := s.extended(s.field(16, 5), s.field(13, 3), s.field(10, 3))
	v := s.low(s.sum(s.regs[s.field(5, 5)], b), s.width())
	if s.field(29, 1) == 0 {
		s.regs[s.field(0, 5)] = v
	} else {
		s.set(s.field(0, 5), v, 64)
	}
}

func (s arm64Step) moveRegister() { s.set(s.field(0, 5), s.reg(s.field(16, 5)), s.width()) }

// andImmediate is AND, ORR, EOR and ANDS. Only masks of the lower bits are of use: those without
// rotation and of one element (Arm ARM, DecodeBitMasks).
func (s arm64Step) andImmediate() {
	op, n, r, ones := s.field(29, 2), s.field(22, 1), s.field(16, 6), s.field(10, 6)
	v := s.unknown()
	whole := n == 1 || ones < 32 // one element of 64 or 32 bits
	if (op == 0 || op == 3) && r == 0 && whole && (n == 1) == (s.width() == 64) {
		v = s.low(s.reg(s.field(5, 5)), uint8(ones+1))
	}
	if op == 3 {
		s.flags.valid = false
		s.set(s.field(0, 5), v, s.width())
		return
	}
	s.regs[s.field(0, 5)] = s.low(v, s.width()) // may be the stack pointer
}

// moveWide is MOVN, MOVZ and MOVK.
func (s arm64Step) moveWide() {
	d, shift := s.field(0, 5), 16*s.field(21, 2)
	imm := uint64(s.field(5, 16)) << shift
	v := s.unknown()
	switch old := s.reg(d); s.field(29, 2) {
	case 0:
		v = constant(^imm)
	case 2:
		v = constant(imm)
	case 3:
		if old.isConstant() {
			v = constant(old.c&^(0xffff<<shift) | imm)
		}
	}
	s.set(d, v, s.width())
}

// bitfield is SBFM, BFM and UBFM, of which SXTW, UXTB, LSL and LSR by a number are forms.
func (s arm64Step) bitfield() {
	op, bits := s.field(29, 2), s.width()
	r, last := uint8(s.field(16, 6)), uint8(s.field(10, 6))
	from := s.low(s.reg(s.field(5, 5)), bits)
	v := s.unknown()
	switch {
	case op == 0 && r == 0:
		v = s.lowSigned(from, last+1)
	case op == 2 && r == 0:
		v = s.low(from, last+1)
	case op == 2 && last+1 == r:
		v = s.plus(constant(0), from, 1<<(bits-r)) // LSL
	case op == 2 && last >= r:
		v = s.upTo(mask(last - r + 1)) // LSR, UBFX
	case op == 2: // UBFIZ
		v = s.plus(constant(0), s.low(from, last+1), 1<<(bits-r))
	}
	s.set(s.field(0, 5), v, bits)
}

// access is a load or store of one register: bits 30 and 31 have the size, 22 and 23 what it is.
func (s arm64Step) access(addr value) {
	size, op, t := uint8(8)<<s.field(30, 2), s.field(22, 2), s.field(0, 5)
	switch {
	case s.field(26, 1) != 0: // a vector
		if op&1 == 0 {
			s.store(addr, 128, s.unknown())
		}
	case op == 0:
		s.store(addr, size, s.reg(t))
	case op == 1:
		s.set(t, s.load(addr, size), 64)
	case size == 64: // PRFM
	case op == 2:
		s.set(t, s.lowSigned(s.load(addr, size), size), 64)
	default:
		s.set(t, s.lowSigned(s.load(addr, size), size), 32)
	}
}

func (s arm64Step) loadOffset() {
	scale := s.field(30, 2)
	if s.field(26, 1) != 0 && s.field(23, 1) != 0 {
		scale = 4 // 128 bits
	}
	s.access(s.plus(s.regs[s.field(5, 5)], constant(uint64(s.field(10, 12))<<scale), 1))
}

func (s arm64Step) loadUnscaled() {
	s.access(s.plus(s.regs[s.field(5, 5)], constant(signed(uint64(s.field(12, 9)), 9)), 1))
}

// loadIndexed also changes the address's register, before the access or after it.
func (s arm64Step) loadIndexed() {
	n := s.field(5, 5)
	addr := s.regs[n]
	next := s.plus(addr, constant(signed(uint64(s.field(12, 9)), 9)), 1)
	if s.field(11, 1) != 0 {
		addr = next
	}
	s.access(addr)
	s.regs[n] = next
}

func (s arm64Step) loadRegister() {
	shift := s.field(12, 1) * s.field(30, 2)
	if s.field(26, 1) != 0 && s.field(23, 1) != 0 {
		shift = 4 * s.field(12, 1)
	}
	s.access(s.plus(s.regs[s.field(5, 5)], s.extended(s.field(16, 5), s.field(13, 3), shift), 1))
}

// loadPair is LDP and STP.
func (s arm64Step) loadPair() {
	n, vector, load := s.field(5, 5), s.field(26, 1) != 0, s.field(22, 1) != 0
	bits := uint8(32) << s.field(31, 1)
	if vector {
		bits = 128
	}
	off := signed(uint64(s.field(15, 7)), 7) * uint64(bits/8)
	if vector {
		off = signed(uint64(s.field(15, 7)), 7) * uint64(4<<s.field(30, 2))
	}
	addr, mode := s.regs[n], s.field(23, 2)
	next := s.plus(addr, constant(off), 1)
	if mode != 1 {
		addr = next
	}
	second := s.plus(addr, constant(uint64(bits/8)), 1)
	for i, r := range [...]uint32{s.field(0, 5), s.field(10, 5)} {
		at := [...]value{addr, second}[i]
		switch {
		case load && vector:
		case load && s.field(30, 2) == 1: // LDPSW; bits is 32
			s.set(r, s.unknown(), 64)
		case load:
			s.set(r, s.load(at, bits), 64)
		case vector:
			s.store(at, bits, s.unknown())
		default:
			s.store(at, bits, s.reg(r))
		}
	}
	if mode == 1 || mode == 3 {
		s.regs[n] = next
	}
}
