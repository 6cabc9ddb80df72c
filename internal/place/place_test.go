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

func TestModuleName(t *testing.T) {
	for path, want := range map[string]string{
		"drivers/net/tun.ko": "tun", "a/snd-hda-intel.ko.xz": "snd_hda_intel", "x.ko.debug": "x", "plain": "plain",
	} {
		if got := place.ModuleName(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}
