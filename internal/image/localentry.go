package image

import (
	"debug/elf"
	"slices"
	"sort"
	"sync"

	"github.com/bpfprologue/bpfprologue/internal/radix"
)

// localEntries are the second entries of functions (64-Bit ELF V2 ABI Specification for Power 1.5, section 3.4.1):
// the first one computes the address of the function's data from that of the code, and leads on to the second.
// Callers that have the same data begin there.
type localEntries struct {
	once sync.Once
	list []localEntry
}

// localEntry is a function's first entry, and its second: link-time addresses.
type localEntry struct{ first, second uint64 }

// LocalEntry returns the second entry, a link-time address, of the function that has an address at or after its
// first entry and before the second. ok is false if there is none, and on most architectures.
func (f *File) LocalEntry(addr uint64) (second uint64, ok bool) {
	if !f.arch.LocalEntries {
		return 0, false
	}
	f.locals.once.Do(func() {
		_ = f.Guard(func() error {
			f.locals.list = f.readLocalEntries()
			return nil
		})
	})
	list := f.locals.list
	i := sort.Search(len(list), func(i int) bool { return list[i].first > addr }) - 1
	if i < 0 || addr >= list[i].second {
		return 0, false
	}
	return list[i].second, true
}

func (f *File) readLocalEntries() (out []localEntry) {
	for _, t := range f.symbolTables() {
		t.form().eachSym(t.d, func(s *elfSym) {
			// The upper three bits of st_other: 0 and 1 mean that both entries are one, others a power of two in
			// bytes, and 7 is reserved.
			if n := s.other >> 5; s.typ == elf.STT_FUNC && s.section != elf.SHN_UNDEF && n >= 2 && n < 7 {
				first := s.value + f.symbolBase(&t, s.section)
				out = append(out, localEntry{first, first + 1<<n})
			}
		})
	}
	out = radix.Sort(out, func(e *localEntry) uint64 { return e.first })
	return slices.CompactFunc(out, func(a, b localEntry) bool { return a.first == b.first })
}
