package dwarfloc

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/index"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

// TestPlainBodies: which bodies are plain is kept, what another process finds out is added, and what is damaged is forgotten.
func TestPlainBodies(t *testing.T) {
	path, err := fixtures.WriteTo(t.TempDir(), "run-gcc12-O2-dwarf5.exe")
	if err != nil {
		t.Fatal(err)
	}
	o := &Options{CacheDir: filepath.Join(t.TempDir(), "cache"), Warn: func(err error) { t.Error(err) }}
	var known []int
	for n := range 4 {
		img, err := Open(path, o)
		if err != nil {
			t.Fatal(err)
		}
		sites, err := img.Sites(context.Background(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if n == 3 {
			img.r.Index.DeriveImage(index.BlockPlain, []byte{200, 1})
		}
		count := 0
		for _, s := range sites {
			if s.u.Plain(s.spot.Rec) {
				count++
			}
		}
		known = append(known, count)
		if n < 2 {
			s := sites[n]
			s.u.SetPlain(s.spot.Rec)
		}
		if err := img.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if want := [4]int{0, 1, 2, 0}; [4]int(known) != want {
		t.Errorf("%v bodies are known to be plain, want %v", known, want)
	}
}
