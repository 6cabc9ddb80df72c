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
	rex       byte // the bits of REX, or those that a VEX or EVEX prefix has for them
	second    byte // the register that such a prefix names
	length    byte // and the size of vectors: 0 is 16 bytes, 1 is 32, 2 is 64
	away      bool // it has a prefix 64 or 65: FS, GS
	// mandatory is the prefix that makes another instruction of an opcode: F2, F3, or else 66.
	mandatory byte
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

// x86Other32 are the opcodes of x86OneByte that are others in code of 32 bits. 'f' is a far address.
var x86Other32 = []struct {
	kind    byte
	opcodes string
}{
	{'.', "\x06\x07\x0e\x16\x17\x1e\x1f\x27\x2f\x37\x3f\x60\x61\xce\xd6"},
	{'.', "\x40\x41\x42\x43\x44\x45\x46\x47\x48\x49\x4a\x4b\x4c\x4d\x4e\x4f"}, // INC, DEC
	{'m', "\x62\xc4\xc5"}, {'M', "\x82"}, {'f', "\x9a\xea"}, {'b', "\xd4\xd5"},
}

// follows is what follows an opcode, as a number: a constant, and perhaps ModRM.
type follows uint8

const (
	noConstant follows = iota
	constant8
	constant16
	constant24
	constant32
	constantZ
	constantV
	constantAddress
	constantFar
	constantTest8
	constantTest
	followsModRM follows = 0x10
	followsNone  follows = 0x80 // it is not an opcode
)

// x86Follows are the numbers of the letters.
var x86Follows = [256]follows{
	'm': followsModRM, 'b': constant8, 'w': constant16, 'e': constant24, 'r': constant32, 'z': constantZ, 'v': constantV, 'o': constantAddress,
	'f': constantFar, 'M': followsModRM | constant8, 'Z': followsModRM | constantZ, '3': followsModRM | constantTest8, '7': followsModRM | constantTest,
	'x': followsNone,
}

// The tables of the letters: of one byte in code of 64 bits and of 32, and of two bytes.
var x86One, x86One32, x86Two = func() (one, narrow, two [256]follows) {
	for i := range 256 {
		one[i], two[i] = x86Follows[x86OneByte[i]], x86Follows[x86TwoBytes[i]]
	}
	narrow = one
	for _, o := range x86Other32 {
		for i := range len(o.opcodes) {
			narrow[o.opcodes[i]] = x86Follows[o.kind]
		}
	}
	return one, narrow, two
}()

// x86Prefixes are the prefixes before REX, as what decode does for them.
var x86Prefixes = [256]uint8{0x26: 1, 0x36: 1, 0x3e: 1, 0x2e: 2, 0x66: 3, 0x67: 4, 0xf0: 5, 0xf2: 6, 0xf3: 6, 0x64: 7, 0x65: 7}

// DecodeX86 decodes the fields of the first instruction in code.
func DecodeX86(code []byte) (x X86, ok bool) {
	ok = x.decode(code, false)
	return x, ok
}

// DecodeI386 decodes those of an instruction of 32-bit code.
func DecodeI386(code []byte) (x X86, ok bool) {
	ok = x.decode(code, true)
	return x, ok
}

