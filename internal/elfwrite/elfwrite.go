// Package elfwrite writes small ELF files: sections, with or without contents, and symbols.
package elfwrite

import (
	"bytes"
	"debug/elf"
	"encoding/binary"

	"github.com/bpfprologue/bpfprologue/arch"
)

// File is an ELF file to write.
type File struct {
	Arch     *arch.Arch
	Type     elf.Type
	Sections []Section
	Symbols  []Symbol
}

// Section is a section. One without Data has the type SHT_NOBITS and Size bytes.
type Section struct {
	Name  string
	Type  elf.SectionType
	Flags elf.SectionFlag
	Addr  uint64
	Size  uint64
	Data  []byte
}

// Symbol is a function, or something else, with a link-time address. In is the name of its section; "" if it
// belongs to none.
type Symbol struct {
	Name       string
	Addr, Size uint64
	Func       bool
	Local      bool
	In         string
}

// Bytes returns the file.
func (f *File) Bytes() []byte {
	order := binary.AppendByteOrder(binary.LittleEndian)
	data := elf.ELFDATA2LSB
	if f.Arch.BigEndian {
		order, data = binary.BigEndian, elf.ELFDATA2MSB
	}
	w := writer{order: order, wide: f.Arch.WordSize == 8}
	var names, text bytes.Buffer
	names.WriteByte(0)
	text.WriteByte(0)
	name := func(to *bytes.Buffer, s string) uint32 {
		if s == "" {
			return 0
		}
		at := to.Len()
		to.WriteString(s)
		to.WriteByte(0)
		return uint32(at)
	}
	sections := append([]Section{{}}, f.Sections...)
	numbers := map[string]uint16{"": uint16(elf.SHN_ABS)}
	for i := range f.Sections {
		numbers[f.Sections[i].Name] = uint16(i + 1)
	}
	symtab := w.symbol(nil, 0, 0, 0, 0, 0)
	locals := 1
	for _, local := range []bool{true, false} { // local symbols come first (ELF, "Symbol Table")
		for _, s := range f.Symbols {
			if s.Local != local {
				continue
			}
			kind, bind := elf.STT_OBJECT, elf.STB_GLOBAL
			if s.Func {
				kind = elf.STT_FUNC
			}
			if local {
				bind = elf.STB_LOCAL
				locals++
			}
			symtab = w.symbol(symtab, name(&text, s.Name), s.Addr, s.Size, elf.ST_INFO(bind, kind), numbers[s.In])
		}
	}
	strtab := len(sections) + 1
	sections = append(sections, Section{Name: ".symtab", Type: elf.SHT_SYMTAB, Data: symtab}, Section{Name: ".strtab", Type: elf.SHT_STRTAB, Data: text.Bytes()})
	own := make([]uint32, len(sections)+1)
	for i := range sections {
		own[i] = name(&names, sections[i].Name)
	}
	own[len(sections)] = name(&names, ".shstrtab")
	sections = append(sections, Section{Name: ".shstrtab", Type: elf.SHT_STRTAB, Data: names.Bytes()})

	headerSize, entrySize, symbolSize := 64, 64, 24
	class := elf.ELFCLASS64
	if !w.wide {
		headerSize, entrySize, symbolSize, class = 52, 40, 16, elf.ELFCLASS32
	}
	at := make([]int, len(sections))
	end := headerSize
	for i := range sections {
		end = (end + 7) &^ 7
		at[i] = end
		end += len(sections[i].Data)
	}
	table := (end + 7) &^ 7
	out := make([]byte, 0, table+len(sections)*entrySize)
	out = append(out, 0x7f, 'E', 'L', 'F', byte(class), byte(data), byte(elf.EV_CURRENT), 0)
	out = append(out, make([]byte, 8)...)
	out = order.AppendUint16(out, uint16(f.Type))
	out = order.AppendUint16(out, uint16(f.Arch.Machine))
	out = order.AppendUint32(out, uint32(elf.EV_CURRENT))
	out = w.word(w.word(w.word(out, 0), 0), uint64(table))
	out = order.AppendUint32(out, 0)
	for _, n := range []int{headerSize, 0, 0, entrySize, len(sections), len(sections) - 1} {
		out = order.AppendUint16(out, uint16(n))
	}
	for i := range sections {
		out = append(out, make([]byte, at[i]-len(out))...)
		out = append(out, sections[i].Data...)
	}
	out = append(out, make([]byte, table-len(out))...)
	for i := range sections {
		s := &sections[i]
		size, link, info, entry := uint64(len(s.Data)), 0, 0, 0
		if s.Data == nil && s.Size != 0 {
			size = s.Size
			s.Type = elf.SHT_NOBITS
		}
		if s.Type == elf.SHT_SYMTAB {
			link, info, entry = strtab, locals, symbolSize
		}
		out = order.AppendUint32(out, own[i])
		out = order.AppendUint32(out, uint32(s.Type))
		out = w.word(w.word(w.word(w.word(out, uint64(s.Flags)), s.Addr), uint64(at[i])), size)
		out = order.AppendUint32(order.AppendUint32(out, uint32(link)), uint32(info))
		out = w.word(w.word(out, 1), uint64(entry))
	}
	return out
}

type writer struct {
	order binary.AppendByteOrder
	wide  bool
}

func (w *writer) word(b []byte, v uint64) []byte {
	if w.wide {
		return w.order.AppendUint64(b, v)
	}
	return w.order.AppendUint32(b, uint32(v))
}

func (w *writer) symbol(b []byte, name uint32, addr, size uint64, info byte, section uint16) []byte {
	b = w.order.AppendUint32(b, name)
	if w.wide {
		b = append(b, info, 0)
		b = w.order.AppendUint16(b, section)
		return w.word(w.word(b, addr), size)
	}
	b = w.word(w.word(b, addr), size)
	b = append(b, info, 0)
	return w.order.AppendUint16(b, section)
}

// Note returns a note, as in .note.gnu.build-id.
func Note(a *arch.Arch, owner string, kind uint32, desc []byte) []byte {
	order := binary.AppendByteOrder(binary.LittleEndian)
	if a.BigEndian {
		order = binary.BigEndian
	}
	pad := func(b []byte) []byte { return append(b, make([]byte, -len(b)&3)...) }
	b := order.AppendUint32(nil, uint32(len(owner)+1))
	b = order.AppendUint32(b, uint32(len(desc)))
	b = order.AppendUint32(b, kind)
	return pad(append(pad(append(append(b, owner...), 0)), desc...))
}
