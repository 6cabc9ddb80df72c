package image

import (
	"debug/elf"
	"encoding/binary"
	"iter"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/bpfprologue/bpfprologue/internal/bin"
	"github.com/bpfprologue/bpfprologue/internal/radix"
)

// Symbol is a function symbol or a label in the file's code.
type Symbol struct {
	Name   string
	Addr   uint64 // link-time address
	Size   uint64 // bytes, or 0 if unknown
	Global bool
	// Label is set if the symbol does not say that it is a function's: one of assembler code, or inside a function.
	Label bool
	// Chooses is set if what is at the address returns that of the function which callers get (STT_GNU_IFUNC).
	Chooses bool
}

// symbolTable has the code symbols as SymbolIndex encodes them: symSize bytes each, by
// address, then by preference.
type symbolTable struct {
	once sync.Once
	data []byte
	strs []byte

	texts  bin.Texts
	recent [recentSymbols]atomic.Pointer[recentSymbol]
}

// recentSymbols is how many symbols are remembered that an address was in: neighbours are in the same ones.
const recentSymbols = 64

// recentSymbol is the symbol with a number.
type recentSymbol struct {
	number int
	Symbol
}

// symSize is the size in bytes of one encoded symbol: address, size, offset of the name,
// rank, flags, two zero bytes.
const symSize = 24

// The flags of an encoded symbol.
const (
	symGlobal = 1 << iota
	symChooses
)

// labelRank is the rank of the labels that are preferred to others.
const labelRank = 4

// sym is a symbol with its name still in the string table.
type sym struct {
	addr, size uint64
	name       uint32
	rank       uint8 // of symbols at one address, the lowest is preferred
	global     bool
	chooses    bool // see Symbol.Chooses
}

func (t *symbolTable) len() int { return len(t.data) / symSize }

func (t *symbolTable) addr(i int) uint64 { return binary.LittleEndian.Uint64(t.data[i*symSize:]) }

func (t *symbolTable) at(i int) sym {
	d := t.data[i*symSize : (i+1)*symSize]
	le := binary.LittleEndian
	return sym{addr: le.Uint64(d), size: le.Uint64(d[8:]), name: le.Uint32(d[16:]), rank: d[20], global: d[21]&symGlobal != 0, chooses: d[21]&symChooses != 0}
}

// text returns a symbol's name in the string table, which may be mapped from the file.
func (t *symbolTable) text(s *sym) string {
	name, _ := t.texts.At(t.strs, uint64(s.name))
	return name
}

// is reports whether a symbol has the name want, and clone whether it is a clone of that function.
func (t *symbolTable) is(s *sym, want string) (is, clone bool) {
	name, _ := bin.CStringAt(t.strs, uint64(s.name))
	if len(name) < len(want) || string(name[:len(want)]) != want {
		return false, false
	}
	return len(name) == len(want), len(name) > len(want) && name[len(want)] == '.'
}

func (t *symbolTable) symbol(s *sym) Symbol {
	return Symbol{Name: t.text(s), Addr: s.addr, Size: s.size, Global: s.global, Label: s.rank >= labelRank, Chooses: s.chooses}
}

// numbered returns the symbol with a number.
func (t *symbolTable) numbered(i int) *Symbol {
	slot := &t.recent[i%recentSymbols]
	r := slot.Load()
	if r == nil || r.number != i {
		s := t.at(i)
		r = &recentSymbol{i, t.symbol(&s)}
		slot.Store(r)
	}
	return &r.Symbol
}

// table returns the code symbols, which it reads once.
func (f *File) table() *symbolTable {
	t := &f.symbols
	t.once.Do(func() {
		tables := f.symbolTables()
		t.strs = stringsOf(tables)
		t.data = f.readSymbols(tables)
	})
	return t
}

// stringsOf returns the strings of all tables, one after the other.
func stringsOf(tables []symbols) []byte {
	if len(tables) == 1 {
		return tables[0].strs // which may be large, and mapped
	}
	var all []byte
	for i := range tables {
		all = append(all, tables[i].strs...)
	}
	return all
}

// sizesOf returns the sizes of the tables, and of their strings, in bytes.
func sizesOf(tables []symbols) (d, strs uint64) {
	for i := range tables {
		d += uint64(len(tables[i].d))
		strs += uint64(len(tables[i].strs))
	}
	return d, strs
}

