package needed_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/image"
	"github.com/bpfprologue/bpfprologue/internal/needed"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

// TestLeaves: a program in C that jumps out of frames, and one with exceptions, are told from one that does neither.
func TestLeaves(t *testing.T) {
	for _, tt := range []struct {
		compiler, name, source string
		want                   bool
	}{
		{"gcc-12", "plain.c", `int main(void) { return 0; }`, false},
		{"gcc-12", "jumps.c", `#include <setjmp.h>
jmp_buf b;
int main(void) { if (!setjmp(b)) longjmp(b, 1); return 0; }`, true},
		{"g++-12", "throws.cc", `int main() { try { throw 1; } catch (int) { return 0; } }`, true},
	} {
		source := filepath.Join(t.TempDir(), tt.name)
		if err := os.WriteFile(source, []byte(tt.source), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(testenv.Tool(t, tt.compiler), "-o", source+".exe", source).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		f, err := image.Open(source+".exe", nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := needed.Leaves(f); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}
