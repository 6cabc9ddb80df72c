package image

import (
	"debug/elf"
	"sync"
)

// thumb is whether a file has code in Thumb, once that was asked for.
type thumb struct {
	once sync.Once
	is   bool
}

// Instructions returns the name of the instructions in the file: that of its architecture, but "thumb" for
// 32-bit Arm with functions of that instruction set. The lowest bit of the symbol of such a function is set, and
// of the entry point (ELF for the Arm Architecture, section 5.5.3).
func (f *File) Instructions() string {
	a := f.Arch()
	if !a.LowBit {
		return a.Name
	}
	f.thumb.once.Do(func() {
		f.thumb.is = true // unless it can be read that it is not
		_ = f.Guard(func() error {
			f.thumb.is = f.own.file.Entry&1 != 0 || f.hasThumb()
			return nil
		})
	})
	if f.thumb.is {
		return "thumb"
	}
	return a.Name
}

func (f *File) hasThumb() (is bool) {
	tables := f.symbolTables()
	for i := range tables {
		t := &tables[i]
		t.form().eachSym(t.d, func(e *elfSym) {
			is = is || e.value&1 != 0 && (e.typ == elf.STT_FUNC || e.typ == elf.STT_GNU_IFUNC) && e.section != 0
		})
	}
	return is
}
