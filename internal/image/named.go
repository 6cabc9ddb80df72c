package image

import (
	"debug/elf"
	"encoding/binary"
	"maps"
	"slices"
	"sync"

	"github.com/bpfprologue/bpfprologue/internal/bin"
)

// asked are names that SymbolAddresses was asked for, with the symbols that have them: a kernel's table has 200,000, and each question
// asks for the same ones.
type asked struct {
	mu      sync.Mutex
	packed  []byte           // what UseAsked got, until it is needed
	known   map[string]place // also of names that no symbol has
	changed bool             // since UseAsked
	last    byte             // what was read last
}

// place is where a symbol is: the number of its table, from 1, and its number there. The zero place is that of none.
type place struct{ table, number uint64 }

// SymbolAddresses returns the link-time addresses of symbols, for code and data, by name.
// If several symbols have one name, it prefers a global one, then the first in the file.
// Names that the file does not have are left out.
func (f *File) SymbolAddresses(names ...string) (out map[string]uint64, err error) {
	a := &f.asked
	a.mu.Lock()
	defer a.mu.Unlock()
	out = make(map[string]uint64)
	err = f.Guard(func() error {
		tables := f.symbolTables()
		if a.known == nil {
			a.known = unpackAsked(a.packed, tables)
			a.packed = nil
		}
		var unknown []string
		for _, n := range names {
			at, ok := a.known[n]
			switch addr, is := f.symbolIn(tables, at, n); {
			case ok && at == place{}:
				a.read(tables)
			case is:
				out[n] = addr
			default:
				unknown = append(unknown, n)
			}
		}
		if len(unknown) == 0 {
			return nil
		}
		a.changed = true
		found := findNames(tables, unknown)
		for _, n := range unknown {
			a.known[n] = found[n]
			if addr, ok := f.symbolIn(tables, found[n], n); ok {
				out[n] = addr
			}
		}
		return nil
	})
	return out, err
}

// Asked returns what names SymbolAddresses has been asked for, in a form for UseAsked, and whether that is more than UseAsked knew.
func (f *File) Asked() (packed []byte, more bool) {
	a := &f.asked
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.changed {
		return nil, false
	}
	err := f.Guard(func() error {
		d, strs := sizesOf(f.symbolTables())
		packed = binary.LittleEndian.AppendUint64(nil, d)
		packed = binary.LittleEndian.AppendUint64(packed, strs)
		return nil
	})
	for _, n := range slices.Sorted(maps.Keys(a.known)) {
		packed = binary.AppendUvarint(packed, uint64(len(n)))
		packed = append(packed, n...)
		packed = binary.AppendUvarint(packed, a.known[n].table)
		packed = binary.AppendUvarint(packed, a.known[n].number)
	}
	return packed, err == nil
}

// UseAsked makes SymbolAddresses know what Asked returned earlier for the same file. A symbol that has another name is looked for
// again. The bytes must not change while the File is in use.
func (f *File) UseAsked(packed []byte) {
	a := &f.asked
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known == nil {
		a.packed = packed
	}
}

// unpackAsked returns what Asked packed. Nothing is known if that is another file's, or damaged.
func unpackAsked(packed []byte, tables []symbols) map[string]place {
	b := bin.Reader{D: packed}
	known := make(map[string]place)
	if d, strs := sizesOf(tables); b.U64() != d || b.U64() != strs {
		return known
	}
	for b.P < len(b.D) && !b.Bad {
		name := b.Bytes(b.ULEB())
		known[string(name)] = place{b.ULEB(), b.ULEB()}
	}
	if b.Bad {
		clear(known)
	}
	return known
}

// read reads the ends of symbol tables, so that a file that was cut is found to be.
func (a *asked) read(tables []symbols) {
	for i := range tables {
		if d := tables[i].d; len(d) > 0 {
			a.last = d[len(d)-1]
		}
	}
}

