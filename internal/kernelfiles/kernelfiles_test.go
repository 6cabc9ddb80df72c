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

// TestFindKernel finds kernels where distributions put them: each place is used if those before it have
// none.
func TestFindKernel(t *testing.T) {
	root, debug, own := t.TempDir(), t.TempDir(), t.TempDir()
	const release = "6.1.0-13-amd64"
	places := []string{
		filepath.Join(own, "usr/lib/modules", release, "vmlinux"),    // the user's own
		filepath.Join(debug, "boot/vmlinux-"+release),                // Debian, Ubuntu
		filepath.Join(debug, "lib/modules", release, "vmlinux"),      // Fedora, Red Hat
		filepath.Join(debug, "usr/lib/modules", release, "vmlinux"),  // Arch
		filepath.Join(root, "lib/modules", release, "build/vmlinux"), // as built; Arch's headers
		filepath.Join(root, "boot/vmlinux-"+release),                 //
		filepath.Join(root, "lib/modules", release, "vmlinux.xz"),    // SUSE, with debug information by its build ID
		filepath.Join(root, "boot/vmlinux-"+release+".gz"),           // older SUSE
	}
	_, err := findKernel(release, []string{own, debug}, root)
	if err == nil || !strings.Contains(err.Error(), "no vmlinux of the running kernel "+release+" found; looked at "+own) {
		t.Errorf("%v", err)
	}
	for i := len(places) - 1; i >= 0; i-- {
		dwarftest.Must(os.MkdirAll(filepath.Dir(places[i]), 0o700))
		dwarftest.Must(os.WriteFile(places[i], nil, 0o600))
		if got, err := findKernel(release, []string{own, debug}, root); got != places[i] || err != nil {
			t.Errorf("%s, %v, want %s", got, err, places[i])
		}
	}
	dirs := ModuleDirs(release, "", []string{own, debug})
	if want := filepath.Join(own, "lib/modules", release); dirs[0] != want || len(dirs) != 5 {
		t.Errorf("%s", dirs)
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
