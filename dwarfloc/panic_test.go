package dwarfloc_test

import (
	"context"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

// TestPanic: a panic in a goroutine that the caller does not know is an error of the call, and of
// later ones: what was half read may have been remembered as complete.
func TestPanic(t *testing.T) {
	img := testenv.Fixture(t, "basic-gcc12-O2-dwarf5.elf")
	ctx := context.Background()
	err := img.EachSite(ctx, nil, func(int, dwarfloc.SiteRef) error { panic("a bug") })
	if err == nil || !strings.HasPrefix(err.Error(), "internal error: a bug\n") {
		t.Errorf("got %v", err)
	}
	if _, err := img.FunctionNames(ctx); err == nil {
		t.Error("the image is used further")
	}
}
