package main

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
)

// TestRun loads all programs, and has them fetch the same values.
func TestRun(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	if err := run(1, 10); err != nil {
		t.Error(err)
	}
}
