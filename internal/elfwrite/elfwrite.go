// Package elfwrite writes small ELF files: sections, with or without contents, and symbols.
package elfwrite

import (
	"debug/elf"
	"encoding/binary"
	"slices"

	"github.com/bpfprologue/bpfprologue/arch"
)

// File is an ELF file to write.
type File struct {
	Arch *arch.Arch
	// Ident begins the file; if it is nil, it is that of Arch, for any system.
	Ident []byte
	Type  elf.Type
	Entry uint64
	Flags uint32
	// Programs are the program headers, of ProgramSize bytes each.
	Programs    []byte
	ProgramSize int
	// Sections are followed by tables of Symbols, if there are any, and of the sections' names, and by Last.
	Sections []Section
	Symbols  []Symbol
	Last     []Section
}

// Section is a section. One of the type SHT_NOBITS keeps its Size and Offset, others get those of Data.
type Section struct {
	Name       string
	Type       elf.SectionType
	Flags      elf.SectionFlag
	Addr       uint64
	Offset     uint64 // in the file, in bytes
	Size       uint64 // bytes
	Link, Info uint32
	Align      uint64
	EntrySize  uint64
	Data       []byte
}

// Symbol is a symbol with a link-time address. In is the name of its section; without one it is absolute.
type Symbol struct {
	Name       string
	Addr, Size uint64
	Type       elf.SymType
	Local      bool
	In         string
}

// MaxAlign is the largest alignment of contents in a file.
const MaxAlign = 64

// strings is a table of strings, each once.
type strings struct {
	b  []byte
	at map[string]uint32
}

func (s *strings) add(text string) uint32 {
	if s.at == nil {
		s.b, s.at = []byte{0}, map[string]uint32{"": 0}
	}
	at, known := s.at[text]
	if !known {
		at = uint32(len(s.b))
		s.at[text] = at
		s.b = append(append(s.b, text...), 0)
	}
	return at
}

// Bytes returns the file. It sets Offset and Size of the sections in Last.
func (f *File) Bytes() []byte {
	w := writerFor(f.Arch)
	all := slices.Clone(f.Sections)
	if len(f.Symbols) > 0 {
		all = f.appendSymbols(all, &w)
	}
	var names strings
	names.add("")
	for i := range all {
		names.add(all[i].Name)
	}
	const own = ".shstrtab"
	names.add(own)
	for i := range f.Last {
		names.add(f.Last[i].Name)
	}
	namesAt := len(all) + 1
	all = append(all, Section{Name: own, Type: elf.SHT_STRTAB, Align: 1, Data: names.b})
	all = append(all, f.Last...)

	headSize, sectionSize := 52, 40
	if w.wide {
		headSize, sectionSize = 64, 64
	}
	table := (headSize + len(f.Programs) + 7) &^ 7
	at := uint64(table + sectionSize*(len(all)+1))
	for i := range all {
		s := &all[i]
		if s.Type == elf.SHT_NOBITS {
			continue
		}
		align := max(min(s.Align, MaxAlign), 1)
		at = (at + align - 1) / align * align
		s.Offset, s.Size = at, uint64(len(s.Data))
		at += s.Size
	}
	copy(f.Last, all[namesAt:])

	b := append(make([]byte, 0, at), f.ident()...)
	b = w.order.AppendUint16(b, uint16(f.Type))
	b = w.order.AppendUint16(b, uint16(f.Arch.Machine))
	b = w.order.AppendUint32(b, uint32(elf.EV_CURRENT))
	programs, count := 0, 0
	if len(f.Programs) > 0 {
		programs, count = headSize, len(f.Programs)/f.ProgramSize
	}
	b = w.words(b, f.Entry, uint64(programs), uint64(table))
	b = w.order.AppendUint32(b, f.Flags)
	for _, n := range []int{headSize, f.ProgramSize, count, sectionSize, len(all) + 1, namesAt} {
		b = w.order.AppendUint16(b, uint16(n))
	}
	b = append(b, f.Programs...)
	b = append(b, make([]byte, table-len(b)+sectionSize)...)
	for i := range all {
		s := &all[i]
		b = w.order.AppendUint32(b, names.at[s.Name])
		b = w.order.AppendUint32(b, uint32(s.Type))
		b = w.words(b, uint64(s.Flags), s.Addr, s.Offset, s.Size)
		b = w.order.AppendUint32(b, s.Link)
		b = w.order.AppendUint32(b, s.Info)
		b = w.words(b, s.Align, s.EntrySize)
	}
	for i := range all {
		if s := &all[i]; s.Type != elf.SHT_NOBITS {
			b = append(b, make([]byte, s.Offset-uint64(len(b)))...)
			b = append(b, s.Data...)
		}
	}
	return b
}

