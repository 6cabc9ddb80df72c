package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/bpfprologue/bpfprologue/internal/complete"
	"github.com/bpfprologue/bpfprologue/internal/screen"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

// eachVerb calls f for each verb that a user sees.
func eachVerb(cmd *cobra.Command, f func(*cobra.Command)) {
	if cmd.Hidden || cmd.Name() == "help" {
		return
	}
	f(cmd)
	for _, c := range cmd.Commands() {
		eachVerb(c, f)
	}
}

// TestExamples runs the examples of every help: on a kernel, in a directory that has the files they name. What
// loads or attaches is only planned.
func TestExamples(t *testing.T) {
	vmlinux := testenv.Vmlinux(t)
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("HOME", dir)
	t.Setenv("BPFPROLOGUE_CACHE", filepath.Join(dir, "cache"))
	if err := os.Symlink(vmlinux, "vmlinux"); err != nil {
		t.Fatal(err)
	}
	modules, err := filepath.Glob(filepath.Join(filepath.Dir(vmlinux), "ext4-*.ko"))
	if err != nil || len(modules) == 0 {
		testenv.Missing(t, "no module beside %s: %v", vmlinux, err)
	}
	if err := os.Symlink(modules[0], "ext4.ko"); err != nil {
		t.Fatal(err)
	}
	server, err := fixtures.WriteTo(dir, "run-gcc12-O2-dwarf5.exe")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(server, "server"); err != nil {
		t.Fatal(err)
	}
	record(t, "server.hits", "walk")
	defer func(o, e io.Writer) { screen.Stdout, screen.Stderr = o, e }(screen.Stdout, screen.Stderr)
	done := make(map[string]bool)
	var verbs []*cobra.Command
	eachVerb(rootCommand(new(settings)), func(cmd *cobra.Command) { verbs = append(verbs, cmd) })
	slices.SortStableFunc(verbs, func(a, b *cobra.Command) int { // "pack write" makes what the others read
		return strings.Compare(b.Name(), a.Name())
	})
	for _, cmd := range verbs {
		if cmd.Runnable() && cmd.Example == "" {
			t.Errorf("%s --help has no examples", cmd.CommandPath())
		}
		for line := range strings.Lines(cmd.Example) {
			line = strings.TrimSpace(line)
			words := exampleWords(t, line)
			key := strings.Join(words, "\x00")
			if words == nil || done[key] {
				continue
			}
			done[key] = true
			var out, errs bytes.Buffer
			screen.Stdout, screen.Stderr = &out, &errs
			if status := run(words); status != 0 || out.Len() == 0 && words[0] != "cache" {
				t.Errorf("%s\nstatus %d, %d bytes\n%s", line, status, out.Len(), errs.String())
			}
		}
	}
}

// exampleWords returns the arguments of the tool in an example, changed so that it neither attaches nor writes
// outside of the test; or nil if nothing of it can be run here.
func exampleWords(t *testing.T, line string) []string {
	l := complete.ParseLine(strings.NewReplacer("> ", "-o ", "~/", "/nonexistent/").Replace(strings.SplitN(line, " | ", 2)[0]))
	words := l.Words
	if words[0] == "sudo" {
		words = words[1:]
	}
	if words[0] != "prolog-dump" {
		t.Errorf("%s: does not begin with the tool's name", line)
		return nil
	}
	words = words[1:]
	if words[0] == "pack" { // into the test's directory
		if words[len(words)-1] == "vmlinux" {
			words = append(words, "vfs_*")
		}
		return words
	}
	for i, w := range words {
		if w == "--" {
			words = words[:i] // the command that is traced
			break
		}
	}
	var out []string
	for i := 0; i < len(words); i++ {
		switch w := words[i]; w {
		case "-o":
			i++
		case "man", "completion":
			return []string{"--version"} // TestMan, TestShells
		case "btf-inline":
			return []string{"--version"} // no kernel has the section; package coverage has the test
		case "object":
			return []string{"--version"} // its script, and examples/libbpf
		case "filter.bpf.o":
			out = append(out, "vfs_read file count")
		case "/srv/packs", "all.packs":
			out = append(out, "vmlinux.pack")
		case "verify", "trace", "stat", "record":
			return traced(words)
		default:
			out = append(out, w)
		}
	}
	return out
}

// traced returns a verb with the first definition of another one: what follows from a definition, without a kernel.
func traced(words []string) []string {
	image := []string{"-k", "vmlinux"}
	for i, w := range words {
		if w == "-x" || w == "-k" {
			image = []string{w, words[i+1]}
		}
		if strings.Contains(w, " ") { // a definition, about the image before it
			return append(image, "--sites", w)
		}
	}
	if words[0] == "trace" {
		return []string{"--version"} // there is nothing recorded
	}
	return []string{"coverage", "--ways", "entry", "server"}
}

// TestMan: the man pages are those of all verbs, and man accepts them.
func TestMan(t *testing.T) {
	dir := t.TempDir()
	defer func(o, e io.Writer) { screen.Stdout, screen.Stderr = o, e }(screen.Stdout, screen.Stderr)
	var errs bytes.Buffer
	screen.Stdout, screen.Stderr = io.Discard, &errs
	if status := run([]string{"man", dir}); status != 0 {
		t.Fatalf("status %d: %s", status, errs.String())
	}
	eachVerb(rootCommand(new(settings)), func(cmd *cobra.Command) {
		name := strings.ReplaceAll(cmd.CommandPath(), " ", "-") + ".1"
		page, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
			return
		}
		for _, want := range []string{".TH \"PROLOG-DUMP", strings.ReplaceAll(cmd.Short, "-", "\\-")} {
			if !strings.Contains(strings.ReplaceAll(string(page), "\\-", "-"), strings.ReplaceAll(want, "\\-", "-")) {
				t.Errorf("%s has no %q", name, want)
			}
		}
	})
	groff, err := exec.LookPath("groff")
	if err != nil {
		return // the pages are there; this one only looks for warnings
	}
	out, err := exec.Command(groff, "-man", "-Tutf8", "-ww", "-z", filepath.Join(dir, "prolog-dump.1")).CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("groff: %v\n%s", err, out)
	}
}
