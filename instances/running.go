package instances

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
)

// Errors of loading and attaching, for errors.Is.
var (
	// ErrOtherImage: what runs is not what the image describes.
	ErrOtherImage = errors.New("the image is not what runs")
	// ErrNotSupported: the running kernel lacks what is needed.
	ErrNotSupported = errors.New("not supported by the running kernel")
)

// CheckKernel compares the running kernel's build ID with the image's. Another one is
// an error with both: every address of the image would be wrong.
func CheckKernel(img *dwarfloc.Image) error {
	notes, err := os.ReadFile("/sys/kernel/notes")
	if err != nil {
		return fmt.Errorf("the running kernel's build ID: %w", err)
	}
	running := dwarfloc.BuildIDIn(notes, img.BigEndian())
	switch {
	case running == "":
		return fmt.Errorf("/sys/kernel/notes: no build ID")
	case running != img.BuildID():
		return fmt.Errorf("%w: the running kernel has build ID %s, %s has %s; give the vmlinux of this kernel's debug package", ErrOtherImage, running, img.Path(), orNone(img.BuildID()))
	}
	return nil
}

func orNone(id string) string {
	if id == "" {
		return "none"
	}
	return id
}

// KernelSlide is how far the running kernel's code is from the image's link-time
// addresses, in bytes: 0 without KASLR. It compares a symbol of the image with
// /proc/kallsyms: _stext, which all architectures have, or _text.
func KernelSlide(img *dwarfloc.Image) (uint64, error) {
	for _, name := range []string{"_stext", "_text"} {
		linked, ok, err := img.AddressOf(name)
		if err != nil {
			return 0, err
		}
		if !ok {
			continue
		}
		running, err := kallsym(name)
		if err != nil {
			return 0, err
		}
		if running != 0 {
			return running - linked, nil
		}
	}
	return 0, errors.New("/proc/kallsyms shows no address of _stext or _text: that needs root, and kernel.kptr_restrict of 0 or 1")
}

// kallsym is the run-time address of a kernel symbol, or 0.
func kallsym(name string) (uint64, error) {
	f, err := os.Open("/proc/kallsyms")
	if err != nil {
		return 0, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) >= 3 && fields[2] == name {
			return strconv.ParseUint(fields[0], 16, 64)
		}
	}
	return 0, lines.Err()
}

// FileOffset is where in the file the instruction at a link-time address is, as
// uprobes want it, in bytes.
func FileOffset(img *dwarfloc.Image, addr uint64) (uint64, error) {
	for _, s := range img.Segments() {
		if addr >= s.Addr && addr-s.Addr < s.FileSize {
			return addr - s.Addr + s.Offset, nil
		}
	}
	return 0, fmt.Errorf("%s: the file has no code at %#x", img.Path(), addr)
}

// checkFile compares a file's build ID with the image's.
func checkFile(img *dwarfloc.Image, path string) error {
	if path == img.Path() {
		return nil
	}
	id, err := dwarfloc.FileBuildID(path)
	if err != nil {
		return err
	}
	if id == "" || id != img.BuildID() {
		return fmt.Errorf("%w: %s has build ID %s, %s has %s", ErrOtherImage, path, orNone(id), img.Path(), orNone(img.BuildID()))
	}
	return nil
}
