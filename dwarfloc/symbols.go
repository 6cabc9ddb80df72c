package dwarfloc

import (
	"debug/elf"
	"encoding/binary"
	"sort"
	"strings"
	"sync"
)

// Symbol is a function symbol of the image.
type Symbol struct {
	Name   string
	Addr   uint64 // link-time address
	Size   uint64 // bytes, 0 when unknown
	Global bool
}

// symbolTable is the symbols of code as they are kept in files too: symSize bytes
// each, by address, then by preference.
type symbolTable struct {
	once sync.Once
	data []byte
	strs []byte
}

// symSize is the bytes of one: address, size, offset of the name, rank, whether it
// is global, two bytes that are zero.
const symSize = 24

// sym is a symbol with its name still in the string table.
type sym struct {
	addr, size uint64
	name       uint32
	rank       uint8 // lower is preferred among symbols of one address
	global     bool
}

func (t *symbolTable) len() int { return len(t.data) / symSize }

func (t *symbolTable) addr(i int) uint64 { return binary.LittleEndian.Uint64(t.data[i*symSize:]) }

func (t *symbolTable) at(i int) sym {
	d := t.data[i*symSize : (i+1)*symSize]
	le := binary.LittleEndian
	return sym{addr: le.Uint64(d), size: le.Uint64(d[8:]), name: le.Uint32(d[16:]), rank: d[20], global: d[21] != 0}
}

// table reads the symbols of code once: all of .symtab, or, in a stripped image,
// .dynsym.
func (img *Image) table() *symbolTable {
	t := &img.symbols
	t.once.Do(func() {
		d, strs := img.symbolSections()
		if strs != nil {
			t.strs = strs
			t.data = img.readSymbols(d)
		}
	})
	return t
}

// symSource is the file with the symbol table.
func (img *Image) symSource() source { return source{img.path, img.symFile, img.symData} }

// symbolSections returns the symbol table and its strings, or nothing.
func (img *Image) symbolSections() (d, strs []byte) {
	sec := img.symFile.SectionByType(elf.SHT_SYMTAB)
	if sec == nil {
		sec = img.symFile.SectionByType(elf.SHT_DYNSYM)
	}
	if sec == nil || int(sec.Link) >= len(img.symFile.Sections) {
		return nil, nil
	}
	src := img.symSource()
	d, err := src.sectionData(sec)
	if err != nil {
		return nil, nil
	}
	if strs, err = src.sectionData(img.symFile.Sections[sec.Link]); err != nil {
		return nil, nil
	}
	return d, strs
}

// readSymbols reads Elf64_Sym entries (System V gABI, symbol table).
func (img *Image) readSymbols(d []byte) []byte {
	const entrySize = 24
	exec := make([]bool, len(img.symFile.Sections))
	starts := make([]uint64, len(img.symFile.Sections)) // what values are relative to
	for i, s := range img.symFile.Sections {
		exec[i] = s.Flags&elf.SHF_EXECINSTR != 0
		if img.LoadsApart() {
			starts[i] = s.Addr
		}
	}
	syms := make([]sym, 0, len(d)/entrySize/2)
	for b := (buf{d: d, be: img.be}); len(d)-b.p >= entrySize; {
		s := sym{name: b.u32()}
		info := b.u8()
		b.u8() // visibility
		section := int(b.u16())
		s.addr, s.size = b.u64(), b.u64()
		if section >= len(exec) || !exec[section] || s.name == 0 {
			continue
		}
		s.addr += starts[section]
		switch elf.SymType(info & 0xf) {
		case elf.STT_FUNC, elf.STT_GNU_IFUNC:
		case elf.STT_NOTYPE:
			s.rank = 4 // assembler code and labels
		default:
			continue
		}
		switch elf.SymBind(info >> 4) {
		case elf.STB_GLOBAL:
			s.global = true
		case elf.STB_WEAK:
			s.global = true
			s.rank++
		default:
			s.rank += 2
		}
		syms = append(syms, s)
	}
	// By address, then by rank; the place in the file decides between equals.
	syms = byKey(byKey(syms, func(s *sym) uint64 { return uint64(s.rank) }), func(s *sym) uint64 { return s.addr })
	le := binary.LittleEndian
	out := make([]byte, 0, len(syms)*symSize)
	for i := range syms {
		s := &syms[i]
		out = le.AppendUint64(out, s.addr)
		out = le.AppendUint64(out, s.size)
		out = le.AppendUint32(out, s.name)
		global := byte(0)
		if s.global {
			global = 1
		}
		out = append(out, s.rank, global, 0, 0)
	}
	return out
}

