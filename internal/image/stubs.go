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
	known, ok := stubs[f.own.file.Machine]
	if !ok || f.BigEndian() || f.Arch().WordSize != 8 {
		return nil
	}
	slotType, dataType := known.slot, uint64(f.Arch().GlobDat)
	out := make(map[uint64]string)
	_ = f.Guard(func() error {
		tables := symbolsOf(f.own, elf.SHT_DYNSYM)
		if len(tables) == 0 {
			return nil
		}
		t := &tables[0]
		form, size := t.form(), uint64(t.form().symSize())
		slots := make(map[uint64]string)
		for i := range f.sections {
			s := &f.sections[i]
			relocations := s.Name == ".rela.plt" || s.Name == ".rela.dyn" // they come before code
			if !relocations && (!s.Exec || !strings.HasPrefix(s.Name, ".plt")) {
				continue
			}
			d, err := f.peek(s.Addr, s.Size)
			if err != nil {
				return err
			}
			if !relocations {
				for i := 0; i+8 <= len(d); i++ {
					slot, before := known.jump(d, i, s.Addr+uint64(i))
					if name, ok := slots[slot]; ok {
						out[s.Addr+uint64(i-before)] = name
					}
				}
				continue
			}
			for r := (bin.Reader{D: d}); len(r.D)-r.P >= relaSize; {
				at, info := r.U64(), r.U64()
				r.Skip(8)
				n, typ := info>>32, info&0xffffffff
				if typ != slotType && typ != dataType || n >= uint64(len(t.d))/size {
					continue
				}
				symbol := form.sym(t.d[n*size:])
				if name, ok := bin.CStringAt(t.strs, uint64(symbol.name)); ok && symbol.section == elf.SHN_UNDEF && wanted(string(name)) {
					slots[at] = string(name)
				}
			}
		}
		return nil
	})
	return out
}

// stubs are the forms of stubs, by machine: the relocation type of a slot that is written when it is used first, and what reads the jump of a stub.
var stubs = map[elf.Machine]struct {
	slot uint64
	jump func(d []byte, i int, at uint64) (slot uint64, before int)
}{
	elf.EM_X86_64:  {uint64(elf.R_X86_64_JMP_SLOT), stubOfX86},
	elf.EM_AARCH64: {uint64(elf.R_AARCH64_JUMP_SLOT), stubOfARM},
}

// stubOfX86 returns which slot the jump of a stub reads that is at an offset, and at an address, or 0, and how many bytes the stub has before it: endbr64, if the linker writes that,
// and a prefix (bnd).
func stubOfX86(d []byte, i int, at uint64) (slot uint64, before int) {
	if d[i] != 0xff || d[i+1] != 0x25 { // jmp *disp32(%rip)
		return 0, 0
	}
	if i > 0 && d[i-1] == 0xf2 {
		before = 1
	}
	if k := i - before; k >= 4 && binary.LittleEndian.Uint32(d[k-4:]) == 0xfa1e0ff3 { // endbr64
		before += 4
	}
	return at + 6 + uint64(int32(binary.LittleEndian.Uint32(d[i+2:]))), before
}

// stubOfARM is stubOfX86 for AArch64: adrp x16 and ldr x17 with the address of the slot, behind bti c, if the linker writes that.
func stubOfARM(d []byte, i int, at uint64) (slot uint64, before int) {
	page, load := binary.LittleEndian.Uint32(d[i:]), binary.LittleEndian.Uint32(d[i+4:])
	if i&3 != 0 || page&0x9f00001f != 0x90000010 || load&0xffc003ff != 0xf9400211 {
		return 0, 0
	}
	if i >= 4 && binary.LittleEndian.Uint32(d[i-4:]) == 0xd503245f { // bti c
		before = 4
	}
	pages := uint64(int32(page<<8)>>13)<<2 | uint64(page>>29&3)
	return at&^0xfff + pages<<12 + uint64(load>>10&0xfff)*8, before
}
