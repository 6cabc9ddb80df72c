package image

import (
	"bytes"
	"debug/elf"
	"sync"
)

// Fedora and Red Hat strip programs and libraries, and put the names of functions that .dynsym does not
// have into the section .gnu_debugdata: an ELF file, compressed with xz, with a .symtab and without
// contents ("MiniDebugInfo" in GDB's manual). It has no other debug information.

// mini is what is read of it.
type mini struct {
	once    sync.Once
	symbols []symbols
}

// miniSymbols returns the symbol table in .gnu_debugdata, which it reads once. What is damaged adds
// nothing.
func (f *File) miniSymbols() []symbols {
	f.mini.once.Do(func() {
		src, err := f.miniFile()
		if err != nil || src == nil {
			return
		}
		f.mini.symbols = symbolsOf(*src, elf.SHT_SYMTAB)
	})
	return f.mini.symbols
}

// miniFile returns the file in .gnu_debugdata, or nil if there is none of this image.
func (f *File) miniFile() (*source, error) {
	sec := f.own.file.Section(".gnu_debugdata")
	if sec == nil {
		return nil, nil
	}
	packed, err := f.own.sectionData(sec)
	if err != nil {
		return nil, err
	}
	path := f.Path() + " (.gnu_debugdata)"
	d, err := unpackWhole(path, packed, f.own.budget)
	if err != nil {
		return nil, err
	}
	file, err := elf.NewFile(bytes.NewReader(d))
	if err != nil {
		return nil, err
	}
	own := f.own.file
	if file.Machine != own.Machine || file.Class != own.Class || file.Data != own.Data || file.Type != own.Type {
		return nil, nil
	}
	return &source{path, file, d, f.own.budget}, nil
}
