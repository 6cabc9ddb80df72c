package dwarfloc

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"testing"
)

// The tests write their own images: a tree of entries becomes .debug_info and
// .debug_abbrev, and sections become an ELF file.

// die is one entry of a tree. After cu.encode its off is set.
type die struct {
	tag   tag
	attrs []attribute
	kids  []*die
	off   uint64 // in .debug_info
}

// attribute is a name, a form and a value: uint64 or int for numbers, string,
// []byte for blocks, *die for references.
type attribute struct {
	name attrName
	form form
	v    any
}

// cu is a unit to write.
type cu struct {
	version int
	dwarf64 bool
	kind    uint8 // DWARF 5; 0 is a compile unit
	root    *die
}

// dwarfWriter writes units one behind the other, each with its own abbreviations.
type dwarfWriter struct {
	info, abbrev []byte
}

func uleb(v uint64) []byte {
	var out []byte
	for {
		c := byte(v & 0x7f)
		if v >>= 7; v == 0 {
			return append(out, c)
		}
		out = append(out, c|0x80)
	}
}

func sleb(v int64) []byte {
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

// cat puts bytes together: numbers up to 255 are one byte, slices stand as they are.
func cat(parts ...any) []byte {
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

func le16(v uint64) []byte { return binary.LittleEndian.AppendUint16(nil, uint16(v)) }
func le32(v uint64) []byte { return binary.LittleEndian.AppendUint32(nil, uint32(v)) }
func le64(v uint64) []byte { return binary.LittleEndian.AppendUint64(nil, v) }

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

func (w *dwarfWriter) add(c cu) {
	type patch struct {
		at, n  int
		target *die
		base   uint64
	}
	var patches []patch
	start := uint64(len(w.info))
	abbrevOff := uint64(len(w.abbrev))
	offset := func(v uint64) []byte {
		if c.dwarf64 {
			return le64(v)
		}
		return le32(v)
	}
	var b []byte // the unit behind its length
	b = append(b, le16(uint64(c.version))...)
	if c.version >= 5 {
		kind := c.kind
		if kind == 0 {
			kind = unitCompile
		}
		b = append(b, kind, 8)
		b = append(b, offset(abbrevOff)...)
	} else {
		b = append(b, offset(abbrevOff)...)
		b = append(b, 8)
	}
	lengthSize := uint64(4)
	if c.dwarf64 {
		lengthSize = 12
	}
	code := uint64(0)
	var write func(d *die)
	write = func(d *die) {
		code++
		d.off = start + lengthSize + uint64(len(b))
		children := byte(0)
		if len(d.kids) > 0 {
			children = 1
		}
		w.abbrev = append(w.abbrev, cat(uleb(code), uleb(uint64(d.tag)), children)...)
		b = append(b, uleb(code)...)
		for _, a := range d.attrs {
			w.abbrev = append(w.abbrev, cat(uleb(uint64(a.name)), uleb(uint64(a.form)))...)
			switch a.form {
			case formFlagPresent:
			case formImplicitConst:
				w.abbrev = append(w.abbrev, sleb(int64(number(a.v)))...)
			case formData1, formFlag, formRef1, formStrx1, formAddrx1:
				b = append(b, byte(number(a.v)))
			case formData2:
				b = append(b, le16(number(a.v))...)
			case formData4:
				b = append(b, le32(number(a.v))...)
			case formData8, formAddr, formRefSig8:
				b = append(b, le64(number(a.v))...)
			case formData16:
				b = append(b, a.v.([]byte)...)
			case formRef4, formRefAddr:
				p := patch{at: len(b), n: 4, base: start}
				if a.form == formRefAddr {
					p.base = 0
					if c.dwarf64 {
						p.n = 8
					}
				}
				if target, ok := a.v.(*die); ok {
					p.target = target
					patches = append(patches, p)
					b = append(b, make([]byte, p.n)...)
				} else {
					b = append(b, le64(number(a.v))[:p.n]...)
				}
			case formSecOffset, formStrp, formLineStrp:
				b = append(b, offset(number(a.v))...)
			case formSdata:
				b = append(b, sleb(int64(number(a.v)))...)
			case formUdata, formStrx, formAddrx, formLoclistx, formRnglistx:
				b = append(b, uleb(number(a.v))...)
			case formString:
				b = append(b, cat(a.v.(string))...)
			case formExprloc, formBlock:
				b = append(b, cat(uleb(uint64(len(a.v.([]byte)))), a.v.([]byte))...)
			case formBlock1:
				b = append(b, cat(len(a.v.([]byte)), a.v.([]byte))...)
			default:
				panic(fmt.Sprintf("form %#x", a.form))
			}
		}
		w.abbrev = append(w.abbrev, 0, 0)
		for _, k := range d.kids {
			write(k)
		}
		if len(d.kids) > 0 {
			b = append(b, 0)
		}
	}
	write(c.root)
	w.abbrev = append(w.abbrev, 0)
	for _, p := range patches {
		copy(b[p.at:p.at+p.n], le64(p.target.off - p.base)[:p.n])
	}
	if c.dwarf64 {
		w.info = append(append(w.info, 0xff, 0xff, 0xff, 0xff), le64(uint64(len(b)))...)
	} else {
		w.info = append(w.info, le32(uint64(len(b)))...)
	}
	w.info = append(w.info, b...)
}

// section is a section to write.
type section struct {
	name  string
	typ   elf.SectionType
	flags elf.SectionFlag
	addr  uint64
	data  []byte
	link  uint32
}

// Every written image has its code here.
const (
	textAddr = 0x401000
	textSize = 0x1000
)

func textSection() section {
	return section{name: ".text", typ: elf.SHT_PROGBITS, flags: elf.SHF_ALLOC | elf.SHF_EXECINSTR, addr: textAddr, data: make([]byte, textSize)}
}

func debugSection(name string, data []byte) section {
	return section{name: name, typ: elf.SHT_PROGBITS, data: data}
}

// writeELF writes an x86-64 executable. Section 1 is the first given one.
func writeELF(sections ...section) []byte {
	names := []byte{0}
	sections = append(append([]section{{}}, sections...), section{name: ".shstrtab", typ: elf.SHT_STRTAB})
	var headers []elf.Section64
	for i := range sections {
		h := elf.Section64{Name: uint32(len(names))}
		if i == 0 {
			h.Name = 0
		} else {
			names = append(append(names, sections[i].name...), 0)
		}
		headers = append(headers, h)
	}
	sections[len(sections)-1].data = names
	var body bytes.Buffer
	body.Write(make([]byte, 64))
	for i := 1; i < len(sections); i++ {
		s := &sections[i]
		h := &headers[i]
		h.Type, h.Flags, h.Addr, h.Link = uint32(s.typ), uint64(s.flags), s.addr, s.link
		h.Off, h.Size, h.Addralign = uint64(body.Len()), uint64(len(s.data)), 1
		switch s.typ {
		case elf.SHT_SYMTAB, elf.SHT_DYNSYM:
			h.Entsize = 24
		}
		body.Write(s.data)
	}
	eh := elf.Header64{
		Type: uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64), Version: 1, Shoff: uint64(body.Len()),
		Ehsize: 64, Shentsize: 64, Shnum: uint16(len(sections)), Shstrndx: uint16(len(sections) - 1),
	}
	copy(eh.Ident[:], elf.ELFMAG)
	eh.Ident[elf.EI_CLASS], eh.Ident[elf.EI_DATA], eh.Ident[elf.EI_VERSION] = byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), 1
	for i := range headers {
		must(binary.Write(&body, binary.LittleEndian, &headers[i]))
	}
	var head bytes.Buffer
	must(binary.Write(&head, binary.LittleEndian, &eh))
	out := body.Bytes()
	copy(out, head.Bytes())
	return out
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// writeImage writes units and more sections, behind a section of code.
func writeImage(units []cu, more ...section) []byte {
	var w dwarfWriter
	for _, u := range units {
		w.add(u)
	}
	return writeELF(append([]section{textSection(), debugSection(".debug_info", w.info), debugSection(".debug_abbrev", w.abbrev)}, more...)...)
}

// testImage opens what writeImage writes; its name in errors is "test".
func testImage(t testing.TB, units []cu, more ...section) *Image {
	t.Helper()
	img, err := FromBytes("test", writeImage(units, more...))
	if err != nil {
		t.Fatalf("the image that the test wrote: %v", err)
	}
	if err := img.Scan(context.Background()); err != nil {
		t.Fatalf("scan of the image that the test wrote: %v", err)
	}
	for i := range img.units {
		if err := img.units[i].load(); err != nil {
			t.Fatalf("unit %d of the image that the test wrote: %v", i, err)
		}
	}
	return img
}

// unitRoot is a C unit whose code is the whole text section.
func unitRoot(kids ...*die) *die {
	return &die{tag: tagCompileUnit, attrs: []attribute{
		{attrLanguage, formData1, 0x1d}, // C11
		{attrLowpc, formAddr, uint64(textAddr)},
	}, kids: kids}
}

// sitesOf returns the sites of a name; there must be n.
func sitesOf(t testing.TB, img *Image, name string, n int) []*Site {
	t.Helper()
	sites, err := img.Sites(context.Background(), Name(name))
	if err != nil {
		t.Fatalf("sites of %s: %v", name, err)
	}
	if len(sites) != n {
		t.Fatalf("sites of %s: got %d, want %d", name, len(sites), n)
	}
	return sites
}
