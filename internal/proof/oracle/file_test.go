package oracle

import (
	"context"
	"errors"
	"testing"

	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

// TestOpenInterrupted: a file is not read to its end when nobody waits for it any more.
func TestOpenInterrupted(t *testing.T) {
	path, err := fixtures.WriteTo(t.TempDir(), "basic-gcc12-O2-dwarf5.elf")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), path, ""); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	if _, err := Open(ctx, path, ""); !errors.Is(err, enough) {
		t.Errorf("got %v", err)
	}
}