// ident returns the first bytes of the file.
func (f *File) ident() []byte {
	if f.Ident != nil {
		return f.Ident
	}
	class, data := elf.ELFCLASS64, elf.ELFDATA2LSB
	if f.Arch.WordSize == 4 {
		class = elf.ELFCLASS32
	}
	if f.Arch.BigEndian {
		data = elf.ELFDATA2MSB
	}
	return append([]byte{0x7f, 'E', 'L', 'F', byte(class), byte(data), byte(elf.EV_CURRENT)}, make([]byte, elf.EI_NIDENT-7)...)
}

// appendSymbols appends the tables of the symbols and of their names.
func (f *File) appendSymbols(all []Section, w *writer) []Section {
	numbers := map[string]uint16{"": uint16(elf.SHN_ABS)}
	for i := range f.Sections {
		numbers[f.Sections[i].Name] = uint16(i + 1)
	}
	var text strings
	table := w.symbol(nil, text.add(""), &Symbol{}, 0, 0)
	locals := uint32(1)
	for _, local := range []bool{true, false} { // local symbols come first (ELF, "Symbol Table")
		for i := range f.Symbols {
			s := &f.Symbols[i]
			if s.Local != local {
				continue
			}
			bind := elf.STB_GLOBAL
			if local {
				bind = elf.STB_LOCAL
				locals++
			}
			table = w.symbol(table, text.add(s.Name), s, elf.ST_INFO(bind, s.Type), numbers[s.In])
		}
	}
	size := uint64(16)
	if w.wide {
		size = 24
	}
	return append(all,
		Section{Name: ".symtab", Type: elf.SHT_SYMTAB, Link: uint32(len(all) + 2), Info: locals, Align: 8, EntrySize: size, Data: table},
		Section{Name: ".strtab", Type: elf.SHT_STRTAB, Align: 1, Data: text.b})
}

// writer writes numbers as an architecture has them.
type writer struct {
	order binary.AppendByteOrder
	wide  bool
}

func writerFor(a *arch.Arch) writer {
	w := writer{order: binary.LittleEndian, wide: a.WordSize == 8}
	if a.BigEndian {
		w.order = binary.BigEndian
	}
	return w
}

// words appends numbers with the size of an address.
func (w *writer) words(b []byte, all ...uint64) []byte {
	for _, v := range all {
		if w.wide {
			b = w.order.AppendUint64(b, v)
		} else {
			b = w.order.AppendUint32(b, uint32(v))
		}
	}
	return b
}

func (w *writer) symbol(b []byte, name uint32, s *Symbol, info byte, section uint16) []byte {
	b = w.order.AppendUint32(b, name)
	if w.wide {
		b = w.order.AppendUint16(append(b, info, 0), section)
		return w.words(b, s.Addr, s.Size)
	}
	b = w.words(b, s.Addr, s.Size)
	return w.order.AppendUint16(append(b, info, 0), section)
}

// Note returns a note, as in .note.gnu.build-id.
func Note(a *arch.Arch, owner string, kind uint32, desc []byte) []byte {
	w := writerFor(a)
	pad := func(b []byte) []byte { return append(b, make([]byte, -len(b)&3)...) }
	b := w.order.AppendUint32(nil, uint32(len(owner)+1))
	b = w.order.AppendUint32(b, uint32(len(desc)))
	b = w.order.AppendUint32(b, kind)
	return pad(append(pad(append(append(b, owner...), 0)), desc...))
}
