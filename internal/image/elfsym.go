package image

import (
	"debug/elf"
	"encoding/binary"

	"github.com/bpfprologue/bpfprologue/internal/bin"
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
	order := f.order
	if f.wide {
		info := d[4]
		return elfSym{
			name: order.Uint32(d), typ: elf.SymType(info & 0xf), bind: elf.SymBind(info >> 4), other: d[5],
			section: elf.SectionIndex(order.Uint16(d[6:])), value: order.Uint64(d[8:]), size: order.Uint64(d[16:]),
		}
	}
	info := d[12]
	return elfSym{
		name: order.Uint32(d), value: uint64(order.Uint32(d[4:])), size: uint64(order.Uint32(d[8:])),
		typ: elf.SymType(info & 0xf), bind: elf.SymBind(info >> 4), other: d[13], section: elf.SectionIndex(order.Uint16(d[14:])),
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
// .gnu_debugdata adds to it.
func (f *File) symbolTables() []symbols {
	if f.syms.file.SectionByType(elf.SHT_SYMTAB) != nil {
		return symbolsOf(f.syms, elf.SHT_SYMTAB)
	}
	return append(symbolsOf(f.syms, elf.SHT_DYNSYM), f.miniSymbols()...)
}

// symbolBase returns the address that the values of a section's symbols are relative to:
// in a relocatable file the section's, otherwise 0.
func (f *File) symbolBase(t *symbols, section elf.SectionIndex) uint64 {
	if sections := t.file.Sections; f.IsRelocatable() && int(section) < len(sections) {
		return sections[section].Addr
	}
	return 0
}

// SymbolAddresses returns the link-time addresses of symbols, for code and data, by name.
// If several symbols have one name, it prefers a global one, then the first in the file.
// Names that the file does not have are left out.
func (f *File) SymbolAddresses(names ...string) (map[string]uint64, error) {
	want := make(map[string]bool, len(names))
	longest := 0
	var begins [1 << 10]bool // of the wanted names, by their beginnings
	for _, n := range names {
		want[n] = true
		longest = max(longest, len(n))
		begins[beginning([]byte(n+"\x00"))%uint64(len(begins))] = true
	}
	out := make(map[string]uint64)
	global := make(map[string]bool) // names of which a global symbol was found: no other one counts then
	take := func(t *symbols, s *elfSym) {
		if s.section == elf.SHN_UNDEF || s.typ == elf.STT_FILE || s.typ == elf.STT_SECTION || uint64(s.name) >= uint64(len(t.strs)) {
			return
		}
		// Most symbols are not wanted. Read no more than the longest name.
		if !begins[beginning(t.strs[s.name:])%uint64(len(begins))] {
			return
		}
		text, ok := bin.CStringAt(t.strs[:min(uint64(s.name)+uint64(longest)+1, uint64(len(t.strs)))], uint64(s.name))
		if !ok || !want[string(text)] {
			return
		}
		name := string(text)
		if _, known := out[name]; !known || s.bind != elf.STB_LOCAL && !global[name] {
			out[name] = s.value + f.symbolBase(t, s.section)
			if s.bind != elf.STB_LOCAL {
				global[name] = true
			}
		}
	}
	err := f.Guard(func() error {
		for _, t := range f.symbolTables() {
			form := t.form()
			size := form.symSize()
			for _, d := range [][]byte{t.d[t.globals:], t.d[:t.globals]} {
				for ; len(d) >= size && len(global) < len(want); d = d[size:] {
					s := form.sym(d)
					take(&t, &s)
				}
			}
		}
		return nil
	})
	return out, err
}

// beginning returns a number that is the same for names that begin with the same 16 bytes, or are
// the same and shorter.
func beginning(name []byte) uint64 {
	var words [2]uint64
	for i := range words {
		var w uint64
		if len(name) >= 8 {
			w, name = binary.LittleEndian.Uint64(name), name[8:]
		} else {
			var b [8]byte
			copy(b[:], name)
			w, name = binary.LittleEndian.Uint64(b[:]), nil
		}
		// The lowest byte that is 0 ends the name: nothing after it counts.
		if end := (w - 0x0101010101010101) &^ w & 0x8080808080808080; end != 0 {
			words[i] = w & (end&-end>>7 - 1)
			break
		}
		words[i] = w
	}
	const odd = 0x9e3779b97f4a7c15 // 2^64 divided by the golden ratio: it spreads low bits upwards
	h := (words[0] ^ words[1]*odd) * odd
	return h >> 32
}
