package insn

import "encoding/binary"

// X86 is an instruction of amd64 by the fields of its encoding, as the kernel's own decoder has
// them (arch/x86/lib/insn.c): what kprobes and uprobes ask about an instruction is in these terms.
// Decoding them takes a tenth of the time of a disassembly.
type X86 struct {
	Size int
	// Opcode has OpcodeSize bytes. With a VEX or EVEX prefix it has one, whatever its map is.
	Opcode     [3]byte
	OpcodeSize int
	ModRM      byte // or 0
	REX        byte // or 0
	VEX, EVEX  bool // EVEX is VEX too
	Map        byte // of opcodes, with such a prefix
	// OperandSize, AddressSize and Locked say that the instruction has a prefix 66, 67 or F0, and
	// Segment that it has one of a segment that 64-bit programs do not use: 26, 2E, 36 or 3E. CS is
	// 2E alone.
	OperandSize, AddressSize, Locked, Segment, CS bool
	// Repeat says that it has a prefix F2 or F3, and Last is the last of 66, F2 and F3, or 0.
	Repeat bool
	Last   byte
	// Immediate is the constant, sign-extended: of a relative branch its distance from what follows.
	Immediate int64
	hasModRM  bool
	after     int  // ModRM: the offset of what follows it
	high      byte // bit 3 of the base register's number, by a VEX or EVEX prefix
}

// HasModRM reports whether a ModRM byte follows the opcode.
func (x *X86) HasModRM() bool { return x.hasModRM }

// Relative reports whether its operand is in memory at an address relative to the instruction.
func (x *X86) Relative() bool { return x.hasModRM && x.ModRM&0xc7 == 0x05 }

// Reg returns the middle three bits of ModRM.
func (x *X86) Reg() byte { return x.ModRM >> 3 & 7 }

// Branch reports whether it is a relative jump, conditional or not, and to where from its beginning.
// Calls are not.
func (x *X86) Branch() (to int64, ok bool) {
	switch op := x.Opcode[0]; {
	case x.VEX:
		return 0, false
	case x.OpcodeSize == 1 && (op&0xf0 == 0x70 || op >= 0xe0 && op <= 0xe3 || op == 0xe9 || op == 0xeb):
	case x.OpcodeSize == 2 && x.Opcode[1]&0xf0 == 0x80:
	default:
		return 0, false
	}
	return int64(x.Size) + x.Immediate, true
}

// What follows an opcode, one letter for each: 'm' ModRM; 'b', 'w', 'z', 'v' and 'r' a constant of
// 1 byte, of 2, of 4 or with the prefix 66 of 2, of 8 with REX.W, of 4 always; 'M' and 'Z' ModRM
// and then 'b' or 'z'; '3' and '7' ModRM and, for TEST, 'b' or 'z'; 'e' 3 bytes (ENTER); 'o' an
// address; '.' nothing; 'x' that it is not an opcode. (Intel SDM, volume 2, appendix A.)
const (
	x86OneByte = "mmmmbzxxmmmmbzxx" + // 00
		"mmmmbzxxmmmmbzxx" + // 10
		"mmmmbzxxmmmmbzxx" + // 20
		"mmmmbzxxmmmmbzxx" + // 30
		"xxxxxxxxxxxxxxxx" + // 40: REX
		"................" + // 50
		"xxxmxxxxzZbM...." + // 60
		"bbbbbbbbbbbbbbbb" + // 70
		"MZxMmmmmmmmmmmmm" + // 80
		"..........x....." + // 90
		"oooo....bz......" + // a0
		"bbbbbbbbvvvvvvvv" + // b0
		"MMw.xxMZe.w..bx." + // c0
		"mmmmxxx.mmmmmmmm" + // d0
		"bbbbbbbbrrxb...." + // e0
		"x.xx..37......mm" //   f0
	x86TwoBytes = "mmmmx.....x.xm.M" + // 00
		"mmmmmmmmmmmmmmmm" + // 10
		"mmmmxxxxmmmmmmmm" + // 20
		"......x.xxxxxxxx" + // 30
		"mmmmmmmmmmmmmmmm" + // 40
		"mmmmmmmmmmmmmmmm" + // 50
		"mmmmmmmmmmmmmmmm" + // 60
		"MMMMmmm.mmxxmmmm" + // 70
		"rrrrrrrrrrrrrrrr" + // 80
		"mmmmmmmmmmmmmmmm" + // 90
		"...mMmmm...mMmmm" + // a0
		"mmmmmmmmmmMmmmmm" + // b0
		"mmMmMMMm........" + // c0
		"mmmmmmmmmmmmmmmm" + // d0
		"mmmmmmmmmmmmmmmm" + // e0
		"mmmmmmmmmmmmmmmm" //   f0
)

// x86OneByte32 has the opcodes of x86OneByte that are others in code of 32 bits. 'f' is a far address.
var x86OneByte32 = func() string {
	t := []byte(x86OneByte)
	for kind, opcodes := range map[byte]string{
		'.': "\x06\x07\x0e\x16\x17\x1e\x1f\x27\x2f\x37\x3f\x60\x61\xce\xd6", 'm': "\x62\xc4\xc5", 'M': "\x82", 'f': "\x9a\xea", 'b': "\xd4\xd5",
	} {
		for i := range len(opcodes) {
			t[opcodes[i]] = kind
		}
	}
	for i := 0x40; i < 0x50; i++ {
		t[i] = '.' // INC, DEC
	}
	return string(t)
}()

// DecodeX86 decodes the fields of the first instruction in code.
func DecodeX86(code []byte) (x X86, ok bool) {
	ok = x.decode(code, false)
	return x, ok
}

