package guest

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
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
	addrs, err := img.SymbolAddresses("_stext", "_text")
	if err != nil {
		return nil, err
	}
	data, order := elf.ELFDATA2LSB, binary.AppendByteOrder(binary.LittleEndian)
	if img.BigEndian() {
		data, order = elf.ELFDATA2MSB, binary.BigEndian
	}
	note := order.AppendUint32(order.AppendUint32(order.AppendUint32(nil, 4), uint32(len(id))), 3) // NT_GNU_BUILD_ID
	note = append(append(note, "GNU\x00"...), id...)

	var symbols bytes.Buffer
	names := []byte{0}
	if err := binary.Write(&symbols, byteOrder(data), elf.Sym64{}); err != nil {
		return nil, err
	}
	for name, addr := range addrs {
		sym := elf.Sym64{Name: uint32(len(names)), Info: elf.ST_INFO(elf.STB_GLOBAL, elf.STT_FUNC), Shndx: 1, Value: addr}
		if err := binary.Write(&symbols, byteOrder(data), sym); err != nil {
			return nil, err
		}
		names = append(append(names, name...), 0)
	}
	return writeELF(img.Arch().Machine, data, []section{
		{elf.Section64{Type: uint32(elf.SHT_NOBITS), Flags: uint64(elf.SHF_ALLOC | elf.SHF_EXECINSTR), Addr: addrs["_stext"], Size: 4096}, ".text", nil},
		{elf.Section64{Type: uint32(elf.SHT_NOTE), Addralign: 4}, ".note.gnu.build-id", note},
		{elf.Section64{Type: uint32(elf.SHT_SYMTAB), Link: 4, Info: 1, Entsize: elf.Sym64Size}, ".symtab", symbols.Bytes()},
		{elf.Section64{Type: uint32(elf.SHT_STRTAB)}, ".strtab", names},
		{elf.Section64{Type: uint32(elf.SHT_PROGBITS)}, ".debug_info", []byte{0, 0, 0, 0}},
		{elf.Section64{Type: uint32(elf.SHT_PROGBITS)}, ".debug_abbrev", []byte{0}},
	})
}

type section struct {
	elf.Section64
	name string
	data []byte
}

// writeELF writes the file's header, then the sections, then their headers.
func writeELF(machine elf.Machine, data elf.Data, sections []section) ([]byte, error) {
	sections = append([]section{{}}, sections...)
	sections = append(sections, section{Section64: elf.Section64{Type: uint32(elf.SHT_STRTAB)}, name: ".shstrtab"})
	last := &sections[len(sections)-1]
	for i := range sections {
		sections[i].Name = uint32(len(last.data))
		last.data = append(append(last.data, sections[i].name...), 0)
	}
	order := byteOrder(data)
	out := make([]byte, binary.Size(elf.Header64{}))
	var heads bytes.Buffer
	for i := range sections {
		s := &sections[i]
		if s.data != nil {
			s.Off, s.Size = uint64(len(out)), uint64(len(s.data))
			out = append(out, s.data...)
			out = append(out, make([]byte, -len(out)&7)...)
		}
		if err := binary.Write(&heads, order, s.Section64); err != nil {
			return nil, err
		}
	}
	h := elf.Header64{
		Type: uint16(elf.ET_EXEC), Machine: uint16(machine), Version: uint32(elf.EV_CURRENT),
		Shoff: uint64(len(out)), Ehsize: uint16(binary.Size(elf.Header64{})), Shentsize: uint16(binary.Size(elf.Section64{})),
		Shnum: uint16(len(sections)), Shstrndx: uint16(len(sections) - 1),
	}
	copy(h.Ident[:], elf.ELFMAG)
	h.Ident[elf.EI_CLASS], h.Ident[elf.EI_DATA], h.Ident[elf.EI_VERSION] = byte(elf.ELFCLASS64), byte(data), byte(elf.EV_CURRENT)
	var head bytes.Buffer
	if err := binary.Write(&head, order, h); err != nil {
		return nil, err
	}
	copy(out, head.Bytes())
	return append(out, heads.Bytes()...), nil
}

// byteOrder returns the byte order of an ELF data encoding.
func byteOrder(data elf.Data) binary.ByteOrder {
	if data == elf.ELFDATA2MSB {
		return binary.BigEndian
	}
	return binary.LittleEndian
}
