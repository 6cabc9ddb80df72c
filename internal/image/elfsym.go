package image

import (
	"debug/elf"
	"slices"
)

// elfSym is one entry of a symbol table (System V gABI, "Symbol Table").
type elfSym struct {
	name        uint32 // offset in the string table
	typ         elf.SymType
	bind        elf.SymBind
	other       uint8
	section     elf.SectionIndex
	value, size uint64
}

// symSize returns the bytes of an Elf64_Sym or Elf32_Sym.
func (f elfForm) symSize() int {
	if f.wide {
		return 24
	}
	return 16
}

// sym reads an entry of a symbol table.
func (f elfForm) sym(d []byte) elfSym {
	if f.wide {
		info := d[4]
		return elfSym{
			name: f.u32(d), typ: elf.SymType(info & 0xf), bind: elf.SymBind(info >> 4), other: d[5],
			section: elf.SectionIndex(f.u16(d[6:])), value: f.u64(d[8:]), size: f.u64(d[16:]),
		}
	}
	info := d[12]
	return elfSym{
		name: f.u32(d), value: uint64(f.u32(d[4:])), size: uint64(f.u32(d[8:])),
		typ: elf.SymType(info & 0xf), bind: elf.SymBind(info >> 4), other: d[13], section: elf.SectionIndex(f.u16(d[14:])),
	}
}

// eachSym calls f for the entries of a symbol table, which are valid during the call.
func (f elfForm) eachSym(d []byte, each func(*elfSym)) {
	var s elfSym
	for size := f.symSize(); len(d) >= size; d = d[size:] {
		s = f.sym(d)
		each(&s)
	}
}

// symbols are a symbol table and its strings, in the file that has them.
type symbols struct {
	source
	d, strs []byte
	globals int // where in d those that are not local begin: all are after the others
}

// symbolsOf returns the first symbol table of a type, or nothing if there is none, or if it is damaged.
func symbolsOf(src source, typ elf.SectionType) (out []symbols) {
	file := src.file
	sec := file.SectionByType(typ)
	if sec == nil || int(sec.Link) >= len(file.Sections) {
		return nil
	}
	d, err := src.sectionData(sec)
	if err != nil {
		return nil
	}
	strs, err := src.sectionData(file.Sections[sec.Link])
	if err != nil || strs == nil {
		return nil
	}
	// sh_info is the index of the first one that is not local (gABI, "sh_link and sh_info Interpretation").
	globals := uint64(sec.Info) * uint64(src.form().symSize())
	return []symbols{{src, d, strs, int(min(globals, uint64(len(d))))}}
}

// symbolTables returns the symbol tables: .symtab or, in a stripped file, .dynsym and what
// .gnu_debugdata, or Go's table of functions, adds to it.
func (f *File) symbolTables() []symbols {
	if f.syms.file.SectionByType(elf.SHT_SYMTAB) != nil {
		return symbolsOf(f.syms, elf.SHT_SYMTAB)
	}
	return slices.Concat(symbolsOf(f.syms, elf.SHT_DYNSYM), f.miniSymbols(), f.goSymbols())
}

// symbolBase returns the address that the values of a section's symbols are relative to:
// in a relocatable file the section's, otherwise 0.
func (f *File) symbolBase(t *symbols, section elf.SectionIndex) uint64 {
	if sections := t.file.Sections; f.IsRelocatable() && int(section) < len(sections) {
		return sections[section].Addr
	}
	return 0
}
