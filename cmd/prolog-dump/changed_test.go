package main

import (
	"errors"
	"os"
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/origin"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

// TestChanged: when all is printed, a command still fails if an image was written to meanwhile.
func TestChanged(t *testing.T) {
	path, err := fixtures.WriteTo(t.TempDir(), "basic-gcc12-O2-dwarf5.elf")
	if err != nil {
		t.Fatal(err)
	}
	s := settings{Finder: origin.Finder{NoCache: true}}
	if _, err := s.Open(path, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Unchanged(); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 100); err != nil {
		t.Fatal(err)
	}
	if err := s.Unchanged(); !errors.Is(err, dwarfloc.ErrChanged) {
		t.Errorf("got %v", err)
	}
}
