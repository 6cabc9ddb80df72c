package agree

import (
	"debug/elf"
	"encoding/hex"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/elfwrite"
	"github.com/bpfprologue/bpfprologue/internal/inside"
)

// InlineImage returns a file that has what dwarfloc.OpenBTF reads of an image, and nothing else: its build ID, its types with a section
// .BTF.inline, where its code is, and its symbols.
func InlineImage(img *dwarfloc.Image, section []byte) ([]byte, error) {
	f := inside.File(img)
	types, err := f.SectionContents(".BTF")
	if err != nil {
		return nil, err
	}
	id, err := hex.DecodeString(img.BuildID())
	if err != nil {
		return nil, err
	}
	out := elfwrite.File{Arch: img.Arch(), Type: elf.ET_EXEC, Sections: []elfwrite.Section{
		{Name: ".note.gnu.build-id", Type: elf.SHT_NOTE, Flags: elf.SHF_ALLOC, Align: 4, Data: elfwrite.Note(img.Arch(), "GNU", 3, id)},
	}}
	code := make(map[string]bool)
	for _, s := range f.Sections() {
		if s.Exec {
			code[s.Name] = true
			out.Sections = append(out.Sections, elfwrite.Section{Name: s.Name, Type: elf.SHT_NOBITS, Flags: elf.SHF_ALLOC | elf.SHF_EXECINSTR, Addr: s.Addr, Size: s.Size})
		}
	}
	for s := range f.Symbols() {
		if in := f.SectionAt(s.Addr); in != nil && code[in.Name] {
			out.Symbols = append(out.Symbols, elfwrite.Symbol{Name: s.Name, Addr: s.Addr, Size: s.Size, Type: elf.STT_FUNC, In: in.Name})
		}
	}
	out.Sections = append(out.Sections, elfwrite.Section{Name: ".BTF", Type: elf.SHT_PROGBITS, Data: types}, elfwrite.Section{Name: ".BTF.inline", Type: elf.SHT_PROGBITS, Data: section})
	return out.Bytes(), nil
}