// readSymbols returns the code symbols in symbol tables, sorted and encoded. Their names are in the
// strings of all tables.
func (f *File) readSymbols(tables []symbols) []byte {
	var syms []sym
	before := 0 // bytes of the strings of tables before
	for i := range tables {
		syms = f.codeSymbols(&tables[i], uint32(before), syms)
		before += len(tables[i].strs)
	}
	// By address, then by rank, then by order in the file: the sort is stable. A rank has three bits. The top three bits of addresses are the same in
	// all code of nearly every image, so that one sort can do without them.
	const rankBits = 3
	differ := uint64(0)
	for i := range syms {
		differ |= syms[i].addr ^ syms[0].addr
	}
	if differ>>(64-rankBits) == 0 {
		syms = radix.Sort(syms, func(s *sym) uint64 { return s.addr<<rankBits | uint64(s.rank) })
	} else {
		syms = radix.Sort(syms, func(s *sym) uint64 { return uint64(s.rank) })
		syms = radix.Sort(syms, func(s *sym) uint64 { return s.addr })
	}
	le := binary.LittleEndian
	out := make([]byte, 0, len(syms)*symSize)
	for i := range syms {
		s := &syms[i]
		out = le.AppendUint64(out, s.addr)
		out = le.AppendUint64(out, s.size)
		out = le.AppendUint32(out, s.name)
		flags := byte(0)
		if s.global {
			flags |= symGlobal
		}
		if s.chooses {
			flags |= symChooses
		}
		out = append(out, s.rank, flags, 0, 0)
	}
	return out
}

// codeSymbols appends the code symbols in a table. before is added to the offsets of their names.
func (f *File) codeSymbols(t *symbols, before uint32, syms []sym) []sym {
	exec := make([]bool, len(t.file.Sections))
	for i, s := range t.file.Sections {
		exec[i] = s.Flags&elf.SHF_EXECINSTR != 0
	}
	form, a, strs := t.form(), f.arch, t.strs
	syms = slices.Grow(syms, len(t.d)/form.symSize()/2)
	form.eachSym(t.d, func(e *elfSym) {
		if int(e.section) >= len(exec) || !exec[e.section] || e.name == 0 || a.CodeMarks && isCodeMark(strs, e.name) {
			return
		}
		if a.LowBit && (e.typ == elf.STT_FUNC || e.typ == elf.STT_GNU_IFUNC) {
			e.value &^= 1
		}
		s := sym{addr: e.value + f.symbolBase(t, e.section), size: e.size, name: before + e.name}
		if in := t.file.Sections[e.section]; s.addr-in.Addr > in.Size {
			return // in no code, but perhaps at its end
		}
		switch e.typ {
		case elf.STT_FUNC:
		case elf.STT_GNU_IFUNC:
			s.chooses = true
		case elf.STT_NOTYPE:
			s.rank = labelRank // assembler code and labels
		default:
			return
		}
		switch e.bind {
		case elf.STB_GLOBAL:
			s.global = true
		case elf.STB_WEAK:
			s.global = true
			s.rank++
		default:
			s.rank += 2
		}
		syms = append(syms, s)
	})
	return syms
}

// isCodeMark reports whether a name is that of a label between code and data ($a, $d.12), or a local one
// of the compiler (.L34).
func isCodeMark(strs []byte, name uint32) bool {
	if uint64(name)+1 >= uint64(len(strs)) {
		return false
	}
	return strs[name] == '$' || strs[name] == '.' && strs[name+1] == 'L'
}

// indexHead is the size in bytes of a symbol index's header: the sizes of the symbol table
// and of its strings, to detect another file's index.
const indexHead = 16

// SymbolIndex returns the code symbols, sorted by address, in a form for UseSymbolIndex.
// For a kernel it saves 15 ms to store this instead of reading and sorting the symbols
// again.
func (f *File) SymbolIndex() (index []byte, err error) {
	err = f.Guard(func() error {
		data := f.table().data
		d, strs := sizesOf(f.symbolTables())
		index = make([]byte, 0, indexHead+len(data))
		index = binary.LittleEndian.AppendUint64(index, d)
		index = binary.LittleEndian.AppendUint64(index, strs)
		index = append(index, data...)
		return nil
	})
	return index, err
}

