package image

import (
	"debug/elf"

	"github.com/bpfprologue/bpfprologue/internal/bin"
)

// OnlySymbol returns the link-time address of the only symbol of code or data with a name. ok is false if there are several, as variables of C that are
// static have one name in several units; or if the file has no whole table of symbols, which would show it.
func (f *File) OnlySymbol(name string) (addr uint64, ok bool, err error) {
	err = f.Guard(func() error {
		if f.syms.file.SectionByType(elf.SHT_SYMTAB) == nil {
			return nil
		}
		several := false
		for _, t := range f.symbolTables() {
			t.form().eachSym(t.d, func(s *elfSym) {
				if !s.names(&t, len(name)) {
					return
				}
				text, is := bin.CStringAt(t.strs[:min(uint64(s.name)+uint64(len(name))+1, uint64(len(t.strs)))], uint64(s.name))
				if !is || string(text) != name {
					return
				}
				at := s.value + f.symbolBase(&t, s.section)
				several = several || ok && at != addr
				addr, ok = at, true
			})
		}
		ok = ok && !several
		return nil
	})
	return addr, ok, err
}
