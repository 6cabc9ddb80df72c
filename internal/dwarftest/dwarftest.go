// Package dwarftest writes DWARF and ELF files for tests: a tree of entries becomes
// .debug_info and .debug_abbrev, and sections become an executable.
//
//	f := &dwarftest.DIE{Tag: dw.TagSubprogram, Attrs: []dwarftest.Attr{
//		dwarftest.At(dw.AttrName, dw.FormString, "f"), ...
//	}}
//	data := dwarftest.Image([]dwarftest.CU{{Version: 5, Root: dwarftest.Root(f)}})
package dwarftest

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"

	"github.com/bpfprologue/bpfprologue/internal/dw"
)

// DIE is one entry of a tree. Off is set when its unit is written.
type DIE struct {
	Tag   dw.Tag
	Attrs []Attr
	Kids  []*DIE
	Off   uint64 // in .debug_info
}

// Attr is a name, a form and a value: uint64 or int for numbers, string,
// []byte for blocks, *DIE for references.
type Attr struct {
	Name dw.Attr
	Form dw.Form
	V    any
}

// At is an attribute.
func At(name dw.Attr, form dw.Form, v any) Attr { return Attr{name, form, v} }

// CU is a unit to write.
type CU struct {
	Version int
	DWARF64 bool
	Kind    uint8 // DWARF 5; 0 is a compile unit
	Root    *DIE

	// ID is the signature of a type unit and the dwo ID of a skeleton. Type is a type unit's
	// type. A type unit of DWARF 4 is in .debug_types.
	ID   uint64
	Type *DIE
}

// Writer writes units one after the other, each with its own abbreviations.
type Writer struct {
	Info, Abbrev []byte
	Types        []byte // .debug_types
}

// ULEB returns v in ULEB128.
func ULEB(v uint64) []byte {
	var out []byte
	for {
		c := byte(v & 0x7f)
		if v >>= 7; v == 0 {
			return append(out, c)
		}
		out = append(out, c|0x80)
	}
}

// SLEB returns v in SLEB128.
func SLEB(v int64) []byte {
	var out []byte
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(out, c)
		}
		out = append(out, c|0x80)
	}
}

// Cat puts bytes together: numbers up to 255 are one byte, slices stand as they are.
func Cat(parts ...any) []byte {
	var out []byte
	for _, p := range parts {
		switch p := p.(type) {
		case int:
			if p < 0 || p > 255 {
				panic(fmt.Sprintf("%d is no byte", p))
			}
			out = append(out, byte(p))
		case byte:
			out = append(out, p)
		case rune:
			out = append(out, byte(p))
		case []byte:
			out = append(out, p...)
		case string:
			out = append(append(out, p...), 0)
		default:
			panic(fmt.Sprintf("%T", p))
		}
	}
	return out
}

// LE16 returns the low 2 bytes of v, little-endian.
func LE16(v uint64) []byte { return binary.LittleEndian.AppendUint16(nil, uint16(v)) }

// LE32 returns the low 4 bytes of v, little-endian.
func LE32(v uint64) []byte { return binary.LittleEndian.AppendUint32(nil, uint32(v)) }

// LE64 returns the 8 bytes of v, little-endian.
func LE64(v uint64) []byte { return binary.LittleEndian.AppendUint64(nil, v) }

func number(v any) uint64 {
	switch v := v.(type) {
	case int:
		return uint64(v)
	case uint64:
		return v
	case bool:
		if v {
			return 1
		}
		return 0
	}
	panic(fmt.Sprintf("%T is no number", v))
}

