// Package place says what an image is when it runs: a kernel's or a program's, and the name
// of a module.
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

// ModuleName returns the kernel's name for the module in a file: "tun_x" for
// "drivers/net/tun-x.ko.xz".
func ModuleName(path string) string {
	name, _, _ := strings.Cut(filepath.Base(path), ".ko")
	return strings.ReplaceAll(name, "-", "_")
}
