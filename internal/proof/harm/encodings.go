package harm

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/bpfprologue/bpfprologue/internal/insn"
)

// Seed chooses what tests run where nobody asks for other encodings: the same on all days.
const Seed uint64 = 329

// form is a ModRM byte and what follows it: each way in which an operand is addressed that uprobes treat by itself.
type form struct {
	name string
	// code writes ModRM, SIB and displacement for the middle bits reg. base is the number of a register that has an address.
	code func(reg, base byte) []byte
}

var forms = []form{
	{"register", func(reg, base byte) []byte { return []byte{0xc0 | reg<<3 | base} }},
	{"memory", func(reg, _ byte) []byte { return []byte{0x03 | reg<<3} }},                                   // (%rbx)
	{"relative", func(reg, _ byte) []byte { return append([]byte{0x05 | reg<<3}, 0xe0, 0x10, 0x00, 0x10) }}, // to the data
	{"stack", func(reg, _ byte) []byte { return []byte{0x44 | reg<<3, 0x24, 0xf0} }},                        // -16(%rsp)
	{"indexed", func(reg, _ byte) []byte { return []byte{0x44 | reg<<3, 0x4d, 0x08} }},                      // 8(%rbp,%rcx,2)
}

// prefixes of an opcode, in front of its escape bytes.
var prefixes = [][]byte{
	{}, {0x66}, {0xf2}, {0xf3}, {0x48}, {0x41}, {0x44}, {0x49}, {0x4d}, {0x66, 0x48}, {0x66, 0x41}, {0xf2, 0x48}, {0xf3, 0x48}, {0xf3, 0x41}, {0xf2, 0x41}, {0x67}, {0x64},
	{0x66, 0xf2}, {0x66, 0xf3}, {0x2e}, {0x3e}, {0xf0}, {0xf2, 0x2e}, {0x66, 0x66}, {0x66, 0x2e},
}

// maps are escape bytes.
var maps = [][]byte{{}, {0x0f}, {0x0f, 0x38}, {0x0f, 0x3a}}

// Encodings returns about n instructions of amd64: opcodes of all maps with all prefixes, and VEX and EVEX ones, with operands in
// registers and in memory. The same seed gives the same ones. n of 0 gives all that this knows: 1.3 million.
func Encodings(n int, seed uint64) (out [][]byte) {
	r := rand.New(rand.NewPCG(seed, 0))
	add := func(head []byte, opcode byte, tail []byte) {
		code := append(append(append([]byte{}, head...), opcode), tail...)
		// A constant of whatever size: small, so that a jump stays in its slot.
		full := append(append([]byte{}, code...), 0x08, 0, 0, 0, 0, 0, 0, 0)
		if x, ok := insn.DecodeX86(full); ok && x.Size >= len(head)+1 {
			out = append(out, full[:x.Size])
		}
	}
	for _, p := range prefixes {
		for _, m := range maps {
			head := append(append([]byte{}, p...), m...)
			for opcode := range 256 {
				if len(m) == 0 && isPrefix(byte(opcode)) {
					continue
				}
				x, ok := insn.DecodeX86(append(append(append([]byte{}, head...), byte(opcode)), make([]byte, 12)...))
				if !ok {
					continue
				}
				if !x.HasModRM() {
					add(head, byte(opcode), nil)
					continue
				}
				for reg := range byte(8) {
					for _, f := range forms {
						add(head, byte(opcode), f.code(reg, 6))
					}
				}
			}
		}
	}
	for opcode := range 256 {
		for reg := range byte(8) {
			for _, f := range forms {
				tail := f.code(reg, 6)
				for pp := range byte(4) {
					for l := range byte(2) {
						other := []byte{0, 0x0f, 0x06}[r.IntN(3)] << 3 // inverted
						add([]byte{0xc5, 0x80 | other | l<<2 | pp}, byte(opcode), tail)
						for m := byte(1); m <= 3; m++ {
							add([]byte{0xc4, 0xe0 | m, byte(r.IntN(2))<<7 | other | l<<2 | pp}, byte(opcode), tail)
						}
					}
					for _, m := range []byte{1, 2, 3, 5, 6} {
						other := []byte{0x0f, 0x06}[r.IntN(2)] << 3
						w, l, k := byte(r.IntN(2)), byte(r.IntN(3)), []byte{0, 0, 1, 3}[r.IntN(4)]
						add([]byte{0x62, 0xf0 | m, w<<7 | other | 4 | pp, l<<5 | 8 | k}, byte(opcode), tail)
					}
				}
			}
		}
	}
	if n == 0 || n >= len(out) {
		return out
	}
	r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out[:n]
}

func isPrefix(b byte) bool {
	switch b {
	case 0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65, 0x66, 0x67, 0xf0, 0xf2, 0xf3, 0x0f, 0xc4, 0xc5, 0x62:
		return true
	}
	return b&0xf0 == 0x40
}