// Add writes one unit.
func (w *Writer) Add(c CU) {
	type patch struct {
		at, n  int
		target *DIE
		base   uint64
	}
	var patches []patch
	to := &w.Info
	if c.Version < 5 && c.Type != nil {
		to = &w.Types
	}
	start := uint64(len(*to))
	abbrevOff := uint64(len(w.Abbrev))
	offset := func(v uint64) []byte {
		if c.DWARF64 {
			return LE64(v)
		}
		return LE32(v)
	}
	var b []byte // the unit after its length
	b = append(b, LE16(uint64(c.Version))...)
	if c.Version >= 5 {
		kind := c.Kind
		if kind == 0 {
			kind = dw.UnitCompile
		}
		b = append(b, kind, 8)
		b = append(b, offset(abbrevOff)...)
	} else {
		b = append(b, offset(abbrevOff)...)
		b = append(b, 8)
	}
	lengthSize := uint64(4)
	if c.DWARF64 {
		lengthSize = 12
	}
	if c.Type != nil || c.ID != 0 {
		b = append(b, LE64(c.ID)...)
	}
	if c.Type != nil {
		n := len(offset(0))
		patches = append(patches, patch{at: len(b), n: n, base: start, target: c.Type})
		b = append(b, make([]byte, n)...)
	}
	code := uint64(0)
	var write func(d *DIE)
	write = func(d *DIE) {
		code++
		d.Off = start + lengthSize + uint64(len(b))
		children := byte(0)
		if len(d.Kids) > 0 {
			children = 1
		}
		w.Abbrev = append(w.Abbrev, Cat(ULEB(code), ULEB(uint64(d.Tag)), children)...)
		b = append(b, ULEB(code)...)
		for _, a := range d.Attrs {
			w.Abbrev = append(w.Abbrev, Cat(ULEB(uint64(a.Name)), ULEB(uint64(a.Form)))...)
			switch a.Form {
			case dw.FormFlagPresent:
			case dw.FormImplicitConst:
				w.Abbrev = append(w.Abbrev, SLEB(int64(number(a.V)))...)
			case dw.FormData1, dw.FormFlag, dw.FormRef1, dw.FormStrx1, dw.FormAddrx1:
				b = append(b, byte(number(a.V)))
			case dw.FormData2:
				b = append(b, LE16(number(a.V))...)
			case dw.FormData4:
				b = append(b, LE32(number(a.V))...)
			case dw.FormData8, dw.FormAddr, dw.FormRefSig8:
				b = append(b, LE64(number(a.V))...)
			case dw.FormData16:
				b = append(b, a.V.([]byte)...)
			case dw.FormRef4, dw.FormRefAddr:
				p := patch{at: len(b), n: 4, base: start}
				if a.Form == dw.FormRefAddr {
					p.base = 0
					if c.DWARF64 {
						p.n = 8
					}
				}
				if target, ok := a.V.(*DIE); ok {
					p.target = target
					patches = append(patches, p)
					b = append(b, make([]byte, p.n)...)
				} else {
					b = append(b, LE64(number(a.V))[:p.n]...)
				}
			case dw.FormSecOffset, dw.FormStrp, dw.FormLineStrp, dw.FormGNURefAlt:
				b = append(b, offset(number(a.V))...)
			case dw.FormSdata:
				b = append(b, SLEB(int64(number(a.V)))...)
			case dw.FormUdata, dw.FormStrx, dw.FormAddrx, dw.FormLoclistx, dw.FormRnglistx:
				b = append(b, ULEB(number(a.V))...)
			case dw.FormString:
				b = append(b, Cat(a.V.(string))...)
			case dw.FormExprloc, dw.FormBlock:
				b = append(b, Cat(ULEB(uint64(len(a.V.([]byte)))), a.V.([]byte))...)
			case dw.FormBlock1:
				b = append(b, Cat(len(a.V.([]byte)), a.V.([]byte))...)
			default:
				panic(fmt.Sprintf("form %#x", a.Form))
			}
		}
		w.Abbrev = append(w.Abbrev, 0, 0)
		for _, k := range d.Kids {
			write(k)
		}
		if len(d.Kids) > 0 {
			b = append(b, 0)
		}
	}
	write(c.Root)
	w.Abbrev = append(w.Abbrev, 0)
	for _, p := range patches {
		copy(b[p.at:p.at+p.n], LE64(p.target.Off - p.base)[:p.n])
	}
	if c.DWARF64 {
		*to = append(append(*to, 0xff, 0xff, 0xff, 0xff), LE64(uint64(len(b)))...)
	} else {
		*to = append(*to, LE32(uint64(len(b)))...)
	}
	*to = append(*to, b...)
}

