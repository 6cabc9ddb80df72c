package bpfobject

import (
	"bytes"
	"cmp"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Object is an object file, in memory. Its methods must not be called after an error.
type Object struct {
	sections []*section // without the file's tables of symbols and names
	symbols  []symbol
	flags    uint32
	types    *types
	ext      *extension
	tables   []table
}

// section is a section with what is relocated in it.
type section struct {
	name  string
	kind  elf.SectionType
	flags elf.SectionFlag
	align uint64
	entry uint64
	size  uint64 // of a section without contents
	data  []byte
	rels  []relocation
	gone  bool
}

// relocation is an entry of a SHT_REL section.
type relocation struct {
	at     uint64
	symbol int // in Object.symbols
	kind   uint32
	table  string // whose symbol it will be
}

// symbol is a symbol. in is nil for one that is of no section of the file: undefined, or absolute, as index says.
type symbol struct {
	name        string
	info, other byte
	in          *section
	index       elf.SectionIndex
	value, size uint64
}

func (s *symbol) binding() elf.SymBind { return elf.ST_BIND(s.info) }
func (s *symbol) kind() elf.SymType    { return elf.ST_TYPE(s.info) }

// Kinds of relocations (Documentation/bpf/llvm_reloc.rst).
const (
	relLoad = 1  // R_BPF_64_64
	relCall = 10 // R_BPF_64_32
)

// emBPF is EM_BPF.
const emBPF = elf.Machine(247)

// maxObject is how large an object may be, in bytes.
const maxObject = 256 << 20

// maxAlign is the largest alignment of a section in bytes: compilers write 8.
const maxAlign = 1 << 12

var le = binary.LittleEndian

// Read reads an object file.
func Read(b []byte) (*Object, error) {
	if len(b) > maxObject {
		return nil, fmt.Errorf("%d bytes: more than an object file of BPF programs has", len(b))
	}
	f, err := elf.NewFile(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	switch {
	case f.Machine != emBPF || f.Type != elf.ET_REL || f.Class != elf.ELFCLASS64:
		return nil, fmt.Errorf("%v %v: not an object file of BPF programs", f.Machine, f.Type)
	case f.ByteOrder != binary.LittleEndian:
		return nil, errors.New("an object for big-endian machines cannot be rewritten")
	}
	o := &Object{flags: le.Uint32(b[48:52])}
	byIndex := make(map[int]*section)
	names := make(map[string]bool)
	for i, s := range f.Sections {
		if !kept(s) {
			continue
		}
		x := &section{name: s.Name, kind: s.Type, flags: s.Flags, align: s.Addralign, entry: s.Entsize, size: s.Size}
		if s.Type != elf.SHT_NOBITS {
			if x.data, err = s.Data(); err != nil {
				return nil, fmt.Errorf("section %s: %w", s.Name, err)
			}
		}
		if s.Flags&elf.SHF_COMPRESSED != 0 {
			return nil, fmt.Errorf("section %s is compressed", s.Name)
		}
		if s.Addralign > maxAlign {
			return nil, fmt.Errorf("section %s is aligned to %d bytes", s.Name, s.Addralign)
		}
		if names[s.Name] {
			return nil, fmt.Errorf("two sections %s", s.Name)
		}
		names[s.Name] = true
		byIndex[i] = x
		o.sections = append(o.sections, x)
	}
	if err := o.readSymbols(f, byIndex); err != nil {
		return nil, err
	}
	for _, s := range f.Sections {
		x := byIndex[int(s.Info)]
		if s.Type == elf.SHT_RELA && x != nil {
			return nil, fmt.Errorf("section %s: relocations with addends are not BPF's", s.Name)
		}
		if s.Type != elf.SHT_REL || x == nil {
			continue
		}
		d, err := s.Data()
		if err != nil || len(d)%16 != 0 {
			return nil, fmt.Errorf("section %s is damaged: %v", s.Name, err)
		}
		for ; len(d) > 0; d = d[16:] {
			info := le.Uint64(d[8:])
			r := relocation{at: le.Uint64(d), symbol: int(info >> 32), kind: uint32(info)}
			if r.symbol >= len(o.symbols) || r.at >= uint64(len(x.data)) {
				return nil, fmt.Errorf("section %s is damaged: a relocation at %#x of symbol %d", s.Name, r.at, r.symbol)
			}
			x.rels = append(x.rels, r)
		}
	}
	return o, o.readTypes()
}

// kept reports whether a section goes on: tables of the file are written anew, and what DWARF says of the code is not right any more.
func kept(s *elf.Section) bool {
	switch s.Type {
	case elf.SHT_NULL, elf.SHT_SYMTAB, elf.SHT_STRTAB, elf.SHT_REL, elf.SHT_RELA:
		return false
	}
	return !strings.HasPrefix(s.Name, ".debug") && s.Name != ".llvm_addrsig" && s.Name != ".eh_frame" && s.Type != elf.SHT_GROUP
}

func (o *Object) readSymbols(f *elf.File, byIndex map[int]*section) error {
	o.symbols = []symbol{{}}
	all, err := f.Symbols()
	if err != nil && !errors.Is(err, elf.ErrNoSymbols) {
		return err
	}
	for _, s := range all {
		x := symbol{name: s.Name, info: s.Info, other: s.Other, index: s.Section, value: s.Value, size: s.Size}
		if s.Section != elf.SHN_UNDEF && s.Section < elf.SHN_LORESERVE {
			if x.in = byIndex[int(s.Section)]; x.in == nil && int(s.Section) >= len(f.Sections) {
				return fmt.Errorf("symbol %s is of section %d, and there are %d", s.Name, s.Section, len(f.Sections))
			}
		}
		o.symbols = append(o.symbols, x)
	}
	return nil
}

func (o *Object) section(name string) *section {
	i := slices.IndexFunc(o.sections, func(s *section) bool { return s.name == name && !s.gone })
	if i < 0 {
		return nil
	}
	return o.sections[i]
}

// sectionSymbol returns the symbol of a section itself.
func (o *Object) sectionSymbol(s *section) int {
	i := slices.IndexFunc(o.symbols, func(x symbol) bool { return x.in == s && x.kind() == elf.STT_SECTION })
	if i < 0 {
		i = len(o.symbols)
		o.symbols = append(o.symbols, symbol{info: elf.ST_INFO(elf.STB_LOCAL, elf.STT_SECTION), in: s})
	}
	return i
}

// Bytes returns the file.
func (o *Object) Bytes() ([]byte, error) {
	if err := o.writeTypes(); err != nil {
		return nil, err
	}
	sections := slices.DeleteFunc(slices.Clone(o.sections), func(s *section) bool { return s.gone })
	numbers := make(map[*section]int)
	for i, s := range sections {
		numbers[s] = i + 1
	}
	// Local symbols come first (System V ABI, "Symbol Table").
	order := make([]int, 0, len(o.symbols))
	for i := range o.symbols {
		if s := &o.symbols[i]; i == 0 || s.in == nil && (s.index == elf.SHN_UNDEF || s.index >= elf.SHN_LORESERVE) || s.in != nil && !s.in.gone {
			order = append(order, i)
		}
	}
	global := func(i int) int {
		if i == 0 || o.symbols[i].binding() == elf.STB_LOCAL {
			return 0
		}
		return 1
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(global(a), global(b)), cmp.Compare(a, b)) })
	newNumber := make(map[int]uint64)
	locals := uint32(0)
	var symtab []byte
	names := newNames()
	for n, i := range order {
		s := &o.symbols[i]
		newNumber[i] = uint64(n)
		if global(i) == 0 {
			locals++
		}
		index := uint16(s.index)
		if s.in != nil {
			index = uint16(numbers[s.in])
		}
		symtab = le.AppendUint32(symtab, names.add(s.name))
		symtab = le.AppendUint16(append(symtab, s.info, s.other), index)
		symtab = le.AppendUint64(le.AppendUint64(symtab, s.value), s.size)
	}
	w := writer{b: make([]byte, 64), names: names}
	w.add(&section{}, 0, 0)
	for _, s := range sections {
		w.add(s, 0, 0)
	}
	symbolTable := uint32(len(sections) + 1)
	w.add(&section{name: ".symtab", kind: elf.SHT_SYMTAB, align: 8, entry: 24, data: symtab}, symbolTable+1, locals)
	strtab := len(w.headers)
	w.add(&section{name: ".strtab", kind: elf.SHT_STRTAB, align: 1}, 0, 0)
	for _, s := range sections {
		if len(s.rels) == 0 {
			continue
		}
		var d []byte
		for _, r := range s.rels {
			n, ok := newNumber[r.symbol]
			if !ok {
				return nil, fmt.Errorf("section %s has a relocation of a symbol that is gone: %s", s.name, o.symbols[r.symbol].name)
			}
			d = le.AppendUint64(le.AppendUint64(d, r.at), n<<32|uint64(r.kind))
		}
		w.add(&section{name: ".rel" + s.name, kind: elf.SHT_REL, align: 8, entry: 16, data: d, flags: elf.SHF_INFO_LINK}, symbolTable, uint32(numbers[s]))
	}
	return w.finish(strtab, o.flags), nil
}

