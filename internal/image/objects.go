package image

import (
	"bytes"
	"debug/elf"
)

// Objects returns the symbols of data whose names have a prefix, in the file's order.
func (f *File) Objects(prefix string) (out []Symbol, err error) {
	err = f.Guard(func() error {
		for _, t := range f.symbolTables() {
			t.form().eachSym(t.d, func(s *elfSym) {
				if s.typ != elf.STT_OBJECT || s.section == elf.SHN_UNDEF || uint64(s.name) >= uint64(len(t.strs)) {
					return
				}
				name := t.strs[s.name:]
				if !bytes.HasPrefix(name, []byte(prefix)) {
					return
				}
				if n := bytes.IndexByte(name, 0); n >= 0 {
					out = append(out, Symbol{Name: string(name[:n]), Addr: s.value + f.symbolBase(&t, s.section), Size: s.size, Global: s.bind != elf.STB_LOCAL})
				}
			})
		}
		return nil
	})
	return out, err
}
