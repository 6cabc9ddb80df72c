// Package place answers where the code of an image is when it runs, as far as the image
// itself says.
package place

import (
	"path/filepath"
	"strings"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
)

// IsKernel reports whether an image is a kernel's, which has the symbol _stext on all
// architectures, or a kernel module's, which is relocatable.
func IsKernel(img *dwarfloc.Image) (bool, error) {
	if img.IsRelocatable() {
		return true, nil
	}
	marks, err := img.SymbolAddresses("_stext")
	_, ok := marks["_stext"]
	return ok, err
}

// ModuleName returns the name that the kernel has for the module in a file: for
// "drivers/net/tun-x.ko.xz" it is "tun_x".
func ModuleName(path string) string {
	name, _, _ := strings.Cut(filepath.Base(path), ".ko")
	return strings.ReplaceAll(name, "-", "_")
}
