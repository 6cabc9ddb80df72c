// Package fixtures contains small images for tests and demonstrations: a toy kernel, a toy
// shared library and a program, built by two compilers in several ways, with DWARF of every
// shape that this module reads. README.md lists what is in which image.
//
// The images are embedded in the program that asks for one by name (370 kB for all), so they are
// available without a compiler, a kernel or a checkout:
//
//	data, err := fixtures.Bytes("basic-gcc12-O2-dwarf5.elf")
//
// The go command excludes directories named testdata from ./... patterns; the package is
// imported, built and vetted by its full path.
package fixtures

import (
	"bytes"
	"compress/gzip"
	"embed"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed *.elf.gz *.ko.gz *.o.gz *.exe.gz
var images embed.FS

// demo is the first image of all, alone: a program that needs no other does not carry them.
//
//go:embed basic-gcc12-O2-dwarf5.elf.gz
var demo []byte

// Demo returns the name and the bytes of one image, for programs that show what they do. The caller owns the slice.
func Demo() (name string, image []byte, err error) {
	name = "basic-gcc12-O2-dwarf5.elf"
	image, err = unpack(name, demo)
	return name, image, err
}

// Names returns the names of all linked images for amd64, sorted. They end in ".elf".
func Names() []string {
	return slices.DeleteFunc(names(".elf"), isForeign)
}

// Foreign returns the names of the linked images for other processors, sorted: of 32 bits, and big-endian ones. They
// end in ".elf".
func Foreign() []string {
	return slices.DeleteFunc(names(".elf"), func(name string) bool { return !isForeign(name) })
}

func isForeign(name string) bool { return strings.HasPrefix(name, "foreign-") }

// Relocatable returns the names of the relocatable files, sorted: kernel modules,
// which end in ".ko", and an object file, which ends in ".o".
func Relocatable() []string { return names(".ko", ".o") }

// Programs returns the names of the programs that run, sorted. They end in ".exe".
func Programs() []string { return names(".exe") }

func names(suffixes ...string) []string {
	entries, err := fs.ReadDir(images, ".")
	if err != nil {
		panic(fmt.Sprintf("fixtures: embedded directory: %v", err)) // the compiler made it
	}
	var out []string
	for _, e := range entries {
		name := strings.TrimSuffix(e.Name(), ".gz")
		if slices.Contains(suffixes, filepath.Ext(name)) {
			out = append(out, name)
		}
	}
	return out
}

// Bytes returns the image of that name, decompressed. The caller owns the slice.
// The error wraps [fs.ErrNotExist] if there is no such image.
func Bytes(name string) ([]byte, error) {
	packed, err := images.ReadFile(name + ".gz")
	if err != nil {
		return nil, fmt.Errorf("fixture %q: %w (there are: %s)", name, fs.ErrNotExist, strings.Join(names(".elf", ".ko", ".o", ".exe"), ", "))
	}
	return unpack(name, packed)
}

func unpack(name string, packed []byte) ([]byte, error) {
	zr, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("fixture %q: %w", name, err)
	}
	image, err := io.ReadAll(zr)
	if err != nil {
		return nil, fmt.Errorf("fixture %q: %w", name, err)
	}
	return image, nil
}

// WriteTo writes the image of that name, decompressed, as dir/name and returns
// that path. In a test dir is t.TempDir().
func WriteTo(dir, name string) (string, error) {
	image, err := Bytes(name)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, image, 0o600); err != nil {
		return "", fmt.Errorf("fixture %q: %w", name, err)
	}
	return path, nil
}
