package place_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/place"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
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
	marks, err := img.SymbolAddresses("jiffies_64", "_stext", "boot_command_line", "__init_begin", "__init_end", "linux_banner", "runqueues")
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
	for path, want := range map[string]string{
		"drivers/net/tun.ko": "tun", "a/snd-hda-intel.ko.xz": "snd_hda_intel", "x.ko.debug": "x", "plain": "plain",
	} {
		if got := place.ModuleName(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}
