package agree

import (
	"debug/elf"
	"os"
	"path/filepath"
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/btfinline"
	"github.com/bpfprologue/bpfprologue/internal/elfwrite"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

// TestBTFInline writes .BTF.inline of a whole kernel, reads it, and compares it with the debug information: every instance, and every
// location that the format can say.
func TestBTFInline(t *testing.T) {
	img := testenv.Open(t, testenv.Vmlinux(t))
	section, sum, err := btfinline.Of(t.Context(), img, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(sum)
	f := inside.File(img)
	types, err := f.SectionContents(".BTF")
	if err != nil {
		t.Fatal(err)
	}
	// What a reader needs of the image: where code is, and the types.
	out := elfwrite.File{Arch: img.Arch(), Type: elf.ET_EXEC}
	for _, s := range f.Sections() {
		if s.Exec {
			out.Sections = append(out.Sections, elfwrite.Section{Name: s.Name, Type: elf.SHT_NOBITS, Flags: elf.SHF_ALLOC | elf.SHF_EXECINSTR, Addr: s.Addr, Size: s.Size})
		}
	}
	out.Sections = append(out.Sections, elfwrite.Section{Name: ".BTF", Type: elf.SHT_PROGBITS, Data: types}, elfwrite.Section{Name: ".BTF.inline", Type: elf.SHT_PROGBITS, Data: section})
	path := filepath.Join(t.TempDir(), "image")
	if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	read, err := dwarfloc.OpenBTF(path, img.Arch())
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	a, err := btfinline.AgreeInline(t.Context(), read, img)
	if err != nil {
		t.Fatal(err)
	}
	left := 0
	for why, n := range sum.LeftOut {
		if why != "not located" {
			left += n
		}
	}
	if a.Both != sum.Instances || a.OnlyBTF+a.Only+a.Other+a.ByBTF != 0 || a.Same != sum.Located || a.ByDWARF != left || a.Both < 300_000 || a.Same < 300_000 {
		t.Errorf("%+v, of %v", a, sum)
	}
}
