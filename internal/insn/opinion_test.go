package insn

import (
	"debug/elf"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/arch/arm64/arm64asm"
	"golang.org/x/arch/x86/x86asm"
)

// opinion is what another decoder says of an instruction: registers by their DWARF numbers that its text names as sources or as parts of an
// address, and the one that stands first.
type opinion struct {
	reads       Registers
	first       int // or -1
	sets        bool
	stores      bool // its first operand is memory that it sets
	knows, same bool // the operands are the same register
}

// x86Sets are operations that set their first operand, without reading it.
var x86Sets = map[x86asm.Op]bool{x86asm.MOV: true, x86asm.MOVZX: true, x86asm.MOVSX: true, x86asm.MOVSXD: true, x86asm.LEA: true, x86asm.SETE: true, x86asm.SETNE: true}

// x86Changes are operations that change it.
var x86Changes = map[x86asm.Op]bool{x86asm.ADD: true, x86asm.SUB: true, x86asm.AND: true, x86asm.OR: true, x86asm.XOR: true, x86asm.SHL: true, x86asm.SHR: true,
	x86asm.INC: true, x86asm.DEC: true, x86asm.NEG: true, x86asm.NOT: true, x86asm.SAR: true, x86asm.IMUL: true, x86asm.CMOVE: true, x86asm.CMOVNE: true, x86asm.XADD: true}

func opinionX86(code []byte) (o opinion) {
	inst, err := x86asm.Decode(code, 64)
	if err != nil || inst.Op == 0 || inst.Len != len(code) || inst.Op == x86asm.NOP {
		return o
	}
	numbers := [16]int{0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15}
	number := func(r x86asm.Reg) int {
		for _, first := range [...]x86asm.Reg{x86asm.AX, x86asm.EAX, x86asm.RAX} {
			if r >= first && r < first+16 {
				return numbers[r-first]
			}
		}
		switch {
		case r >= x86asm.AL && r <= x86asm.BL:
			return numbers[r-x86asm.AL]
		case r >= x86asm.AH && r <= x86asm.BH:
			return numbers[r-x86asm.AH]
		case r >= x86asm.SPB && r <= x86asm.R15B:
			return numbers[4+r-x86asm.SPB]
		}
		return -1
	}
	o.first, o.knows = -1, true
	for i, a := range inst.Args {
		switch a := a.(type) {
		case x86asm.Reg:
			if n := number(a); n >= 0 && i == 0 {
				o.first = n
			} else if n >= 0 {
				o.reads |= 1 << n
			}
		case x86asm.Mem:
			for _, r := range [...]x86asm.Reg{a.Base, a.Index} {
				if n := number(r); r != 0 && n >= 0 {
					o.reads |= 1 << n
				}
			}
			o.stores = o.stores || i == 0 && (x86Sets[inst.Op] || x86Changes[inst.Op])
		}
	}
	o.same = inst.Args[0] == inst.Args[1]
	o.sets = x86Sets[inst.Op] || x86Changes[inst.Op] && inst.Op != x86asm.IMUL || inst.Op == x86asm.IMUL && inst.Args[1] != nil
	return o
}

// arm64Sets are operations that set their first operand.
var arm64Sets = map[arm64asm.Op]bool{arm64asm.ADD: true, arm64asm.SUB: true, arm64asm.MOV: true, arm64asm.AND: true, arm64asm.ORR: true, arm64asm.EOR: true,
	arm64asm.LDR: true, arm64asm.LDRB: true, arm64asm.LDRH: true, arm64asm.LDRSW: true, arm64asm.ADRP: true, arm64asm.ADR: true, arm64asm.LSL: true, arm64asm.LSR: true,
	arm64asm.UBFX: true, arm64asm.SXTW: true, arm64asm.MADD: true, arm64asm.MUL: true, arm64asm.CSEL: true, arm64asm.CSET: true, arm64asm.LDP: true, arm64asm.MRS: true}

func opinionARM64(code []byte) (o opinion) {
	inst, err := arm64asm.Decode(code)
	if err != nil {
		return o
	}
	number := func(a arm64asm.Arg) int {
		var n int
		switch r := a.(type) {
		case arm64asm.Reg:
			if r > arm64asm.WZR && r < arm64asm.X0 || r > arm64asm.XZR {
				return -1
			}
			n = int(r)
		case arm64asm.RegSP:
			n = int(r)
		default:
			return -1
		}
		if n >= int(arm64asm.X0) {
			n -= int(arm64asm.X0)
		}
		if n > 30 {
			return -1
		}
		return n
	}
	o.first, o.knows = -1, true
	for i, a := range inst.Args {
		n := number(a)
		switch {
		case i == 0:
			o.first = n
		case n >= 0 && (i != 1 || inst.Op != arm64asm.LDP):
			o.reads |= 1 << n
		}
		switch m := a.(type) {
		case arm64asm.MemImmediate:
			if n := number(m.Base); n >= 0 {
				o.reads |= 1 << n
			}
		case arm64asm.MemExtend:
			if n := number(m.Base); n >= 0 {
				o.reads |= 1 << n
			}
			if n := number(m.Index); n >= 0 {
				o.reads |= 1 << n
			}
		}
	}
	o.sets = arm64Sets[inst.Op]
	return o
}

// TestSecondOpinion compares which registers instructions read and write, and whether they write memory, with the operands that the
// decoders of golang.org/x/arch print.
func TestSecondOpinion(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	arm64Kernel, _ := filepath.Glob(filepath.FromSlash("../../bench/.cache/arm64/vmlinux-*"))
	for _, tt := range []struct {
		arch  *Arch
		name  string
		files []string
		of    func(code []byte) opinion
	}{
		{amd64(), "amd64", []string{self, "/lib/x86_64-linux-gnu/libc.so.6"}, opinionX86},
		{arm64(), "arm64", arm64Kernel, opinionARM64},
	} {
		for _, path := range tt.files {
			f, err := elf.Open(path)
			if err != nil || f.Machine != map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[tt.name] {
				continue
			}
			defer f.Close()
			code, err := f.Section(".text").Data()
			if err != nil {
				t.Fatal(err)
			}
			const most = 2 << 20 // bytes
			compared, wrong := 0, 0
			for at := 0; at < min(len(code), most) && wrong < 20; {
				in, ok := tt.arch.Next(code[at:])
				if !ok {
					at += tt.arch.Stride()
					continue
				}
				text := code[at : at+in.Size]
				at += in.Size
				reads, w, known := tt.arch.Accesses(text)
				o := tt.of(text)
				if !known || !o.knows || in.Nop {
					continue
				}
				compared++
				changed := o.first < 0 || !o.sets || w.Registers.Has(uint64(o.first))
				named := o.first < 0 || (reads | w.Registers).Has(uint64(o.first))
				if o.reads&^(reads|w.Registers) != 0 || !changed || !named || o.stores && !w.Memory || o.sets && o.reads&^reads != 0 && !o.same {
					wrong++
					t.Errorf("%s: % x: reads %#x, writes %+v; the operands are %+v", tt.name, text, reads, w, o)
				}
			}
			if compared < 50000 {
				t.Errorf("%s: only %d instructions of %s", tt.name, compared, path)
			}
			t.Logf("%s: %d instructions", path, compared)
		}
	}
}
