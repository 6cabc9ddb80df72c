package pack

import (
	"bytes"
	"debug/elf"
	"fmt"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/elfwrite"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/packfile"
)

// An outline is what a pack has of the image's own ELF file: the headers, so that the file is laid out as the image
// is, and those few contents that attaching asks for. Sections whose contents are not there have the type NOBITS.

// keptSymbols are the symbols that attaching asks for: where a kernel begins and ends, and which of it is freed.
var keptSymbols = []string{"_text", "_stext", "_etext", "_end", "__init_begin", "__init_end"}

// maxKept bounds a section whose contents are copied, in bytes.
const maxKept = 64 << 10

// keeps reports whether the contents of a section are in a pack.
func keeps(s *elf.Section) bool {
	if s.FileSize > maxKept || s.Type == elf.SHT_NOBITS || s.Flags&elf.SHF_COMPRESSED != 0 {
		return false
	}
	return s.Type == elf.SHT_NOTE || s.Name == ".modinfo" || s.Name == ".gnu.linkonce.this_module"
}

// outlineOf reads the image's headers.
func outlineOf(img *dwarfloc.Image) (o *elfwrite.File, err error) {
	marks, err := inside.File(img).SymbolAddresses(keptSymbols...)
	if err != nil {
		return nil, err
	}
	o = &elfwrite.File{Arch: img.Arch()}
	err = inside.File(img).Guard(func() error {
		raw := inside.File(img).Contents()
		file, err := elf.NewFile(bytes.NewReader(raw))
		if err != nil {
			return fmt.Errorf("%s: %w", img.Path(), err)
		}
		o.Ident, o.Type, o.Entry = bytes.Clone(raw[:elf.EI_NIDENT]), file.Type, file.Entry
		readHeader(o, raw, file)
		for _, s := range file.Sections[1:] {
			if s.Flags&elf.SHF_ALLOC == 0 && !keeps(s) {
				continue
			}
			x := elfwrite.Section{
				Name: s.Name, Type: elf.SHT_NOBITS, Flags: s.Flags &^ elf.SHF_INFO_LINK, Addr: s.Addr, Offset: s.Offset, Size: s.Size,
				Align: s.Addralign, EntrySize: s.Entsize,
			}
			switch {
			case keeps(s):
				x.Type = s.Type
				if x.Data, err = s.Data(); err != nil {
					return fmt.Errorf("%s: %s: %w", img.Path(), s.Name, err)
				}
			case s.Name == btfSection, s.Name == packfile.Section:
				x.Name += ".loaded" // that of the pack has this name
			}
			o.Sections = append(o.Sections, x)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if !inside.File(img).IsRelocatable() {
		for _, name := range keptSymbols {
			if addr, known := marks[name]; known {
				o.Symbols = append(o.Symbols, elfwrite.Symbol{Name: name, Addr: addr})
			}
		}
	}
	return o, nil
}

// readHeader takes what package elf does not tell from a file's header, which is known to be there.
func readHeader(o *elfwrite.File, raw []byte, file *elf.File) {
	order := file.ByteOrder
	phoff, flags, size, num := uint64(order.Uint32(raw[28:])), 36, 42, 44
	if file.Class == elf.ELFCLASS64 {
		phoff, flags, size, num = order.Uint64(raw[32:]), 48, 54, 56
	}
	o.Flags = order.Uint32(raw[flags:])
	o.ProgramSize = int(order.Uint16(raw[size:]))
	if n := uint64(o.ProgramSize * int(order.Uint16(raw[num:]))); phoff <= uint64(len(raw)) && n <= uint64(len(raw))-phoff {
		o.Programs = bytes.Clone(raw[phoff : phoff+n])
	}
}

// packed returns the whole file. btf and pack are the contents of the last two sections, of which the pack is sealed.
func packed(o *elfwrite.File, btf, pack []byte) []byte {
	o.Last = []elfwrite.Section{
		{Name: btfSection, Type: elf.SHT_PROGBITS, Align: 8, Data: btf},
		{Name: packfile.Section, Type: elf.SHT_PROGBITS, Align: elfwrite.MaxAlign, Data: pack},
	}
	b := o.Bytes()
	types, sites := &o.Last[0], &o.Last[1]
	packfile.Seal(b, types.Offset, types.Size, sites.Offset, sites.Size)
	return b
}

const btfSection = ".BTF"
