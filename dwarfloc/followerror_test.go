package dwarfloc

import (
	"context"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/runs"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

// TestFollowError: code that could not be read is not taken for that of its function when the next body is asked about.
func TestFollowError(t *testing.T) {
	path, err := fixtures.WriteTo(t.TempDir(), "run-gcc12-O2-dwarf5.exe")
	if err != nil {
		t.Fatal(err)
	}
	img, err := Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	sites, err := img.Sites(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var c *runs.Code
	failed := 0
	for _, s := range sites {
		if s.Kind != SiteInline {
			continue
		}
		s.u.Data.Rnglists = nil
		if err := s.u.waysOf(s.spot.Rec, &c, new(runs.Ways)); err == nil {
			continue
		}
		failed++
		if err := s.u.waysOf(s.spot.Rec, &c, new(runs.Ways)); err == nil {
			t.Errorf("%v: no error the second time", s)
		}
	}
	if failed == 0 {
		t.Error("nothing failed")
	}
}
