package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/testenv"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

// TestShells lets real shells complete lines with the scripts that the tool prints.
func TestShells(t *testing.T) {
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(dir, "prolog-dump")); err != nil {
		t.Fatal(err)
	}
	image, err := fixtures.WriteTo(dir, "basic-gcc12-O2-dwarf5.elf")
	if err != nil {
		t.Fatal(err)
	}
	for _, shell := range []struct{ name, script, complete string }{
		{"bash", bashScript, `COMP_LINE=$1 COMP_POINT=${#1} COMP_WORDS=(prolog-dump); _prolog_dump 2>/dev/null; printf '%s\n' "${COMPREPLY[@]}"`},
		{"fish", fishScript, `complete -C $argv[1]`},
	} {
		path := testenv.Tool(t, shell.name)
		for _, c := range []struct{ line, bash, fish string }{
			{"prolog-dump -k " + image + " trace 'my_func_two_abcd pk", "my_func_two_abcd pkt\nmy_func_two_abcd pkt->", "my_func_two_abcd pkt\nmy_func_two_abcd pkt->"},
			{"prolog-dump --missing=sk", "skip", "--missing=skip"},
		} {
			script := shell.script + shell.complete
			args := []string{"-c", script, shell.name, c.line}
			want := c.bash
			if shell.name == "fish" {
				args, want = []string{"--no-config", "-c", script, c.line}, c.fish
			}
			cmd := exec.Command(path, args...)
			cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "HOME="+dir, "BPFPROLOGUE_CACHE="+dir)
			out, err := cmd.CombinedOutput()
			if got := strings.TrimSpace(string(out)); err != nil || got != want {
				t.Errorf("%s: %s: %v: got %q, want %q", shell.name, c.line, err, got, want)
			}
		}
	}
}
