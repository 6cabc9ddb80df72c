package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
)

// TestRun builds the command, since it probes a symbol of its own, and checks that all
// programs fetch the same values.
func TestRun(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program")
	}
	bpfexec.RequireOrSkip(t)
	hits := filepath.Join(t.TempDir(), "hits")
	if out, err := exec.Command("go", "build", "-o", hits, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	out, err := exec.Command(hits, "hits", "-rounds", "1", "-hits", "10").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if n := strings.Count(string(out), "\n| prologue: "); n != 4 {
		t.Errorf("%d prologues in the table:\n%s", n, out)
	}
}
