package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

// TestProve: an image and a definition are proven, and what cannot be is an error that names it.
func TestProve(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	image, err := fixtures.WriteTo(t.TempDir(), "basic-gcc12-O2-dwarf5.elf")
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(image)
	if err != nil {
		t.Fatal(err)
	}
	cut := filepath.Join(t.TempDir(), "cut")
	if err := os.WriteFile(cut, data[:len(data)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args []string
		want string // in the error; "" without one
	}{
		{[]string{"--seed", "7", image}, ""},
		{[]string{"--seed", "7", "--convention", "record", "--json", image}, ""},
		{[]string{"--seed", "7", "-x", image, "my_func_*_abcd arg1"}, ""},
		{[]string{"-x", image, "my_func_one_abcd nope"}, `no variable "nope"`},
		{[]string{"--reads", "kernel", image}, `"kernel"`},
		{[]string{"--convention", "both", image}, `"both"`},
		{[]string{cut}, cut},
	} {
		err := run(t.Context(), tt.args, io.Discard)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: %v, want ... %s", tt.args, err, tt.want)
		}
	}
}

// TestFull: what cannot be printed is an error, help too.
func TestFull(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	image, err := fixtures.WriteTo(t.TempDir(), "run-gcc12-O2-dwarf5.exe")
	if err != nil {
		t.Fatal(err)
	}
	all := [][]string{{"--help"}}
	if bpfexec.Available() == nil {
		all = append(all, []string{"-x", image, "mix key"}, []string{"--json", "-x", image, "mix key"})
	}
	for _, args := range all {
		if err := run(t.Context(), args, full); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%v: %v", args, err)
		}
	}
}