// Section is a section to write.
type Section struct {
	Name  string
	Type  elf.SectionType
	Flags elf.SectionFlag
	Addr  uint64
	Data  []byte
	Link  uint32
}

// Every written image has its code here.
const (
	TextAddr = 0x401000
	TextSize = 0x1000
)

// Text returns a .text section with TextSize zero bytes at TextAddr.
func Text() Section {
	return Section{Name: ".text", Type: elf.SHT_PROGBITS, Flags: elf.SHF_ALLOC | elf.SHF_EXECINSTR, Addr: TextAddr, Data: make([]byte, TextSize)}
}

// Debug returns a section that is not loaded.
func Debug(name string, data []byte) Section {
	return Section{Name: name, Type: elf.SHT_PROGBITS, Data: data}
}

// LineTable returns a unit of .debug_line, of version 4, with one file. Opcodes up to 12 are the standard ones.
func LineTable(file string, program []byte) []byte {
	head := Cat(1, 1, 1, 0xfb, 14, 13, // minimum instruction, operations, is_stmt, line base -5, range 14, opcode base
		0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, // operands of opcodes 1 to 12
		0, file, 0, 0, 0, 0) // no directories; the file, its directory, time and size; no others
	b := Cat(LE16(4), LE32(uint64(len(head))), head, program)
	return Cat(LE32(uint64(len(b))), b)
}

// ELF writes an x86-64 executable. Section 1 is the first given one.
func ELF(sections ...Section) []byte {
	names := []byte{0}
	sections = append(append([]Section{{}}, sections...), Section{Name: ".shstrtab", Type: elf.SHT_STRTAB})
	var headers []elf.Section64
	for i := range sections {
		h := elf.Section64{Name: uint32(len(names))}
		if i == 0 {
			h.Name = 0
		} else {
			names = append(append(names, sections[i].Name...), 0)
		}
		headers = append(headers, h)
	}
	sections[len(sections)-1].Data = names
	var body bytes.Buffer
	body.Write(make([]byte, 64))
	for i := 1; i < len(sections); i++ {
		s := &sections[i]
		h := &headers[i]
		h.Type, h.Flags, h.Addr, h.Link = uint32(s.Type), uint64(s.Flags), s.Addr, s.Link
		h.Off, h.Size, h.Addralign = uint64(body.Len()), uint64(len(s.Data)), 1
		switch s.Type {
		case elf.SHT_SYMTAB, elf.SHT_DYNSYM:
			h.Entsize = 24
		}
		body.Write(s.Data)
	}
	eh := elf.Header64{
		Type: uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64), Version: 1, Shoff: uint64(body.Len()),
		Ehsize: 64, Shentsize: 64, Shnum: uint16(len(sections)), Shstrndx: uint16(len(sections) - 1),
	}
	copy(eh.Ident[:], elf.ELFMAG)
	eh.Ident[elf.EI_CLASS], eh.Ident[elf.EI_DATA], eh.Ident[elf.EI_VERSION] = byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), 1
	for i := range headers {
		Must(binary.Write(&body, binary.LittleEndian, &headers[i]))
	}
	var head bytes.Buffer
	Must(binary.Write(&head, binary.LittleEndian, &eh))
	out := body.Bytes()
	copy(out, head.Bytes())
	return out
}

// Must panics if err is not nil.
func Must(err error) {
	if err != nil {
		panic(err)
	}
}

// Image writes units and more sections, after a section of code.
func Image(units []CU, more ...Section) []byte {
	var w Writer
	for _, u := range units {
		w.Add(u)
	}
	if w.Types != nil {
		more = append(more, Debug(".debug_types", w.Types))
	}
	return ELF(append([]Section{Text(), Debug(".debug_info", w.Info), Debug(".debug_abbrev", w.Abbrev)}, more...)...)
}

// Root is a C unit whose code is the whole text section.
func Root(kids ...*DIE) *DIE {
	return &DIE{Tag: dw.TagCompileUnit, Attrs: []Attr{
		{dw.AttrLanguage, dw.FormData1, 0x1d}, // C11
		{dw.AttrLowpc, dw.FormAddr, uint64(TextAddr)},
	}, Kids: kids}
}
