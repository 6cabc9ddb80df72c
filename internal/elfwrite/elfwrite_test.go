package elfwrite_test

import (
	"bytes"
	"debug/elf"
	"testing"

	"github.com/bpfprologue/bpfprologue/arch"
	"github.com/bpfprologue/bpfprologue/internal/elfwrite"
)

// TestBytes has package elf read what is written, in each width and byte order.
func TestBytes(t *testing.T) {
	for _, name := range []string{"amd64", "i386", "s390x"} {
		a := arch.ByName(name)
		f := elfwrite.File{
			Arch: a, Type: elf.ET_EXEC, Entry: 0x1008, Flags: 3, Programs: make([]byte, 112), ProgramSize: 56,
			Sections: []elfwrite.Section{
				{Name: ".text", Type: elf.SHT_NOBITS, Flags: elf.SHF_ALLOC | elf.SHF_EXECINSTR, Addr: 0x1000, Offset: 0x77, Size: 0x20, Align: 4096},
				{Name: ".note", Type: elf.SHT_NOTE, Align: 4, Data: elfwrite.Note(a, "GNU", 3, []byte{1, 2, 3, 4, 5})},
				{Name: ".odd", Type: elf.SHT_PROGBITS, Align: 1, Data: []byte{9}},
			},
			Symbols: []elfwrite.Symbol{
				{Name: "global", Addr: 0x1008, Size: 8, Type: elf.STT_FUNC, In: ".text"},
				{Name: "absolute", Addr: 0x20},
				{Name: "local", Addr: 0x1010, Type: elf.STT_OBJECT, Local: true, In: ".text"},
			},
			Last: []elfwrite.Section{{Name: ".last", Type: elf.SHT_PROGBITS, Align: elfwrite.MaxAlign, Data: []byte("the end")}},
		}
		b := f.Bytes()
		got, err := elf.NewFile(bytes.NewReader(b))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got.Type != elf.ET_EXEC || got.Machine != a.Machine || got.Entry != 0x1008 {
			t.Errorf("%s: %+v", name, got.FileHeader)
		}
		if s := got.Section(".text"); s.Addr != 0x1000 || s.Offset != 0x77 || s.Size != 0x20 || s.Addralign != 4096 || s.Type != elf.SHT_NOBITS {
			t.Errorf("%s: .text is %+v", name, s.SectionHeader)
		}
		if d, err := got.Section(".note").Data(); err != nil || len(d) != 24 || string(d[12:16]) != "GNU\x00" || !bytes.Equal(d[16:], []byte{1, 2, 3, 4, 5, 0, 0, 0}) {
			t.Errorf("%s: the note is %q, %v", name, d, err)
		}
		last := got.Sections[len(got.Sections)-1]
		if last.Name != ".last" || last.Offset%elfwrite.MaxAlign != 0 || last.Offset != f.Last[0].Offset || string(b[last.Offset:]) != "the end" {
			t.Errorf("%s: .last is %+v", name, last.SectionHeader)
		}
		symbols, err := got.Symbols()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want := []elf.Symbol{
			{Name: "local", Info: elf.ST_INFO(elf.STB_LOCAL, elf.STT_OBJECT), Section: 1, Value: 0x1010},
			{Name: "global", Info: elf.ST_INFO(elf.STB_GLOBAL, elf.STT_FUNC), Section: 1, Value: 0x1008, Size: 8},
			{Name: "absolute", Info: elf.ST_INFO(elf.STB_GLOBAL, elf.STT_NOTYPE), Section: elf.SHN_ABS, Value: 0x20},
		}
		for i, s := range symbols {
			if i >= len(want) || s != want[i] {
				t.Errorf("%s: symbol %d is %+v, want %+v", name, i, s, want)
			}
		}
	}
}