// decode decodes the first instruction in code, which is of 64 bits, or with narrow of 32.
func (x *X86) decode(code []byte, narrow bool) (ok bool) {
	at := 0
	for at < len(code) && x86Prefixes[code[at]] != 0 {
		x.prefix(code[at])
		at++
	}
	if at >= len(code) {
		return false
	}
	op := code[at]
	at++
	if op&0xf0 == 0x40 && !narrow {
		if x.REX = op; at >= len(code) {
			return false
		}
		x.rex = op & 15
		op = code[at]
		at++
	}
	if x.mandatory == 0 && x.OperandSize {
		x.mandatory = 0x66
	}
	var kind follows
	switch {
	case op == 0x0f:
		if at >= len(code) {
			return false
		}
		x.Opcode[0], x.Opcode[1], x.OpcodeSize = op, code[at], 2
		kind = x86Two[code[at]]
		at++
		if m := x.Opcode[1]; m == 0x38 || m == 0x3a {
			if at >= len(code) {
				return false
			}
			x.Opcode[2], x.OpcodeSize = code[at], 3
			at++
			if kind = followsModRM; m == 0x3a {
				kind |= constant8
			}
		}
	case (op == 0xc4 || op == 0xc5 || op == 0x62) && x.REX == 0 && (!narrow || at < len(code) && code[at]>>6 == 3):
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
		if at += size; narrow {
			x.rex, x.second = 0, x.second&7
		}
	default:
		x.Opcode[0], x.OpcodeSize = op, 1
		if kind = x86One[op]; narrow {
			kind = x86One32[op]
		}
	}
	if kind&followsNone != 0 {
		return false
	}
	if kind&followsModRM != 0 {
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
		case x.ModRM < 0xc0:
			at += operandX86(x.ModRM, code[min(at, len(code)):])
		}
	}
	size := 0
	if kind &= 15; kind != noConstant {
		size = x.constant(kind, narrow)
		at += size
	}
	if at > len(code) || at > maxX86 {
		return false
	}
	if x.Size = at; size > 0 {
		x.Immediate = constantX86(code[at-size : at])
	}
	return true
}

// maxX86 is the most bytes that an instruction has.
const maxX86 = 15

// prefix reads a prefix.
func (x *X86) prefix(b byte) {
	switch x86Prefixes[b] {
	case 1:
		x.Segment = true
	case 2:
		x.Segment, x.CS = true, true
	case 3:
		x.OperandSize, x.Last = true, b
	case 4:
		x.AddressSize = true
	case 5:
		x.Locked = true
	case 6:
		x.Repeat, x.Last, x.mandatory = true, b, b
	case 7:
		x.away = true
	}
}

// constant returns the size of a constant.
func (x *X86) constant(kind follows, narrow bool) int {
	wide := 4
	if x.OperandSize {
		wide = 2
	}
	switch kind {
	case constant8:
		return 1
	case constant16:
		return 2
	case constant24:
		return 3
	case constant32:
		if narrow {
			return wide
		}
		return 4
	case constantZ:
		return wide
	case constantV:
		if x.REX&8 != 0 {
			return 8
		}
		return wide
	case constantFar:
		return wide + 2
	case constantAddress:
		switch {
		case x.AddressSize && narrow:
			return 2
		case x.AddressSize || narrow:
			return 4
		}
		return 8
	}
	switch { // TEST, or what has none
	case x.Reg() > 1:
		return 0
	case kind == constantTest8:
		return 1
	}
	return wide
}

// x86Mandatory are the prefixes that VEX has in two bits.
var x86Mandatory = [4]byte{0, 0x66, 0xf3, 0xf2}

// vex reads what follows the first byte of a VEX or EVEX prefix, op, and the opcode. It returns what follows that.
func (x *X86) vex(op byte, rest []byte) follows {
	x.VEX, x.OpcodeSize = true, 1
	x.Map, x.rex = 1, ^rest[0]>>5&4
	last := rest[0] // with the second register, the size of vectors, and a prefix
	x.Opcode[0] = rest[1]
	switch op {
	case 0xc4:
		last, x.Opcode[0] = rest[1], rest[2]
		x.Map, x.rex = rest[0]&0x1f, ^rest[0]>>5|last>>4&8
	case 0x62:
		last, x.Opcode[0], x.EVEX = rest[1], rest[3], true
		x.Map, x.rex = rest[0]&7, ^rest[0]>>5|last>>4&8
	}
	x.second, x.length, x.mandatory = ^last>>3&15, last>>2&1, x86Mandatory[last&3]
	if x.EVEX {
		x.length = rest[2] >> 5 & 3
	}
	switch x.Map {
	case 1:
		return x86Two[x.Opcode[0]]
	case 3:
		return followsModRM | constant8
	}
	return followsModRM
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
	size := [...]int{0, 1, 4, 0}[mod]
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
