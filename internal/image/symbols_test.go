package image_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
	"github.com/bpfprologue/bpfprologue/internal/image"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

func fromBytes(t testing.TB, data []byte) *image.File {
	t.Helper()
	f, err := image.FromBytes("test", data, nil)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

type testSymbol struct {
	name       string
	addr, size uint64
	typ        elf.SymType
	bind       elf.SymBind
	section    uint16
}

// symbolImage is an image with a symbol table (section 4) and its strings (5).
func symbolImage(t *testing.T, syms []testSymbol) *image.File {
	names := []byte{0}
	table := make([]byte, 24)
	for _, s := range syms {
		table = append(table, dwarftest.Cat(dwarftest.LE32(uint64(len(names))), byte(s.bind)<<4|byte(s.typ), 0, dwarftest.LE16(uint64(s.section)), dwarftest.LE64(dwarftest.TextAddr+s.addr), dwarftest.LE64(s.size))...)
		names = append(names, dwarftest.Cat(s.name)...)
	}
	return fromBytes(t, dwarftest.Image([]dwarftest.CU{{Version: 5, Root: dwarftest.Root()}},
		dwarftest.Section{Name: ".symtab", Type: elf.SHT_SYMTAB, Data: table, Link: 5}, dwarftest.Section{Name: ".strtab", Type: elf.SHT_STRTAB, Data: names}))
}

func TestSymbolAt(t *testing.T) {
	const text = 1 // the section of code
	img := symbolImage(t, []testSymbol{
		{"label", 0, 0, elf.STT_NOTYPE, elf.STB_GLOBAL, text},
		{"local", 0, 0x10, elf.STT_FUNC, elf.STB_LOCAL, text},
		{"weak", 0, 0x10, elf.STT_FUNC, elf.STB_WEAK, text},
		{"global", 0, 0x10, elf.STT_FUNC, elf.STB_GLOBAL, text},
		{"alias", 0, 0x10, elf.STT_FUNC, elf.STB_GLOBAL, text},
		{"object", 0, 0x10, elf.STT_OBJECT, elf.STB_GLOBAL, text},
		{"elsewhere", 0, 0x10, elf.STT_FUNC, elf.STB_GLOBAL, 2},
		{"undefined", 0, 0x10, elf.STT_FUNC, elf.STB_GLOBAL, 0},
		{"inner_label", 0x8, 0, elf.STT_NOTYPE, elf.STB_LOCAL, text},
		{"clone.isra.0", 0x20, 0x10, elf.STT_FUNC, elf.STB_LOCAL, text},
		{"other", 0x20, 0x10, elf.STT_FUNC, elf.STB_GLOBAL, text},
		{"zero_size", 0x40, 0, elf.STT_FUNC, elf.STB_GLOBAL, text},
		{"ifunc", 0x50, 0x10, elf.STT_GNU_IFUNC, elf.STB_GLOBAL, text},
		{"name", 0x60, 4, elf.STT_FUNC, elf.STB_GLOBAL, text},
		{"name", 0x68, 4, elf.STT_FUNC, elf.STB_LOCAL, text},
	})
	for _, tt := range []struct {
		addr uint64
		want string // looked for
		name string
	}{
		{0, "", "global"}, // or alias, which comes later in the file
		{0, "alias", "alias"},
		{0, "local", "local"},
		{0, "weak", "weak"},
		{0, "label", "label"},
		{0x4, "", "global"},
		{0xf, "alias", "alias"},
		{0x10, "", ""},
		{0x8, "", "inner_label"},
		{0x9, "", "global"}, // the label ends where it begins
		{0x20, "clone", "clone.isra.0"},
		{0x2f, "clone", "clone.isra.0"},
		{0x20, "", "other"},
		{0x20, "clon", "other"},
		{0x40, "", "zero_size"},
		{0x41, "", ""},
		{0x5f, "", "ifunc"},
		{0x1000, "", ""},
	} {
		got := ""
		if s := img.SymbolAt(dwarftest.TextAddr+tt.addr, tt.want); s != nil {
			got = s.Name
		}
		if got != tt.name && (got != "alias" || tt.name != "global" || tt.want != "") {
			t.Errorf("SymbolAt(+%#x, %q) is %q, want %q", tt.addr, tt.want, got, tt.name)
		}
	}
	if s := img.SymbolAt(dwarftest.TextAddr, ""); s == nil || s.Name != "global" {
		t.Errorf("of two equal symbols the first of the file is preferred, got %+v", s)
	}
	if s := img.SymbolAt(0, ""); s != nil {
		t.Errorf("a symbol below all code: %+v", s)
	}
	syms := symbolsNamed(img, "name")
	if len(syms) != 2 || syms[0].Addr != dwarftest.TextAddr+0x60 || !syms[0].Global || syms[1].Addr != dwarftest.TextAddr+0x68 || syms[1].Global || syms[1].Size != 4 {
		t.Errorf("Symbols(name) = %+v", syms)
	}
	for _, none := range []string{"nam", "name2", "", "object", "undefined"} {
		if syms := symbolsNamed(img, none); len(syms) != 0 {
			t.Errorf("Symbols(%q) = %+v", none, syms)
		}
	}
}

func symbolsNamed(img *image.File, name string) (out []image.Symbol) {
	for s := range img.Symbols() {
		if s.Name == name {
			out = append(out, s)
		}
	}
	return out
}

// TestBytes: all the bytes that are asked for, or an error.
func TestBytes(t *testing.T) {
	f := fromBytes(t, dwarftest.Image([]dwarftest.CU{{Version: 5, Root: dwarftest.Root()}}))
	for _, tt := range []struct {
		addr, n uint64
		ok      bool
	}{
		{dwarftest.TextAddr, dwarftest.TextSize, true},
		{dwarftest.TextAddr + 8, 8, true},
		{dwarftest.TextAddr + dwarftest.TextSize - 1, 1, true},
		{dwarftest.TextAddr + dwarftest.TextSize - 1, 2, false},
		{dwarftest.TextAddr, dwarftest.TextSize + 1, false},
		{dwarftest.TextAddr, 1 << 40, false},
		{dwarftest.TextAddr, ^uint64(0), false},
		{dwarftest.TextAddr + 1, ^uint64(0), false},
		{0, 1, false},
		{^uint64(0), ^uint64(0), false},
	} {
		d, err := f.Bytes(tt.addr, tt.n)
		if (err == nil) != tt.ok || tt.ok && uint64(len(d)) != tt.n {
			t.Errorf("%d bytes at %#x: %d bytes, %v", tt.n, tt.addr, len(d), err)
		}
	}
}

// TestSymbolIndex: a file takes the index of its own symbols, and no other.
func TestSymbolIndex(t *testing.T) {
	syms := []testSymbol{{"f", 0, 0x10, elf.STT_FUNC, elf.STB_GLOBAL, 1}, {"g", 0x10, 0x10, elf.STT_FUNC, elf.STB_LOCAL, 1}}
	a := symbolImage(t, syms)
	index, err := a.SymbolIndex()
	dwarftest.Must(err)
	if !a.UseSymbolIndex(index) {
		t.Error("an index of the same file was refused after the symbols were read")
	}
	b := symbolImage(t, syms)
	if b.UseSymbolIndex(index[:len(index)-1]) || b.UseSymbolIndex(nil) || !b.UseSymbolIndex(index) {
		t.Error("the index of equal symbols was not taken, or a damaged one was")
	}
	if s := b.SymbolAt(dwarftest.TextAddr+0x18, ""); s == nil || s.Name != "g" {
		t.Errorf("%+v", s)
	}
	if symbolImage(t, syms[:1]).UseSymbolIndex(index) {
		t.Error("the index of other symbols was taken")
	}
}

// TestSymbolsInTheirSections: a symbol that is not in the section that it names is none. A return probe
// at one would be in no code.
func TestSymbolsInTheirSections(t *testing.T) {
	for _, name := range []string{"object-gcc12-O0-dwarf5.o", "run-gcc12-O2-dwarf5.exe"} {
		good, err := fixtures.Bytes(name)
		if err != nil {
			t.Fatal(err)
		}
		file, err := elf.NewFile(bytes.NewReader(good))
		if err != nil {
			t.Fatal(err)
		}
		const symbolSize = 24
		table := file.SectionByType(elf.SHT_SYMTAB)
		for at := int(table.Offset) + symbolSize; at < int(table.Offset+table.Size); at += symbolSize {
			for _, by := range []uint64{1<<64 - 2, 1 << 40, 1 << 63} {
				data := bytes.Clone(good)
				section := int(binary.LittleEndian.Uint16(data[at+6:]))
				value := by
				if section < len(file.Sections) {
					value += file.Sections[section].Addr
				}
				binary.LittleEndian.PutUint64(data[at+8:], value)
				f, err := image.FromBytes("test", data, nil)
				if err != nil {
					t.Fatal(err)
				}
				for s := range f.Symbols() {
					if f.SectionAt(s.Addr) == nil && f.SectionAt(s.Addr-1) == nil {
						t.Errorf("%s: %s at %#x", name, s.Name, s.Addr)
					}
				}
			}
		}
	}
}
