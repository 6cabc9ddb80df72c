package dwarfloc_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

// compile returns the path of a program that a compiler makes of a source in C or, for g++
// and clang++, in C++.
func compile(t *testing.T, compiler, source string, options ...string) string {
	t.Helper()
	dir := t.TempDir()
	file, path := filepath.Join(dir, "source.c"), filepath.Join(dir, "program")
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(testenv.Tool(t, compiler), append(append([]string{"-O1"}, options...), "-o", path, file)...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}
