package image_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
	"github.com/bpfprologue/bpfprologue/internal/image"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

const (
	aModule     = "module-gcc12-O2-dwarf5.ko"
	elfRelaSize = 24
	elfSymSize  = 24
	layoutLimit = 1 << 31 // of the addresses that package image gives
)

func fixtureBytes(t testing.TB, name string) []byte {
	t.Helper()
	d, err := fixtures.Bytes(name)
	dwarftest.Must(err)
	return d
}

func fixture(t testing.TB, name string) *image.File { return fromBytes(t, fixtureBytes(t, name)) }

// headerOf returns the header of a section of an ELF file in memory.
func headerOf(t testing.TB, data []byte, name string) []byte {
	t.Helper()
	file, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range file.Sections {
		if s.Name == name {
			at := int(binary.LittleEndian.Uint64(data[40:])) + 64*i
			return data[at : at+64]
		}
	}
	t.Fatalf("no section %s", name)
	return nil
}

// TestLayout: each section of a relocatable file has its own addresses, code first.
func TestLayout(t *testing.T) {
	for _, name := range fixtures.Relocatable() {
		img := fixture(t, name)
		if !img.IsRelocatable() {
			t.Errorf("%s: not relocatable", name)
		}
		if img.SectionAt(0) != nil {
			t.Errorf("%s: a section holds address 0", name)
		}
		secs := img.Sections()
		data := uint64(1 << 63) // where the first section without code is
		for i, s := range secs {
			if !s.Exec {
				data = min(data, s.Addr)
			}
			for _, o := range secs[:i] {
				if s.Addr <= o.Addr+o.Size && o.Addr <= s.Addr+s.Size {
					t.Errorf("%s: %+v and %+v touch", name, o, s)
				}
			}
		}
		for _, s := range secs {
			if s.Exec && s.Addr >= data {
				t.Errorf("%s: %s has code and comes after data", name, s.Name)
			}
		}
	}
	if img := fixture(t, "basic-gcc12-O2-dwarf5.elf"); img.IsRelocatable() {
		t.Error("a linked image is taken for a relocatable file")
	}
}

// TestRelocationErrors: damage in what a relocatable file needs is an error that
// says where.
func TestRelocationErrors(t *testing.T) {
	const table = ".rela.debug_info"
	for _, tt := range []struct {
		name   string
		change func(data []byte)
		want   string
	}{
		{"type", func(d []byte) {
			binary.LittleEndian.PutUint32(dwarftest.SectionOf(t, d, table)[8:], uint32(elf.R_X86_64_GOTPCREL))
		},
			".rela.debug_info+0x0: unknown relocation type 9 (R_X86_64_GOTPCREL)"},
		{"place", func(d []byte) { binary.LittleEndian.PutUint64(dwarftest.SectionOf(t, d, table)[elfRelaSize:], 1<<60) },
			".rela.debug_info+0x18: the relocation is for offset 0x1000000000000000 of .debug_info, which has "},
		{"last byte", func(d []byte) {
			binary.LittleEndian.PutUint64(dwarftest.SectionOf(t, d, table)[elfRelaSize:], uint64(len(dwarftest.SectionOf(t, d, ".debug_info"))-1))
		}, ".rela.debug_info+0x18: the relocation is for offset "},
		{"symbol", func(d []byte) { binary.LittleEndian.PutUint32(dwarftest.SectionOf(t, d, table)[12:], 1<<30) },
			".rela.debug_info+0x0: the relocation names symbol 1073741824, and there are "},
		{"value", func(d []byte) { binary.LittleEndian.PutUint64(dwarftest.SectionOf(t, d, table)[16:], 1<<40) },
			".rela.debug_info+0x0: R_X86_64_32 does not hold the value 0x10000000000"},
		{"section of a symbol", func(d []byte) {
			binary.LittleEndian.PutUint16(dwarftest.SectionOf(t, d, ".symtab")[elfSymSize+6:], 0xfe00)
		},
			".symtab+0x18: the symbol is in section 65024, and there are "},
		{"without addends", func(d []byte) { binary.LittleEndian.PutUint32(headerOf(t, d, table)[4:], uint32(elf.SHT_REL)) },
			".rela.debug_info+0x0: unsupported relocations without addends (SHT_REL): the ABI of amd64 has none"},
		{"no symbol table", func(d []byte) { binary.LittleEndian.PutUint32(headerOf(t, d, table)[40:], 1) },
			"the relocations name section 1 as their symbol table, which is none"},
		{"alignment", func(d []byte) { binary.LittleEndian.PutUint64(headerOf(t, d, ".text")[48:], 3<<20) },
			".text+0x0: invalid size or alignment"},
		{"size", func(d []byte) { binary.LittleEndian.PutUint64(headerOf(t, d, ".bss")[32:], 1<<62) },
			".bss+0x0: invalid size or alignment"},
		{"sizes", func(d []byte) { binary.LittleEndian.PutUint64(headerOf(t, d, ".bss")[32:], layoutLimit-1) },
			".bss+0x0: the sections are too large for a relocatable file"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			data := fixtureBytes(t, aModule)
			tt.change(data)
			img, err := image.FromBytes("test", data, nil)
			if err == nil {
				_, err = img.DebugSections()
			}
			if err == nil {
				t.Fatalf("accepted: %v", img)
			}
			if want := "test: " + tt.want; !strings.HasPrefix(err.Error(), want) {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		})
	}
}

// TestModuleAddressOf: symbols of data have their section's address too.
func TestModuleAddressOf(t *testing.T) {
	img := fixture(t, aModule)
	all, err := img.SymbolAddresses("ring_zero", "toy_ticks")
	addr, ok := all["ring_zero"]
	if sec := img.SectionAt(addr); err != nil || !ok || sec == nil || sec.Name != ".data" {
		t.Errorf("%#x, %v, %v, in section %+v", addr, ok, err, sec)
	}
	if addr, ok := all["toy_ticks"]; ok {
		t.Errorf("a symbol of another file: %#x", addr)
	}
}