func slotAMD64(code []byte, _, leave uint64) []byte {
	out := make([]byte, 0, slotSize)
	out = append(out, code...)
	// Each PUSH that runs changes the stack.
	for len(out) < slotSize-14 {
		out = append(out, 0x90)
	}
	if x, ok := insn.DecodeX86(code); ok {
		if _, jumps := x.Branch(); jumps || !x.VEX && x.OpcodeSize == 1 && x.Opcode[0] == 0xe8 {
			for i := len(code); i < slotSize-14; i++ {
				out[i] = 0x57 // push %rdi
			}
		}
	}
	out = append(out, 0xff, 0x25, 0, 0, 0, 0) // jmp *0(%rip)
	return binary.LittleEndian.AppendUint64(out, leave)
}

// known has instructions that probes were seen to harm, or that a kernel treats by themselves.
var known = []string{
	"\x0f\x1f\x44\x00\x00", "\x66\x90", "\x90", "\x48\x90", "\x49\x90", "\x41\x90", "\x4d\x90", "\xf3\x90", "\x9c", "\x66\x9c", "\x48\x9c", "\x9d", "\xcc",
	"\x0f\x05", "\xf3\x0f\x2b\x05\xe0\x10\x00\x10", "\xf2\x0f\x2b\x0d\xe0\x10\x00\x10", "\xf2\x0f\x45\x05\xe0\x10\x00\x10", "\xf3\x0f\x99\x05\xe0\x10\x00\x10",
	"\xc5\xf8\x77", "\xc5\xfc\x77", "\x62\xf2\x7d\x48\x77\xc1", "\x62\xf2\xfd\x48\x77\xc1", "\xc5\xf9\xeb\xd1", "\xc5\xf9\x70\xda\x00", "\xc4\xe1\xf9\x7e\xd8",
	"\xc5\xfd\x74\xc1", "\xc5\xd9\xe8\xe4", "\xc5\xf0\xc2\xd1\x00", "\xc4\xe2\x79\x9d\xe1", "\xf3\x48\xab", "\xf3\xa4", "\xf2\xae", "\xf3\xa6", "\x48\xab",
	"\xf3\x0f\x1e\xfa", "\xe8\x08\x00\x00\x00", "\xeb\x04", "\xe9\x04\x00\x00\x00", "\x74\x04", "\x75\x04", "\x0f\x84\x04\x00\x00\x00", "\xe2\x04", "\xe3\x04",
	// Others of five bytes that do nothing.
	"\x66\x0f\x1f\x40\x00", "\x67\x0f\x1f\x40\x00", "\x48\x0f\x1f\x40\x00", "\x41\x0f\x1f\x40\x00", "\x66\x66\x66\x66\x90", "\x48\x8d\x64\x24\x00", "\xe9\x00\x00\x00\x00",
	"\x0f\x1f\x44\x20\x08", "\x0f\x1f\x4c\x00\x00", "\x66\x66\x0f\x1f\x00", "\x66\x66\x0f\x1f\xc0", "\x66\x66\x66\x89\xc0", "\x66\x66\x48\x89\xc0", "\x66\x66\x66\x87\xc0",
	"\x66\x66\x66\xeb\x00", "\x0f\x0d\x44\x00\x00", "\x0f\x18\x44\x00\x00", "\x0f\x19\x44\x00\x00", "\x64\x0f\x1f\x40\x00", "\x65\x0f\x1f\x40\x00", "\x66\x66\x66\x48\x90",
	"\x66\x66\xf3\x66\x90", "\xf2\x0f\x1f\x40\x00", "\xf3\x0f\x1f\x40\x00", "\x66\x66\x66\x41\x90", "\x66\x8d\x64\x24\x00", "\x67\x8d\x64\x24\x00", "\x48\x8d\x74\x26\x00",
	"\x48\x8d\x44\x20\x00", "\x66\x48\x8d\x40\x00", "\x66\x66\x8d\x40\x00", "\x48\x8d\x40\x00\x90",
	"\xc4\xe2\x01\x8e\x54\x4d\x08", "\x62\xf2\xfd\x48\x1f\xc1",
	"\xf3\x48\x0f\xc7\xfe", "\xf3\x41\x0f\xc7\xfe", // RDPID
	// Gathers and scatters that fault in their middle.
	"\x62\xf2\x7d\x2b\x92\x5c\x4d\x08", "\x62\xf2\x7d\x0b\x92\x74\x4d\x08", "\x62\xf2\x7d\x4b\xa0\x54\x4d\x08", "\x62\xf2\x7d\x09\xa0\x5c\x4d\x08",
	"\x62\xf2\x7d\x29\xa2\x4c\x4d\x08", "\x62\xf2\xfd\x49\xa2\x54\x4d\x08", "\x62\xf2\xfd\x49\xa2\x64\x4d\x08",
	"\x55", "\x54", "\x41\x54", "\x5c", "\x8e\xd8", "\x66\x0f\x1f\x44\x00\x00", "\x0f\x1f\x40\x00", "\x0f\x1f\x80\x00\x00\x00\x00", "\x66\x0f\x1f\x84\x00\x00\x00\x00\x00",
}

// Codes returns what Known and Encodings do, for an architecture.
func Codes(arch string, n int, seed uint64) [][]byte {
	if arch == "arm64" {
		return append(KnownARM64(), EncodingsARM64(n, seed)...)
	}
	return append(Known(), Encodings(n, seed)...)
}

// Known returns them.
func Known() (out [][]byte) {
	for _, code := range known {
		out = append(out, []byte(code))
	}
	return out
}