// decode decodes the first instruction in code, which is of 64 bits, or with narrow of 32.
func (x *X86) decode(code []byte, narrow bool) (ok bool) {
	at := x.prefixes(code)
	if at >= len(code) {
		return false
	}
	op := code[at]
	at++
	if op&0xf0 == 0x40 && !narrow {
		if x.REX = op; at >= len(code) {
			return false
		}
		op = code[at]
		at++
	}
	var kind byte
	switch {
	case x.REX == 0 && (op == 0xc4 || op == 0xc5 || op == 0x62) && (!narrow || at < len(code) && code[at]>>6 == 3):
		size := 2 // with the opcode
		switch op {
		case 0xc4:
			size = 3
		case 0x62:
			size = 4
		}
		if len(code)-at < size {
			return false
		}
		kind = x.vex(op, code[at:])
		at += size
	case op != 0x0f:
		x.Opcode[0], x.OpcodeSize = op, 1
		if kind = x86OneByte[op]; narrow {
			kind = x86OneByte32[op]
		}
	default:
		if at >= len(code) {
			return false
		}
		x.Opcode[0], x.Opcode[1], x.OpcodeSize = op, code[at], 2
		kind = x86TwoBytes[code[at]]
		at++
		if m := x.Opcode[1]; m == 0x38 || m == 0x3a {
			if at >= len(code) {
				return false
			}
			x.Opcode[2], x.OpcodeSize = code[at], 3
			at++
			if kind = 'm'; m == 0x3a {
				kind = 'M'
			}
		}
	}
	size := 0 // of the constant
	switch kind {
	case 'x':
		return false
	case 'm', 'M', 'Z', '3', '7':
		if at >= len(code) {
			return false
		}
		x.ModRM, x.hasModRM = code[at], true
		at++
		x.after = at
		switch {
		case x.Opcode[0] == 0x0f && x.Opcode[1]&0xfc == 0x20 && !x.VEX: // MOV to and from control registers: its operand is a register
		case narrow && x.AddressSize:
			at += operandX86Short(x.ModRM)
		default:
			at += operandX86(x.ModRM, code[min(at, len(code)):])
		}
	}
	wide := 4
	if x.OperandSize {
		wide = 2
	}
	switch kind {
	case 'b', 'M':
		size = 1
	case 'w':
		size = 2
	case 'e':
		size = 3
	case 'r':
		if size = 4; narrow {
			size = wide
		}
	case 'z', 'Z':
		size = wide
	case 'v':
		if size = wide; x.REX&8 != 0 {
			size = 8
		}
	case 'f':
		size = wide + 2
	case 'o':
		if size = 8; x.AddressSize || narrow {
			size = 4
		}
		if x.AddressSize && narrow {
			size = 2
		}
	case '3', '7':
		switch {
		case x.Reg() > 1: // not TEST
		case kind == '3':
			size = 1
		default:
			size = wide
		}
	}
	at += size
	if at > len(code) || at > maxX86 {
		return false
	}
	x.Size, x.Immediate = at, constantX86(code[at-size:at])
	return true
}

// maxX86 is the most bytes that an instruction has.
const maxX86 = 15

// prefixes reads the prefixes before REX, and returns how many there are.
func (x *X86) prefixes(code []byte) int {
	for i, b := range code {
		switch b {
		case 0x2e:
			x.Segment, x.CS = true, true
		case 0x26, 0x36, 0x3e:
			x.Segment = true
		case 0x66:
			x.OperandSize, x.Last = true, b
		case 0x67:
			x.AddressSize = true
		case 0xf0:
			x.Locked = true
		case 0xf2, 0xf3:
			x.Repeat, x.Last = true, b
		case 0x64, 0x65:
		default:
			return i
		}
	}
	return len(code)
}

// vex reads what follows the first byte of a VEX or EVEX prefix, op, and the opcode. It returns what follows that.
func (x *X86) vex(op byte, rest []byte) (kind byte) {
	x.VEX, x.OpcodeSize = true, 1
	opcodes := byte(1)
	switch op {
	case 0xc4:
		opcodes, x.high = rest[0]&0x1f, ^rest[0]>>5&1
		rest = rest[1:]
	case 0x62:
		opcodes, x.high, x.EVEX = rest[0]&7, ^rest[0]>>5&1, true
		rest = rest[2:]
	}
	x.Opcode[0], x.Map = rest[1], opcodes
	switch opcodes {
	case 1:
		return x86TwoBytes[x.Opcode[0]]
	case 3:
		return 'M'
	}
	return 'm'
}

// operandX86Short returns the bytes of displacement that follow a ModRM byte with addresses of 16 bits.
func operandX86Short(modrm byte) int {
	mod, rm := modrm>>6, modrm&7
	switch {
	case mod == 0 && rm == 6, mod == 2:
		return 2
	case mod == 1:
		return 1
	}
	return 0
}

// operandX86 returns the bytes of SIB and displacement that follow a ModRM byte.
func operandX86(modrm byte, after []byte) int {
	mod, rm := modrm>>6, modrm&7
	if mod == 3 {
		return 0
	}
	size := [...]int{0, 1, 4}[mod]
	base := rm
	if rm == 4 {
		if len(after) == 0 {
			return maxX86
		}
		size++
		base = after[0] & 7
	}
	if mod == 0 && base == 5 {
		size += 4
	}
	return size
}

func constantX86(d []byte) int64 {
	switch len(d) {
	case 1:
		return int64(int8(d[0]))
	case 2:
		return int64(int16(binary.LittleEndian.Uint16(d)))
	case 4:
		return int64(int32(binary.LittleEndian.Uint32(d)))
	case 8:
		return int64(binary.LittleEndian.Uint64(d))
	}
	return 0
}