// UseSymbolIndex makes the file use what SymbolIndex returned earlier for the same file.
// It reports false, and has no effect, if index is another file's. Symbols that have already been
// read stay. The bytes must not change while the File is in use.
func (f *File) UseSymbolIndex(index []byte) (used bool) {
	if len(index) < indexHead || (len(index)-indexHead)%symSize != 0 {
		return false
	}
	_ = f.Guard(func() error {
		tables := f.symbolTables()
		if d, strs := sizesOf(tables); binary.LittleEndian.Uint64(index) != d || binary.LittleEndian.Uint64(index[8:]) != strs {
			return nil
		}
		t := &f.symbols
		t.once.Do(func() { t.data, t.strs = index[indexHead:], stringsOf(tables) })
		used = true
		return nil
	})
	return used
}

// SymbolAt returns the symbol whose code holds a link-time address, or nil: one that nobody may change. Among several,
// it prefers those named want and want's clones (want.isra.0), then functions to labels,
// global ones to local ones, and the first in the file.
func (f *File) SymbolAt(addr uint64, want string) (found *Symbol) {
	_ = f.Guard(func() error {
		found = f.symbolAt(addr, want)
		return nil
	})
	return found
}

func (f *File) symbolAt(addr uint64, want string) *Symbol {
	t := f.table()
	i := sort.Search(t.len(), func(i int) bool { return t.addr(i) > addr }) - 1
	// A label inside a function starts later than the function, so look further back,
	// within reason, for a symbol whose size covers the address.
	var best sym
	found, named := -1, false // its number, and whether it has the name or is a clone
	for n := 0; i >= 0 && n < 64; i, n = i-1, n+1 {
		s := t.at(i)
		inside := s.size != 0 && addr-s.addr < s.size
		if found >= 0 && s.addr != best.addr {
			break
		}
		if !inside && s.size != 0 {
			continue
		}
		if !inside && addr != s.addr {
			continue // a label without a size covers only its own address
		}
		is, clone := t.is(&s, want)
		if found < 0 || is || !named && (s.rank <= best.rank || clone) {
			best, found, named = s, i, is || clone
		}
		if is {
			break
		}
	}
	if found < 0 {
		return nil
	}
	return t.numbered(found)
}

// Symbols returns the code symbols by address. Those at the same address are in SymbolAt's
// order of preference.
func (f *File) Symbols() iter.Seq[Symbol] {
	return func(yield func(Symbol) bool) {
		for i := 0; ; i++ {
			s, ok := f.Symbol(i)
			if !ok || !yield(s) {
				return
			}
		}
	}
}

// FunctionSymbols returns the symbols of functions at link-time addresses [lo, hi), by address.
func (f *File) FunctionSymbols(lo, hi uint64) (out []Symbol) {
	_ = f.Guard(func() error {
		t := f.table()
		for i := sort.Search(t.len(), func(i int) bool { return t.addr(i) >= lo }); i < t.len() && t.addr(i) < hi; i++ {
			if s := t.at(i); s.rank < labelRank {
				out = append(out, t.symbol(&s))
			}
		}
		return nil
	})
	return out
}

// Symbol returns the symbol with a number in the order of Symbols, from 0. ok is false if there are not so many.
func (f *File) Symbol(i int) (s Symbol, ok bool) {
	_ = f.Guard(func() error {
		if t := f.table(); i < t.len() {
			e := t.at(i)
			s, ok = t.symbol(&e), true
		}
		return nil
	})
	return s, ok
}

// Imports reports whether the file names a function or a variable that another one has.
func (f *File) Imports(name string) (is bool) {
	_ = f.Guard(func() error {
		for _, t := range symbolsOf(f.own, elf.SHT_DYNSYM) {
			t.form().eachSym(t.d, func(s *elfSym) {
				if s.section == elf.SHN_UNDEF && !is {
					text, ok := bin.CStringAt(t.strs, uint64(s.name))
					is = ok && string(text) == name
				}
			})
		}
		return nil
	})
	return is
}

// CodeRange returns the symbol at or before a link-time address, whatever its size, and
// the link-time addresses [lo, hi) from there to the next symbol at another address, or
// to the section's end. That is what the kernel's kallsyms takes for the function at the
// address. If several symbols are at lo, name is the one that SymbolAt prefers.
func (f *File) CodeRange(addr uint64) (name string, lo, hi uint64, ok bool) {
	err := f.Guard(func() error {
		t := f.table()
		next := sort.Search(t.len(), func(i int) bool { return t.addr(i) > addr })
		if next == 0 {
			return nil
		}
		first := next - 1
		for first > 0 && t.addr(first-1) == t.addr(next-1) {
			first--
		}
		s := t.at(first)
		name = t.text(&s)
		lo = s.addr
		sec := f.SectionAt(lo)
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
