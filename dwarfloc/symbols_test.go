package dwarfloc

import (
	"debug/elf"
	"testing"

	"github.com/bpfprologue/bpfprologue/image"
	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
)

type testSymbol struct {
	name       string
	addr, size uint64
	typ        elf.SymType
	bind       elf.SymBind
	section    uint16
}

// symbolImage is an image with a symbol table (section 4) and its strings (5).
func symbolImage(t *testing.T, syms []testSymbol) *Image {
	names := []byte{0}
	table := make([]byte, 24)
	for _, s := range syms {
		table = append(table, dwarftest.Cat(dwarftest.LE32(uint64(len(names))), byte(s.bind)<<4|byte(s.typ), 0, dwarftest.LE16(uint64(s.section)), dwarftest.LE64(dwarftest.TextAddr+s.addr), dwarftest.LE64(s.size))...)
		names = append(names, dwarftest.Cat(s.name)...)
	}
	return testImage(t, []dwarftest.CU{{Version: 5, Root: dwarftest.Root()}},
		dwarftest.Section{Name: ".symtab", Type: elf.SHT_SYMTAB, Data: table, Link: 5}, dwarftest.Section{Name: ".strtab", Type: elf.SHT_STRTAB, Data: names})
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

// TestCloneSymbols: sites of GCC's clones have the function's name and the clone's
// symbol.
func TestCloneSymbols(t *testing.T) {
	img := openFixture(t, "basic-gcc12-O2-dwarf5.elf")
	for name, want := range map[string]string{
		"ring_fill": "ring_fill.isra.0", "pkt_scale": "pkt_scale.constprop.0", "pkt_drain": "pkt_drain.part.0", "queue_check": "queue_check",
	} {
		sites, err := img.Sites(t.Context(), Name(name))
		if err != nil {
			t.Fatal(err)
		}
		found := ""
		for _, s := range sites {
			if s.Kind == Entry {
				found = s.Symbol
			}
		}
		if found != want {
			t.Errorf("the out-of-line code of %s is at symbol %q, want %q", name, found, want)
		}
	}
	s := sitesOf(t, img, "pkt_blame", 1)[0]
	if s.Symbol != "queue_check.cold" {
		t.Errorf("pkt_blame is in %q, want queue_check.cold", s.Symbol)
	}
}

func symbolsNamed(img *Image, name string) (out []image.Symbol) {
	for s := range img.Symbols() {
		if s.Name == name {
			out = append(out, s)
		}
	}
	return out
}
