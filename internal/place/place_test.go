package place_test

import (
	"debug/elf"
	"os"
	"path/filepath"
	"testing"

	"github.com/bpfprologue/bpfprologue/arch"
	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/elfwrite"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/place"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

func TestIsKernel(t *testing.T) {
	for name, want := range map[string]bool{
		"basic-gcc12-O2-dwarf5.elf": true, "module-gcc12-O2-dwarf5.ko": true, "run-gcc12-O2-dwarf5.exe": false, "lib-gcc12-O2-dwarf5.elf": false,
	} {
		if got, err := place.IsKernel(testenv.Fixture(t, name)); got != want || err != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// TestStays: variables stay, but not those that a kernel frees when it has booted.
func TestStays(t *testing.T) {
	img := testenv.Open(t, testenv.Vmlinux(t))
	marks, err := inside.File(img).SymbolAddresses("jiffies_64", "_stext", "boot_command_line", "__init_begin", "__init_end", "linux_banner", "runqueues")
	if err != nil {
		t.Fatal(err)
	}
	stays, err := place.Stays(img)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{
		"jiffies_64": true, "_stext": true, "linux_banner": true, "boot_command_line": false, "__init_begin": false,
		"runqueues": false, // of each processor
	} {
		addr, ok := marks[name]
		if !ok {
			t.Errorf("no symbol %s", name)
		}
		if got := stays(addr, 8); got != want {
			t.Errorf("%s at %#x stays: %v", name, addr, got)
		}
	}
	if stays(marks["__init_begin"]-4, 8) || stays(0, 8) || stays(1<<63, 8) {
		t.Error("memory that is not all of the image stays")
	}
	for _, name := range []string{"module-gcc12-O2-dwarf5.ko", "run-gcc12-O2-dwarf5.exe"} {
		if f, err := place.Stays(testenv.Fixture(t, name)); f != nil || err != nil {
			t.Errorf("%s: memory stays, %v", name, err)
		}
	}
}

func TestModuleName(t *testing.T) {
	d, err := fixtures.Bytes("module-gcc12-O2-dwarf5.ko")
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"drivers/net/tun.ko": "tun", "a/snd-hda-intel.ko.xz": "snd_hda_intel", "x.ko.debug": "x", "plain": "plain",
	} {
		img, err := dwarfloc.FromBytes(path, d, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := place.ModuleName(img); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	// A kernel's module says its name, so its file, or its pack, can have any.
	for _, said := range []string{"tun_x", "../../x"} {
		file := elfwrite.File{Arch: arch.ByName("amd64"), Type: elf.ET_REL, Sections: []elfwrite.Section{
			{Name: ".modinfo", Type: elf.SHT_PROGBITS, Data: []byte("license=GPL\x00name=" + said + "\x00")},
			{Name: ".BTF", Type: elf.SHT_PROGBITS, Flags: elf.SHF_ALLOC, Addr: 0x1000, Data: []byte("\x9f\xeb\x01\x00\x18\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00")},
		}}
		path := filepath.Join(t.TempDir(), "0123.pack")
		if err := os.WriteFile(path, file.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		img, err := dwarfloc.OpenBTF(path, arch.ByName("amd64"))
		if err != nil {
			t.Fatal(err)
		}
		defer img.Close()
		want := said
		if said != "tun_x" {
			want = "0123.pack"
		}
		if got := place.ModuleName(img); got != want {
			t.Errorf("%q: %q, want %q", said, got, want)
		}
	}
}
