package dwarfloc_test

import (
	"os"
	"runtime"
	"testing"

	"github.com/bpfprologue/bpfprologue/arch"
	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

// TestRunningBTF opens what the running kernel says of itself, a file that cannot be mapped as others are.
func TestRunningBTF(t *testing.T) {
	const path = "/sys/kernel/btf/vmlinux"
	if _, err := os.Stat(path); err != nil {
		testenv.Missing(t, "the running kernel shows no BTF: %v", err)
	}
	img, err := dwarfloc.OpenBTF(path, arch.ByName(runtime.GOARCH))
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	sites, err := img.Sites(t.Context(), dwarfloc.Name("vfs_read"))
	if err != nil || len(sites) != 1 {
		t.Fatalf("%d sites of vfs_read, %v", len(sites), err)
	}
	if params, err := sites[0].Params(); err != nil || len(params) != 4 {
		t.Errorf("%d parameters, %v", len(params), err)
	}
}
