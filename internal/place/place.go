// Package place answers where the code of an image is when it runs, as far as the image
// itself says.
package place

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
)

// IsKernel reports whether an image is a kernel's, which has the symbol _stext on all
// architectures, or a kernel module's, which is relocatable.
func IsKernel(img *dwarfloc.Image) (bool, error) {
	if img.LoadsApart() {
		return true, nil
	}
	_, ok, err := img.AddressOf("_stext")
	return ok, err
}

// ModuleName returns the name that the kernel has for the module in a file: for
// "drivers/net/tun-x.ko.xz" it is "tun_x".
func ModuleName(path string) string {
	name, _, _ := strings.Cut(filepath.Base(path), ".ko")
	return strings.ReplaceAll(name, "-", "_")
}

// FileOffset returns the offset in the file, in bytes, of the instruction at a link-time
// address. It is what uprobes are made with.
func FileOffset(img *dwarfloc.Image, addr uint64) (uint64, error) {
	for _, s := range img.Segments() {
		if addr >= s.Addr && addr-s.Addr < s.FileSize {
			return addr - s.Addr + s.Offset, nil
		}
	}
	return 0, fmt.Errorf("%s: the file has no code at %#x", img.Path(), addr)
}
