package dwarfloc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
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
	const head = len(index.KeptMagic) + 4*32 + 4 // up to the checksum's end
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
	kept := img.index.KeptPath()
	if err := img.Close(); err != nil {
		f.Fatal(err)
	}
	good, err := os.ReadFile(kept)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good[head:])
	for _, at := range []int{32, 40, 48, 56, 64, 72, 80, 128, 200} { // counts, and the first units
		bad := bytes.Clone(good[head:])
		bad[at] ^= 0x81
		f.Add(bad)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		cache := filepath.Join(t.TempDir(), "cache")
		if err := os.Mkdir(cache, 0o700); err != nil {
			t.Fatal(err)
		}
		data := append(bytes.Clone(good[:head]), body...)
		binary.LittleEndian.PutUint32(data[head-4:], crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)))
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