// symbolIn returns the address of the symbol at a place. ok is false if none is there that has the name.
func (f *File) symbolIn(tables []symbols, at place, name string) (addr uint64, ok bool) {
	if at.table == 0 || at.table > uint64(len(tables)) {
		return 0, false
	}
	t := &tables[at.table-1]
	form := t.form()
	size := uint64(form.symSize())
	if at.number >= uint64(len(t.d))/size {
		return 0, false
	}
	s := form.sym(t.d[at.number*size:])
	if !s.names(t, len(name)) {
		return 0, false
	}
	text, ok := bin.CStringAt(t.strs, uint64(s.name))
	return s.value + f.symbolBase(t, s.section), ok && string(text) == name
}

// names reports whether a symbol is one of code or data whose name can have so many bytes.
func (s *elfSym) names(t *symbols, length int) bool {
	return s.section != elf.SHN_UNDEF && s.typ != elf.STT_FILE && s.typ != elf.STT_SECTION && uint64(s.name)+uint64(length) < uint64(len(t.strs))
}

// findNames looks for symbols by their names.
func findNames(tables []symbols, names []string) map[string]place {
	want := make(map[string]bool, len(names))
	longest := 0
	var begins [1 << 10]bool // of the wanted names, by their beginnings
	var letters [256]bool    // and by their first bytes
	for _, n := range names {
		letters[(n + "\x00")[0]] = true
		want[n] = true
		longest = max(longest, len(n))
		begins[beginning([]byte(n+"\x00"))%uint64(len(begins))] = true
	}
	out := make(map[string]place)
	global := make(map[string]bool) // names of which a global symbol was found: no other one counts then
	take := func(t *symbols, s *elfSym, at place) {
		if !s.names(t, 0) {
			return
		}
		// Read no more than the longest name.
		text, ok := bin.CStringAt(t.strs[:min(uint64(s.name)+uint64(longest)+1, uint64(len(t.strs)))], uint64(s.name))
		if !ok || !want[string(text)] {
			return
		}
		name := string(text)
		if _, known := out[name]; !known || s.bind != elf.STB_LOCAL && !global[name] {
			out[name] = at
			if s.bind != elf.STB_LOCAL {
				global[name] = true
			}
		}
	}
	for i := range tables {
		t := &tables[i]
		form := t.form()
		size := form.symSize()
		first := t.globals / size
		for _, part := range [...]struct {
			d     []byte
			first int
		}{{t.d[t.globals:], first}, {t.d[:t.globals], 0}} {
			for n, d := part.first, part.d; len(d) >= size && len(global) < len(want); n, d = n+1, d[size:] {
				// Most symbols are not wanted.
				name := uint64(form.u32(d))
				if name >= uint64(len(t.strs)) || !letters[t.strs[name]] || !begins[beginning(t.strs[name:])%uint64(len(begins))] {
					continue
				}
				s := form.sym(d)
				take(t, &s, place{uint64(i + 1), uint64(n)})
			}
		}
	}
	return out
}

// beginning returns a number that is the same for names that begin with the same 16 bytes, or are
// the same and shorter.
func beginning(name []byte) uint64 {
	var words [2]uint64
	for i := range words {
		var w uint64
		if len(name) >= 8 {
			w, name = binary.LittleEndian.Uint64(name), name[8:]
		} else {
			var b [8]byte
			copy(b[:], name)
			w, name = binary.LittleEndian.Uint64(b[:]), nil
		}
		// The lowest byte that is 0 ends the name: nothing after it counts.
		if end := (w - 0x0101010101010101) &^ w & 0x8080808080808080; end != 0 {
			words[i] = w & (end&-end>>7 - 1)
			break
		}
		words[i] = w
	}
	const odd = 0x9e3779b97f4a7c15 // 2^64 divided by the golden ratio: it spreads low bits upwards
	h := (words[0] ^ words[1]*odd) * odd
	return h >> 32
}
