package dwarfloc

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/index"
	"github.com/bpfprologue/bpfprologue/internal/mapping"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

// FuzzKept: whatever an index of the same image says, with a checksum that is right, the answers are
// answers or errors, and none is a panic.
func FuzzKept(f *testing.F) {
	const name = "lib-gcc12-O2-dwarf5.elf"
	dir := f.TempDir()
	path, err := fixtures.WriteTo(dir, name)
	if err != nil {
		f.Fatal(err)
	}
	img, err := Open(path, &Options{CacheDir: filepath.Join(dir, "cache")})
	if err != nil {
		f.Fatal(err)
	}
	if _, err := allSaid(img); err != nil {
		f.Fatal(err)
	}
	kept := img.r.Index.KeptPath()
	if err := img.Close(); err != nil {
		f.Fatal(err)
	}
	good, err := os.ReadFile(kept)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	for _, at := range []int{16, 60, 200, 204, 208, 212, 216, 320, 324, 400, 500} { // the header, the pages, and the first units
		bad := bytes.Clone(good)
		bad[at] ^= 0x81
		f.Add(bad)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		cache := filepath.Join(t.TempDir(), "cache")
		if err := os.Mkdir(cache, 0o700); err != nil {
			t.Fatal(err)
		}
		data := bytes.Clone(body)
		index.KeptKind.Reseal(data[:max(len(data)-index.KeptKnown, 0)])
		if err := os.WriteFile(filepath.Join(cache, filepath.Base(kept)), data, 0o600); err != nil {
			t.Fatal(err)
		}
		img, err := Open(path, &Options{CacheDir: cache})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := allSaid(img); errors.Is(err, mapping.ErrPanic) {
			t.Error(err)
		}
		if err := img.Close(); err != nil {
			t.Error(err)
		}
	})
}
