package image

import (
	"debug/elf"
	"encoding/binary"
	"strings"

	"github.com/bpfprologue/bpfprologue/internal/bin"
)

// Stubs returns the stubs through which the file calls functions of others that are wanted, by link-time address, with their names. Code calls a stub of the procedure linkage table,
// which jumps to where a slot says, and the loader writes there where the function is (System V ABI, AMD64 Architecture Processor Supplement, 5.2; PLT of AArch64: the same
// with adrp and ldr). No symbol names a stub. It knows those of x86-64 and of little-endian AArch64.
func (f *File) Stubs(wanted func(name string) bool) map[uint64]string {
	var slotType, dataType uint64
	switch f.own.file.Machine {
	case elf.EM_X86_64:
		slotType, dataType = uint64(elf.R_X86_64_JMP_SLOT), uint64(elf.R_X86_64_GLOB_DAT)
	case elf.EM_AARCH64:
		slotType, dataType = uint64(elf.R_AARCH64_JUMP_SLOT), uint64(elf.R_AARCH64_GLOB_DAT)
	default:
		return nil
	}
	if f.BigEndian() || !f.own.form().wide || f.IsRelocatable() {
		return nil
	}
	var out map[uint64]string
	_ = f.Guard(func() error {
		names := make(map[uint64]string) // of wanted functions, by their numbers in the table of symbols
		for _, t := range symbolsOf(f.own, elf.SHT_DYNSYM) {
			n := uint64(0)
			t.form().eachSym(t.d, func(s *elfSym) {
				if text, ok := bin.CStringAt(t.strs, uint64(s.name)); ok && s.section == elf.SHN_UNDEF && wanted(string(text)) {
					names[n] = string(text)
				}
				n++
			})
		}
		if len(names) == 0 {
			return nil
		}
		slots := make(map[uint64]string)
		for i := range f.sections {
			s := &f.sections[i]
			if s.Name != ".rela.plt" && s.Name != ".rela.dyn" {
				continue
			}
			d, err := f.peek(s.Addr, s.Size)
			if err != nil {
				return err
			}
			for r := (bin.Reader{D: d}); len(r.D)-r.P >= relaSize; {
				at, info := r.U64(), r.U64()
				r.Skip(8)
				if t := info & 0xffffffff; t == slotType || t == dataType {
					if name, ok := names[info>>32]; ok {
						slots[at] = name
					}
				}
			}
		}
		out = make(map[uint64]string)
		for i := range f.sections {
			s := &f.sections[i]
			if !s.Exec || !strings.HasPrefix(s.Name, ".plt") {
				continue
			}
			d, err := f.peek(s.Addr, s.Size)
			if err != nil {
				return err
			}
			each := stubsOfX86
			if f.own.file.Machine == elf.EM_AARCH64 {
				each = stubsOfARM
			}
			each(d, s.Addr, func(begin, slot uint64) {
				if name, ok := slots[slot]; ok {
					out[begin] = name
				}
			})
		}
		return nil
	})
	return out
}

// stubsOfX86 calls f with where each stub at an address begins and which slot it reads: endbr64, if the linker writes it, and a jump, with a prefix (bnd) or not.
func stubsOfX86(d []byte, addr uint64, f func(begin, slot uint64)) {
	for i := 0; i+6 <= len(d); i++ {
		if d[i] != 0xff || d[i+1] != 0x25 { // jmp *disp32(%rip)
			continue
		}
		slot := addr + uint64(i) + 6 + uint64(int64(int32(binary.LittleEndian.Uint32(d[i+2:]))))
		begin := i
		if begin > 0 && d[begin-1] == 0xf2 {
			begin--
		}
		if begin >= 4 && binary.LittleEndian.Uint32(d[begin-4:]) == 0xfa1e0ff3 { // endbr64
			begin -= 4
		}
		f(addr+uint64(begin), slot)
		i += 5
	}
}

// stubsOfARM is stubsOfX86 for AArch64: bti c, if the linker writes it, and adrp x16 and ldr x17 with the address of the slot.
func stubsOfARM(d []byte, addr uint64, f func(begin, slot uint64)) {
	word := func(i int) uint32 { return binary.LittleEndian.Uint32(d[i:]) }
	for i := 0; i+8 <= len(d); i += 4 {
		page, load := word(i), word(i+4)
		if page&0x9f00001f != 0x90000010 || load&0xffc003ff != 0xf9400211 {
			continue
		}
		pages := int64(int32(page<<8)>>13)<<2 | int64(page>>29&3)
		begin := addr + uint64(i)
		slot := (begin&^0xfff + uint64(pages<<12)) + uint64(load>>10&0xfff)*8
		if i >= 4 && word(i-4) == 0xd503245f { // bti c
			begin -= 4
		}
		f(begin, slot)
	}
}
