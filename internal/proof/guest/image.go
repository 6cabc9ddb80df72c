package guest

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"github.com/bpfprologue/bpfprologue/arch"
	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/inside"
)

// symbolImage makes a small image to use in place of a large one. It has what attaching
// needs: the build ID and the symbols that identify a kernel and its slide. Its debug
// information is empty.
func symbolImage(path string) ([]byte, error) {
	img, err := dwarfloc.Open(path, nil)
	if err != nil {
		return nil, err
	}
	defer img.Close()
	id, err := hex.DecodeString(img.BuildID())
	if err != nil || len(id) == 0 {
		return nil, fmt.Errorf("%s: no build ID", path)
	}
	addrs, err := inside.File(img).SymbolAddresses("_stext", "_text")
	if err != nil {
		return nil, err
	}
	w := writer{arch: img.Arch()}
	note := w.bytes([]uint32{4, uint32(len(id)), 3}) // NT_GNU_BUILD_ID
	note = append(append(note, "GNU\x00"...), id...)

	symbols := w.symbol(elf.Sym64{})
	size := uint64(len(symbols))
	names := []byte{0}
	for name, addr := range addrs {
		symbols = append(symbols, w.symbol(elf.Sym64{Name: uint32(len(names)), Info: elf.ST_INFO(elf.STB_GLOBAL, elf.STT_FUNC), Shndx: 1, Value: addr})...)
		names = append(append(names, name...), 0)
	}
	return w.file([]section{
		{elf.Section64{Type: uint32(elf.SHT_NOBITS), Flags: uint64(elf.SHF_ALLOC | elf.SHF_EXECINSTR), Addr: addrs["_stext"], Size: 4096}, ".text", nil},
		{elf.Section64{Type: uint32(elf.SHT_NOTE), Addralign: 4}, ".note.gnu.build-id", note},
		{elf.Section64{Type: uint32(elf.SHT_SYMTAB), Link: 4, Info: 1, Entsize: size}, ".symtab", symbols},
		{elf.Section64{Type: uint32(elf.SHT_STRTAB)}, ".strtab", names},
		{elf.Section64{Type: uint32(elf.SHT_PROGBITS)}, ".debug_info", []byte{0, 0, 0, 0}},
		{elf.Section64{Type: uint32(elf.SHT_PROGBITS)}, ".debug_abbrev", []byte{0}},
	}), nil
}

type section struct {
	elf.Section64
	name string
	data []byte
}

// writer writes ELF files for an architecture.
type writer struct {
	arch *arch.Arch
}

func (w *writer) bytes(v any) []byte {
	var b bytes.Buffer
	order := binary.ByteOrder(binary.LittleEndian)
	if w.arch.BigEndian {
		order = binary.BigEndian
	}
	if err := binary.Write(&b, order, v); err != nil {
		panic(err) // v is of a fixed size
	}
	return b.Bytes()
}

func (w *writer) symbol(s elf.Sym64) []byte {
	if w.arch.WordSize == 8 {
		return w.bytes(s)
	}
	return w.bytes(elf.Sym32{Name: s.Name, Value: uint32(s.Value), Size: uint32(s.Size), Info: s.Info, Other: s.Other, Shndx: s.Shndx})
}

func (w *writer) section(s elf.Section64) []byte {
	if w.arch.WordSize == 8 {
		return w.bytes(s)
	}
	return w.bytes(elf.Section32{
		Name: s.Name, Type: s.Type, Flags: uint32(s.Flags), Addr: uint32(s.Addr), Off: uint32(s.Off), Size: uint32(s.Size),
		Link: s.Link, Info: s.Info, Addralign: uint32(s.Addralign), Entsize: uint32(s.Entsize),
	})
}

// header returns the file's header, for sections whose headers are at an offset.
func (w *writer) header(at uint64, sections int) []byte {
	h := elf.Header64{
		Type: uint16(elf.ET_EXEC), Machine: uint16(w.arch.Machine), Version: uint32(elf.EV_CURRENT), Shoff: at,
		Shnum: uint16(sections), Shstrndx: uint16(sections - 1), Shentsize: uint16(len(w.section(elf.Section64{}))),
	}
	class, data := elf.ELFCLASS64, elf.ELFDATA2LSB
	if w.arch.WordSize == 4 {
		class = elf.ELFCLASS32
	}
	if w.arch.BigEndian {
		data = elf.ELFDATA2MSB
	}
	copy(h.Ident[:], elf.ELFMAG)
	h.Ident[elf.EI_CLASS], h.Ident[elf.EI_DATA], h.Ident[elf.EI_VERSION] = byte(class), byte(data), byte(elf.EV_CURRENT)
	if class == elf.ELFCLASS64 {
		h.Ehsize = uint16(binary.Size(h))
		return w.bytes(h)
	}
	small := elf.Header32{
		Ident: h.Ident, Type: h.Type, Machine: h.Machine, Version: h.Version, Shoff: uint32(h.Shoff),
		Shnum: h.Shnum, Shstrndx: h.Shstrndx, Shentsize: h.Shentsize,
	}
	small.Ehsize = uint16(binary.Size(small))
	return w.bytes(small)
}

// file writes the file's header, then the sections, then their headers.
func (w *writer) file(sections []section) []byte {
	sections = append([]section{{}}, sections...)
	sections = append(sections, section{Section64: elf.Section64{Type: uint32(elf.SHT_STRTAB)}, name: ".shstrtab"})
	last := &sections[len(sections)-1]
	for i := range sections {
		sections[i].Name = uint32(len(last.data))
		last.data = append(append(last.data, sections[i].name...), 0)
	}
	out := make([]byte, len(w.header(0, len(sections))))
	var heads []byte
	for i := range sections {
		s := &sections[i]
		if s.data != nil {
			s.Off, s.Size = uint64(len(out)), uint64(len(s.data))
			out = append(out, s.data...)
			out = append(out, make([]byte, -len(out)&7)...)
		}
		heads = append(heads, w.section(s.Section64)...)
	}
	copy(out, w.header(uint64(len(out)), len(sections)))
	return append(out, heads...)
}
