package pack

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
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

// outlined is one section of a pack.
type outlined struct {
	name string
	elf.SectionHeader
	data []byte // nil for NOBITS
	at   uint64 // where its contents are in the pack
}

// outline is the ELF file of a pack.
type outline struct {
	order    binary.ByteOrder
	wide     bool
	ident    []byte
	head     elf.FileHeader
	flags    uint32
	progs    []byte // as they are in the image
	progSize int
	numProgs int
	sections []outlined
}

// outlineOf reads the image's headers.
func outlineOf(img *dwarfloc.Image) (o *outline, err error) {
	marks, err := img.SymbolAddresses(keptSymbols...)
	if err != nil {
		return nil, err
	}
	err = img.Guard(func() error {
		raw := img.Contents()
		file, err := elf.NewFile(bytes.NewReader(raw))
		if err != nil {
			return fmt.Errorf("%s: %w", img.Path(), err)
		}
		o = &outline{order: file.ByteOrder, wide: file.Class == elf.ELFCLASS64, head: file.FileHeader}
		o.ident = bytes.Clone(raw[:elf.EI_NIDENT])
		o.readHeader(raw)
		for _, s := range file.Sections[1:] {
			if s.Flags&elf.SHF_ALLOC == 0 && !keeps(s) {
				continue
			}
			x := outlined{name: s.Name, SectionHeader: s.SectionHeader}
			x.Link, x.Info, x.Flags = 0, 0, x.Flags&^elf.SHF_INFO_LINK
			switch {
			case keeps(s):
				if x.data, err = s.Data(); err != nil {
					return fmt.Errorf("%s: %s: %w", img.Path(), s.Name, err)
				}
			case s.Type != elf.SHT_NOBITS:
				x.Type = elf.SHT_NOBITS
				fallthrough
			default:
				if s.Name == btfSection || s.Name == packfile.Section {
					x.name += ".loaded" // that of the pack has this name
				}
			}
			o.sections = append(o.sections, x)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if !img.IsRelocatable() && len(marks) > 0 {
		o.addSymbols(marks)
	}
	return o, nil
}

// readHeader takes what package elf does not tell from a file's header, which is known to be there.
func (o *outline) readHeader(raw []byte) {
	phoff, flags, size, num := uint64(o.order.Uint32(raw[28:])), 36, 42, 44
	if o.wide {
		phoff, flags, size, num = o.order.Uint64(raw[32:]), 48, 54, 56
	}
	o.flags = o.order.Uint32(raw[flags:])
	o.progSize, o.numProgs = int(o.order.Uint16(raw[size:])), int(o.order.Uint16(raw[num:]))
	if n := uint64(o.progSize * o.numProgs); phoff <= uint64(len(raw)) && n <= uint64(len(raw))-phoff {
		o.progs = bytes.Clone(raw[phoff : phoff+n])
	} else {
		o.numProgs = 0
	}
}

// addSymbols appends a symbol table.
func (o *outline) addSymbols(marks map[string]uint64) {
	names := slices.DeleteFunc(slices.Clone(keptSymbols), func(n string) bool { _, ok := marks[n]; return !ok })
	strs := []byte{0}
	size := 16
	if o.wide {
		size = 24
	}
	syms := make([]byte, size)
	for _, n := range names {
		info := byte(elf.STB_GLOBAL)<<4 | byte(elf.STT_NOTYPE)
		if o.wide {
			syms = o.u32(syms, uint32(len(strs)))
			syms = append(syms, info, 0)
			syms = o.u16(syms, uint16(elf.SHN_ABS))
			syms = o.u64(syms, marks[n])
			syms = o.u64(syms, 0)
		} else {
			syms = o.u32(syms, uint32(len(strs)))
			syms = o.u32(syms, uint32(marks[n]))
			syms = o.u32(syms, 0)
			syms = append(syms, info, 0)
			syms = o.u16(syms, uint16(elf.SHN_ABS))
		}
		strs = append(append(strs, n...), 0)
	}
	o.sections = append(o.sections,
		outlined{name: ".symtab", SectionHeader: elf.SectionHeader{Type: elf.SHT_SYMTAB, Link: uint32(len(o.sections) + 2), Info: 1, Addralign: 8, Entsize: uint64(size)}, data: syms},
		outlined{name: ".strtab", SectionHeader: elf.SectionHeader{Type: elf.SHT_STRTAB, Addralign: 1}, data: strs})
}

func (o *outline) u16(b []byte, v uint16) []byte { return append(b, o.bytes(uint64(v), 2)...) }
func (o *outline) u32(b []byte, v uint32) []byte { return append(b, o.bytes(uint64(v), 4)...) }
func (o *outline) u64(b []byte, v uint64) []byte { return append(b, o.bytes(v, 8)...) }

// word appends a number with the size of an address.
func (o *outline) word(b []byte, v uint64) []byte {
	if o.wide {
		return o.u64(b, v)
	}
	return o.u32(b, uint32(v))
}

func (o *outline) bytes(v uint64, n int) []byte {
	d := make([]byte, 8)
	if o.order == binary.LittleEndian {
		binary.LittleEndian.PutUint64(d, v)
		return d[:n]
	}
	binary.BigEndian.PutUint64(d, v)
	return d[8-n:]
}

// file returns the whole file. btf and pack are the contents of the last two sections, of which the pack is sealed.
func (o *outline) file(btf, pack []byte) []byte {
	all := slices.Clone(o.sections)
	var names strings.Builder
	names.WriteByte(0)
	nameAt := map[string]uint32{"": 0}
	name := func(n string) uint32 {
		at, known := nameAt[n]
		if !known {
			at = uint32(names.Len())
			nameAt[n] = at
			names.WriteString(n)
			names.WriteByte(0)
		}
		return at
	}
	for i := range all {
		name(all[i].name)
	}
	last := []string{".shstrtab", btfSection, packfile.Section}
	for _, n := range last {
		name(n)
	}
	all = append(all,
		outlined{name: last[0], SectionHeader: elf.SectionHeader{Type: elf.SHT_STRTAB, Addralign: 1}, data: []byte(names.String())},
		outlined{name: last[1], SectionHeader: elf.SectionHeader{Type: elf.SHT_PROGBITS, Addralign: 8}, data: btf},
		outlined{name: last[2], SectionHeader: elf.SectionHeader{Type: elf.SHT_PROGBITS, Addralign: packAlign}, data: pack})
	headSize, secSize := 52, 40
	if o.wide {
		headSize, secSize = 64, 64
	}
	at := uint64(headSize + len(o.progs))
	align := func(to uint64) { at = (at + to - 1) / to * to }
	align(8)
	tableAt := at
	at += uint64(secSize * (len(all) + 1))
	for i := range all {
		s := &all[i]
		if s.Type == elf.SHT_NOBITS {
			s.at = s.Offset
			continue
		}
		align(max(min(s.Addralign, packAlign), 1))
		s.at, s.Size = at, uint64(len(s.data))
		at += s.Size
	}
	b := make([]byte, 0, at)
	b = append(b, o.ident...)
	b = o.u16(b, uint16(o.head.Type))
	b = o.u16(b, uint16(o.head.Machine))
	b = o.u32(b, uint32(o.head.Version))
	b = o.word(b, o.head.Entry)
	if o.numProgs > 0 {
		b = o.word(b, uint64(headSize))
	} else {
		b = o.word(b, 0)
	}
	b = o.word(b, tableAt)
	b = o.u32(b, o.flags)
	for _, n := range []int{headSize, o.progSize, o.numProgs, secSize, len(all) + 1, len(all) - 2} {
		b = o.u16(b, uint16(n))
	}
	b = append(b, o.progs...)
	b = append(b, make([]byte, tableAt-uint64(len(b)))...)
	b = append(b, make([]byte, secSize)...)
	for i := range all {
		s := &all[i]
		b = o.u32(b, nameAt[s.name])
		b = o.u32(b, uint32(s.Type))
		for _, v := range []uint64{uint64(s.Flags), s.Addr, s.at, s.Size} {
			b = o.word(b, v)
		}
		b = o.u32(b, s.Link)
		b = o.u32(b, s.Info)
		b = o.word(b, s.Addralign)
		b = o.word(b, s.Entsize)
	}
	for i := range all {
		if s := &all[i]; s.Type != elf.SHT_NOBITS {
			b = append(b, make([]byte, s.at-uint64(len(b)))...)
			b = append(b, s.data...)
		}
	}
	types, sites := &all[len(all)-2], &all[len(all)-1]
	packfile.Seal(b, types.at, types.Size, sites.at, sites.Size)
	return b
}

const (
	btfSection = ".BTF"
	packAlign  = 64
)
