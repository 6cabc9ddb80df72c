package kernelfiles

import (
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
)

// TestFindModule finds files of modules by their names.
func TestFindModule(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	for _, f := range []string{"kernel/fs/ext4/ext4.ko", "kernel/snd-hda.ko.xz", "kernel/snd-hda.ko.debug", "kernel/ext4.txt"} {
		path := filepath.Join(dir, f)
		dwarftest.Must(os.MkdirAll(filepath.Dir(path), 0o700))
		dwarftest.Must(os.WriteFile(path, nil, 0o600))
	}
	dwarftest.Must(os.WriteFile(filepath.Join(other, "late.ko"), nil, 0o600))
	dirs := []string{filepath.Join(dir, "none"), dir, other}
	for name, want := range map[string]string{
		"ext4": filepath.Join(dir, "kernel/fs/ext4/ext4.ko"), "snd_hda": filepath.Join(dir, "kernel/snd-hda.ko.debug"),
		"snd-hda": filepath.Join(dir, "kernel/snd-hda.ko.debug"), "late": filepath.Join(other, "late.ko"),
		"./x": "./x", "y.ko": "y.ko",
	} {
		if got, err := FindModule(name, dirs); got != want || err != nil {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
	}
	_, err := FindModule("ext5", dirs)
	if err == nil || !strings.HasPrefix(err.Error(), "no file of module ext5 found; did you mean ext4?; looked below "+dirs[0]+", "+dir) {
		t.Errorf("ext5: %v", err)
	}
}

// TestKernelRelease finds a release in an image.
func TestKernelRelease(t *testing.T) {
	path := filepath.Join(t.TempDir(), "vmlinux")
	for text, want := range map[string]string{
		"%s version\x00Linux version %s (x)\x00Linux version 6.1.0-13-amd64 (gcc)\n\x00": "6.1.0-13-amd64",
		"Linux version ": "", "Linux version 6": "", "nothing": "",
	} {
		dwarftest.Must(os.WriteFile(path, dwarftest.ELF(dwarftest.Text(), dwarftest.Section{Name: ".rodata", Type: elf.SHT_PROGBITS, Flags: elf.SHF_ALLOC, Addr: 0x500000, Data: []byte(text)}), 0o600))
		got, err := KernelRelease(path)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	dwarftest.Must(os.WriteFile(path, binary.LittleEndian.AppendUint32(nil, 7), 0o600))
	if _, err := KernelRelease(path); err == nil || !strings.HasPrefix(err.Error(), path+": ") {
		t.Errorf("no ELF file: %v", err)
	}
}
