package insn_test

import (
	"debug/elf"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/insn"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

// TestFields: the fields of instructions, as objdump and the SDM have them.
func TestFields(t *testing.T) {
	for code, want := range map[string]insn.X86{
		"c3":                   {Size: 1, Opcode: [3]byte{0xc3}, OpcodeSize: 1},
		"4157":                 {Size: 2, Opcode: [3]byte{0x57}, OpcodeSize: 1, REX: 0x41}, // push %r15
		"74fe":                 {Size: 2, Opcode: [3]byte{0x74}, OpcodeSize: 1, Immediate: -2},
		"0f85f2ffffff":         {Size: 6, Opcode: [3]byte{0x0f, 0x85}, OpcodeSize: 2, Immediate: -14},
		"66e9f2ffffff":         {Size: 6, Opcode: [3]byte{0xe9}, OpcodeSize: 1, OperandSize: true, Immediate: -14}, // as Intel has it
		"48b8efcdab8967452301": {Size: 10, Opcode: [3]byte{0xb8}, OpcodeSize: 1, REX: 0x48, Immediate: 0x0123456789abcdef},
		"66b83412":             {Size: 4, Opcode: [3]byte{0xb8}, OpcodeSize: 1, OperandSize: true, Immediate: 0x1234},
		"48a1efcdab8967452301": {Size: 10, Opcode: [3]byte{0xa1}, OpcodeSize: 1, REX: 0x48, Immediate: 0x0123456789abcdef}, // movabs
		"c8100001":             {Size: 4, Opcode: [3]byte{0xc8}, OpcodeSize: 1},                                            // enter $16, $1
		"c20800":               {Size: 3, Opcode: [3]byte{0xc2}, OpcodeSize: 1, Immediate: 8},                              // ret $8
		"f6042501000000ff":     {Size: 8, Opcode: [3]byte{0xf6}, OpcodeSize: 1, ModRM: 0x04, Immediate: -1},                // testb $-1, 1
		"f6d8":                 {Size: 2, Opcode: [3]byte{0xf6}, OpcodeSize: 1, ModRM: 0xd8},                               // neg %al
		"66f7c03412":           {Size: 5, Opcode: [3]byte{0xf7}, OpcodeSize: 1, ModRM: 0xc0, OperandSize: true, Immediate: 0x1234},
		"f0ff05f2ffffff":       {Size: 7, Opcode: [3]byte{0xff}, OpcodeSize: 1, ModRM: 0x05, Locked: true}, // lock incl -14(%rip)
		"2e0f1f840000000000":   {Size: 9, Opcode: [3]byte{0x0f, 0x1f}, OpcodeSize: 2, ModRM: 0x84, Segment: true, CS: true},
		"3e7500":               {Size: 3, Opcode: [3]byte{0x75}, OpcodeSize: 1, Segment: true},
		"67e300":               {Size: 3, Opcode: [3]byte{0xe3}, OpcodeSize: 1, AddressSize: true}, // jecxz
		"0f20d8":               {Size: 3, Opcode: [3]byte{0x0f, 0x20}, OpcodeSize: 2, ModRM: 0xd8}, // mov %cr3, %rax
		"0f2018":               {Size: 3, Opcode: [3]byte{0x0f, 0x20}, OpcodeSize: 2, ModRM: 0x18}, // the same
		"660f3840c1":           {Size: 5, Opcode: [3]byte{0x0f, 0x38, 0x40}, OpcodeSize: 3, ModRM: 0xc1, OperandSize: true},
		"660f3a0fc108":         {Size: 6, Opcode: [3]byte{0x0f, 0x3a, 0x0f}, OpcodeSize: 3, ModRM: 0xc1, OperandSize: true, Immediate: 8},
		"c5f877":               {Size: 3, Opcode: [3]byte{0x77}, OpcodeSize: 1, VEX: true},                               // vzeroupper
		"c4e2f9f7c9":           {Size: 5, Opcode: [3]byte{0xf7}, OpcodeSize: 1, ModRM: 0xc9, VEX: true},                  // shlx
		"c4e3fbf0c805":         {Size: 6, Opcode: [3]byte{0xf0}, OpcodeSize: 1, ModRM: 0xc8, VEX: true, Immediate: 5},    // rorx
		"62f36d4825d996":       {Size: 7, Opcode: [3]byte{0x25}, OpcodeSize: 1, ModRM: 0xd9, VEX: true, Immediate: -106}, // vpternlogd
	} {
		if code == "c8100001" {
			want.Immediate = 0 // three bytes are no number
		}
		got, ok := insn.DecodeX86(dwarftest.Hex(t, code+"909090"))
		type fields struct {
			size, opcodes          int
			opcode                 [3]byte
			modrm, rex             byte
			vex, wide, short, lock bool
			segment, cs            bool
			immediate              int64
		}
		of := func(x insn.X86) fields {
			return fields{x.Size, x.OpcodeSize, x.Opcode, x.ModRM, x.REX, x.VEX, x.OperandSize, x.AddressSize, x.Locked, x.Segment, x.CS, x.Immediate}
		}
		if !ok || of(got) != of(want) {
			t.Errorf("%s: %+v (%v), want %+v", code, got, ok, want)
		}
		if whole := dwarftest.Hex(t, code); ok {
			for n := range whole {
				if x, ok := insn.DecodeX86(whole[:n]); ok {
					t.Errorf("the first %d bytes of %s decode: %+v", n, code, x)
				}
			}
		}
	}
	for _, code := range []string{"06", "d5", "0f04", "62", "ea0000000000", "6666666666666666666666666666666690"} {
		if x, ok := insn.DecodeX86(dwarftest.Hex(t, code)); ok {
			t.Errorf("%s decodes: %+v", code, x)
		}
	}
}

// TestFieldsOfImages: the sizes and branches of all code of the test images are those that the
// disassembler finds.
func TestFieldsOfImages(t *testing.T) {
	n := 0
	for _, name := range fixtures.Names() {
		img := testenv.Fixture(t, name)
		if img.Arch().Machine != elf.EM_X86_64 || inside.File(img).IsRelocatable() {
			continue
		}
		for _, s := range inside.File(img).Sections() {
			if code, err := inside.File(img).Bytes(s.Addr, s.Size); err == nil && s.Exec {
				n += compareFields(t, name, code)
			}
		}
	}
	if n < 1000 {
		t.Errorf("only %d instructions", n)
	}
}

func compareFields(t *testing.T, name string, code []byte) (n int) {
	t.Helper()
	for at := 0; at < len(code); n++ {
		x, ok := insn.DecodeX86(code[at:])
		in, known := insn.For("amd64").Next(code[at:])
		to, branches := x.Branch()
		if known && (!ok || x.Size != in.Size || branches != in.Branches || branches && to != in.Target) {
			t.Errorf("%s: % x: %+v, want %+v", name, code[at:min(at+15, len(code))], x, in)
		}
		at += max(x.Size, 1)
	}
	return n
}
