package body_test

import (
	"runtime"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/image"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

// TestTablesRead: whether an image is a kernel is known without its tables, of which Debian's has 60,000 entries.
func TestTablesRead(t *testing.T) {
	f, err := image.Open(testenv.Vmlinux(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	img := body.New(f, nil)
	var before, kernel, tables runtime.MemStats
	err = f.Guard(func() error {
		runtime.ReadMemStats(&before)
		if is, err := img.IsKernel(); err != nil || !is {
			t.Errorf("a kernel: %v, %v", is, err)
		}
		runtime.ReadMemStats(&kernel)
		if _, err := img.StaticBranches(0, 1); err != nil {
			t.Error(err)
		}
		runtime.ReadMemStats(&tables)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if a, b := kernel.TotalAlloc-before.TotalAlloc, tables.TotalAlloc-kernel.TotalAlloc; a > b/4 {
		t.Errorf("%d bytes are allocated to know that it is a kernel, and %d to read its tables", a, b)
	}
}