func (t *symbolTable) symbol(s *sym) *Symbol {
	name, _ := zstr(t.strs, uint64(s.name))
	return &Symbol{Name: name, Addr: s.addr, Size: s.size, Global: s.global}
}

// SymbolAt returns the symbol whose code holds a link-time address, or nil. Of
// several at one address it prefers want and want's clones (want.isra.0), then
// functions to labels, global to local, and the first in the file.
func (img *Image) SymbolAt(addr uint64, want string) (sym *Symbol) {
	_ = guard(func() error {
		sym = img.symbolAt(addr, want)
		return nil
	})
	return sym
}

func (img *Image) symbolAt(addr uint64, want string) *Symbol {
	t := img.table()
	i := sort.Search(t.len(), func(i int) bool { return t.addr(i) > addr }) - 1
	// A label inside a function starts later than the function: look further back
	// for a symbol whose size covers the address, within reason.
	var best sym
	found := false
	for n := 0; i >= 0 && n < 64; i, n = i-1, n+1 {
		s := t.at(i)
		inside := s.size != 0 && addr-s.addr < s.size
		if found && s.addr != best.addr {
			break
		}
		if !inside && s.size != 0 {
			continue
		}
		if !inside && addr != s.addr {
			continue // a label without a size holds only its own address
		}
		name, _ := zstr(t.strs, uint64(s.name))
		if !found || name == want || s.rank <= best.rank && !t.named(&best, want) || strings.HasPrefix(name, want+".") && !t.named(&best, want) {
			best, found = s, true
		}
		if name == want {
			break
		}
	}
	if !found {
		return nil
	}
	return t.symbol(&best)
}

// CodeAround returns the symbol at or before a link-time address, whatever its size,
// and the code from there to the next symbol of another address, or to the section's
// end: what the kernel's kallsyms takes for the function at the address. Of several
// symbols at one address the name is that of the one that SymbolAt prefers.
func (img *Image) CodeAround(addr uint64) (name string, lo, hi uint64, ok bool) {
	err := img.guard(func() error {
		t := img.table()
		next := sort.Search(t.len(), func(i int) bool { return t.addr(i) > addr })
		if next == 0 {
			return nil
		}
		first := next - 1
		for first > 0 && t.addr(first-1) == t.addr(next-1) {
			first--
		}
		s := t.at(first)
		name, _ = zstr(t.strs, uint64(s.name))
		lo = s.addr
		sec := img.SectionAt(lo)
		if sec == nil {
			return nil
		}
		if hi = sec.Addr + sec.Size; next < t.len() {
			hi = min(hi, t.addr(next))
		}
		ok = addr < hi
		return nil
	})
	return name, lo, hi, ok && err == nil
}

// named reports whether a symbol is a function or one of its clones.
func (t *symbolTable) named(s *sym, want string) bool {
	name, _ := zstr(t.strs, uint64(s.name))
	return name == want || strings.HasPrefix(name, want+".")
}

// Symbols returns all function symbols with a name, in order of their addresses.
func (img *Image) Symbols(name string) (out []*Symbol) {
	_ = guard(func() error {
		out = img.symbolsOf(name)
		return nil
	})
	return out
}

func (img *Image) symbolsOf(name string) []*Symbol {
	t := img.table()
	var out []*Symbol
	for i := range t.len() {
		s := t.at(i)
		if uint64(s.name) < uint64(len(t.strs)) && strings.HasPrefix(string(t.strs[s.name:min(len(t.strs), int(s.name)+len(name)+1)]), name+"\x00") {
			out = append(out, t.symbol(&s))
		}
	}
	return out
}
