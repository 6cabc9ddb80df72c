package image

import (
	"debug/elf"
	"slices"
	"sync"
)

// Go's linker strips the symbol table (-ldflags=-s), and leaves the table by which the runtime names functions in stack traces:
// .gopclntab, whose header is pcHeader of Go's src/runtime/symtab.go. Package debug/gosym reads it too, and copies names and allocates for as
// many functions as a damaged header says.

// goMagic begins the table of Go 1.20 and later (go1.20 in internal/abi/symtab.go). They have one calling convention.
const goMagic = 0xfffffff1

// goTable is what is known of that table.
type goTable struct {
	once    sync.Once
	symbols []symbols
}

// goSection returns the section with the table, or nil if there is none. known is set if it is that of Go 1.20 or later.
func (f *File) goSection() (sec *elf.Section, known bool) {
	for _, s := range f.own.file.Sections {
		// A position-independent program has it among what is relocated.
		if s.Type == elf.SHT_PROGBITS && (s.Name == ".gopclntab" || s.Name == ".data.rel.ro.gopclntab") {
			d, err := f.own.sectionData(s)
			return s, err == nil && len(d) >= 4 && f.own.file.ByteOrder.Uint32(d) == goMagic
		}
	}
	return nil, false
}

// IsGo reports whether the file is a program of Go, which may have functions in C, and whether that is Go 1.20 or later.
func (f *File) IsGo() (is, known bool) {
	_ = f.Guard(func() error {
		sec, of := f.goSection()
		is, known = sec != nil, of
		return nil
	})
	return is, known
}

// goSymbols returns the functions of a Go program in the form of a symbol table. It reads them once. What is damaged adds nothing.
func (f *File) goSymbols() []symbols {
	f.goTable.once.Do(func() {
		if sec, known := f.goSection(); known {
			f.goTable.symbols = f.readGo(sec)
		}
	})
	return f.goTable.symbols
}

// The words of the table's header after its first 8 bytes.
const (
	goFunctions   = 0 // how many functions there are
	goTextStart   = 2 // what their addresses are relative to; not since Go 1.26
	goNames       = 3 // where names are in the table
	goFunctionTab = 7 // and functions: pairs of the distances of a function's code from the text, and of what is known of it from here
)

func (f *File) readGo(sec *elf.Section) []symbols {
	d, err := f.own.sectionData(sec)
	if err != nil || len(d) < 8 || int(d[7]) != f.arch.WordSize {
		return nil
	}
	order := f.own.file.ByteOrder
	header := func(i int) uint64 { return f.word(d[8:], i) }
	n, names, tab := header(goFunctions), header(goNames), header(goFunctionTab)
	size := uint64(len(d))
	if names == 0 || names >= size || tab >= size || n > (size-tab)/8 || 8*n+4 > size-tab {
		return nil
	}
	text := header(goTextStart)
	if text == 0 {
		if text = f.goText(sec.Addr); text == 0 {
			return nil
		}
	}
	sections := f.own.file.Sections
	// An offset of 0 is no name in a symbol table.
	out := symbols{source: f.own, strs: d[names-1:]}
	form, table := f.own.form(), d[tab:]
	out.d = make([]byte, 0, int(n)*form.symSize())
	for i := range n {
		entry, next := order.Uint32(table[8*i:]), order.Uint32(table[8*i+8:])
		about := uint64(order.Uint32(table[8*i+4:]))
		addr := text + uint64(entry)
		in := slices.IndexFunc(sections, func(s *elf.Section) bool {
			return s.Flags&elf.SHF_EXECINSTR != 0 && addr >= s.Addr && addr-s.Addr < s.Size
		})
		if in < 0 || next < entry || about+8 > uint64(len(table)) {
			continue
		}
		name := order.Uint32(table[about+4:]) // of struct _func, after its entry
		if name >= 1<<31 {
			continue
		}
		out.d = form.appendSym(out.d, &elfSym{
			name: name + 1, typ: elf.STT_FUNC, bind: elf.STB_LOCAL, section: elf.SectionIndex(in), value: addr, size: uint64(next - entry),
		})
	}
	out.globals = len(out.d)
	return []symbols{out}
}

// word returns a word of some data by its number, or 0.
func (f *File) word(d []byte, i int) uint64 {
	word, order := f.arch.WordSize, f.own.file.ByteOrder
	switch at := i * word; {
	case len(d) < at+word:
		return 0
	case word == 8:
		return order.Uint64(d[at:])
	default:
		return uint64(order.Uint32(d[at:]))
	}
}

// goText returns the address of the text of Go's functions, which begins after that of C in the same section: what the runtime knows of the
// program, struct moduledata of src/runtime/symtab.go, is in a section of its own since Go 1.26. It begins with the address of the table.
func (f *File) goText(table uint64) uint64 {
	const text = 22 // after the table's address, six slices, and three addresses
	sec := f.own.file.Section(".go.module")
	if sec == nil {
		return 0
	}
	d, err := f.own.sectionData(sec)
	if err != nil || f.word(d, 0) != table {
		return 0
	}
	return f.word(d, text)
}

// appendSym is the inverse of sym.
func (f elfForm) appendSym(to []byte, s *elfSym) []byte {
	order := f.order()
	info := byte(s.bind)<<4 | byte(s.typ)
	if f.wide {
		to = order.AppendUint32(to, s.name)
		to = order.AppendUint16(append(to, info, s.other), uint16(s.section))
		return order.AppendUint64(order.AppendUint64(to, s.value), s.size)
	}
	to = order.AppendUint32(order.AppendUint32(order.AppendUint32(to, s.name), uint32(s.value)), uint32(s.size))
	return order.AppendUint16(append(to, info, s.other), uint16(s.section))
}
