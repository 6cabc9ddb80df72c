package guest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/raced"
)

// TestBuild: what runs in the guests can be built for machines of 32 bits, whose kernels "make guests" alone fetches.
func TestBuild(t *testing.T) {
	if testing.Short() || raced.On {
		t.Skip("compiles all of it")
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(t.TempDir(), "init"), "github.com/bpfprologue/bpfprologue/internal/proof/guest/init")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=386", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