// names is a table of strings.
type names struct {
	b  []byte
	at map[string]uint32
}

func newNames() *names { return &names{[]byte{0}, map[string]uint32{"": 0}} }

func (n *names) add(text string) uint32 {
	at, known := n.at[text]
	if !known {
		at = uint32(len(n.b))
		n.at[text] = at
		n.b = append(append(n.b, text...), 0)
	}
	return at
}

// writer lays sections out.
type writer struct {
	b       []byte
	headers [][64]byte
	names   *names
}

func (w *writer) add(s *section, link, info uint32) {
	if a := max(s.align, 1); s.kind != elf.SHT_NULL {
		w.b = append(w.b, make([]byte, (a-uint64(len(w.b))%a)%a)...)
	}
	size := uint64(len(s.data))
	if s.kind == elf.SHT_NOBITS {
		size = s.size
	}
	var h [64]byte
	le.PutUint32(h[0:], w.names.add(s.name))
	le.PutUint32(h[4:], uint32(s.kind))
	le.PutUint64(h[8:], uint64(s.flags))
	if s.kind != elf.SHT_NULL {
		le.PutUint64(h[24:], uint64(len(w.b)))
	}
	le.PutUint64(h[32:], size)
	le.PutUint32(h[40:], link)
	le.PutUint32(h[44:], info)
	le.PutUint64(h[48:], s.align)
	le.PutUint64(h[56:], s.entry)
	w.headers = append(w.headers, h)
	w.b = append(w.b, s.data...)
}

// finish writes the names, the sections' headers and the file's.
func (w *writer) finish(strtab int, flags uint32) []byte {
	le.PutUint64(w.headers[strtab][24:], uint64(len(w.b)))
	le.PutUint64(w.headers[strtab][32:], uint64(len(w.names.b)))
	w.b = append(w.b, w.names.b...)
	w.b = append(w.b, make([]byte, (8-len(w.b)%8)%8)...)
	copy(w.b, "\x7fELF\x02\x01\x01")
	le.PutUint16(w.b[16:], uint16(elf.ET_REL))
	le.PutUint16(w.b[18:], uint16(emBPF))
	le.PutUint32(w.b[20:], 1)
	le.PutUint64(w.b[40:], uint64(len(w.b)))
	le.PutUint32(w.b[48:], flags)
	le.PutUint16(w.b[52:], 64)
	le.PutUint16(w.b[58:], 64)
	le.PutUint16(w.b[60:], uint16(len(w.headers)))
	le.PutUint16(w.b[62:], uint16(strtab))
	for i := range w.headers {
		w.b = append(w.b, w.headers[i][:]...)
	}
	return w.b
}
