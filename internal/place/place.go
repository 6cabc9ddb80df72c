// Package place says what an image is when it runs: a kernel's or a program's, which of its memory
// stays, and the name of a module.
package place

import (
	"bytes"
	"path/filepath"
	"strings"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/inside"
)

// IsKernel reports whether an image is a kernel's, which has the symbol _stext on all
// architectures, or a kernel module's, which is relocatable.
func IsKernel(img *dwarfloc.Image) (bool, error) {
	f := inside.File(img)
	if f.IsRelocatable() {
		return true, nil
	}
	if inside.Ready(img) { // to look through all symbols takes longer
		for _, s := range f.Sections() {
			if sym := f.SymbolAt(s.Addr, "_stext"); s.Exec && sym != nil && sym.Addr == s.Addr && sym.Name == "_stext" {
				return true, nil
			}
		}
	}
	marks, err := f.SymbolAddresses("_stext")
	_, ok := marks["_stext"]
	return ok, err
}

// Stays returns a function for prologue.Options.Stays, or nil if an image is not a kernel's. What
// is between __init_begin and __init_end is freed when a kernel has booted, and then may not be
// mapped there (free_kernel_image_pages in arch/x86/mm/init.c, free_initmem of other
// architectures). Per-CPU variables have other addresses than those in the image, and are outside
// or between these symbols.
func Stays(img *dwarfloc.Image) (func(addr, size uint64) bool, error) {
	if inside.File(img).IsRelocatable() {
		return nil, nil
	}
	marks, err := inside.File(img).SymbolAddresses("_stext", "_end", "__init_begin", "__init_end")
	if err != nil || len(marks) < 4 {
		return nil, err
	}
	begin, end, initBegin, initEnd := marks["_stext"], marks["_end"], marks["__init_begin"], marks["__init_end"]
	return func(addr, size uint64) bool {
		s := inside.File(img).SectionAt(addr)
		return s != nil && size <= s.Size-(addr-s.Addr) && addr >= begin && addr < end && (addr >= initEnd || addr+size <= initBegin)
	}, nil
}

// ModuleName returns the kernel's name for a module: what its section .modinfo says, or else "tun_x" for
// "drivers/net/tun-x.ko.xz". A file with a pack can have any name.
func ModuleName(img *dwarfloc.Image) string {
	name := ""
	_ = inside.File(img).Guard(func() error {
		d, err := inside.File(img).SectionContents(".modinfo")
		for text := range bytes.SplitSeq(d, []byte{0}) {
			if v, ok := bytes.CutPrefix(text, []byte("name=")); ok {
				name = string(v)
			}
		}
		return err
	})
	// It becomes a part of paths.
	if name != "" && strings.Trim(name, moduleCharacters) == "" {
		return name
	}
	return nameOfFile(img.Path())
}

const moduleCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

func nameOfFile(path string) string {
	name, _, _ := strings.Cut(filepath.Base(path), ".ko")
	return strings.ReplaceAll(name, "-", "_")
}
