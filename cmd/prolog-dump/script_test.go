package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"prolog-dump": func() { os.Exit(run(os.Args[1:])) }, withoutBPF: runWithoutBPF, "prolog-dump-counting": runCounting,
	})
}

// runCounting is the tool, and then prints how many bytes it has allocated: measure gate runs it.
func runCounting() {
	status := run(os.Args[1:])
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	fmt.Fprintf(os.Stderr, "allocated %d\n", m.TotalAlloc)
	os.Exit(status)
}

// TestScripts runs the tool as a user would: testdata/*.txtar. The images of
// testdata/vmlinux-fixtures are in the working directory. With
// UPDATE=1 in the environment the expected outputs are rewritten.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:           "testdata",
		UpdateScripts: os.Getenv("UPDATE") != "",
		Condition: func(cond string) (bool, error) {
			if cond != "bpf" {
				return false, fmt.Errorf("unknown condition %q", cond)
			}
			err := bpfexec.Available()
			if err != nil && os.Getenv("CI") == "true" {
				return false, err // a job that means to test must not pass without
			}
			return err == nil, nil
		},
		Setup: func(env *testscript.Env) error {
			env.Setenv("BPFPROLOGUE_CACHE", filepath.Join(env.WorkDir, "cache"))
			for _, name := range append(fixtures.Names(), fixtures.Relocatable()...) {
				if _, err := fixtures.WriteTo(env.WorkDir, name); err != nil {
					return err
				}
			}
			for _, name := range fixtures.Programs() {
				path, err := fixtures.WriteTo(env.WorkDir, name)
				if err != nil {
					return err
				}
				if err := os.Chmod(path, 0o700); err != nil {
					return err
				}
			}
			src, err := filepath.Abs("../../testdata/vmlinux-fixtures/src")
			if err != nil {
				return err
			}
			env.Setenv("SRC", src)
			hits, err := filepath.Abs("../../examples/hits/bpf/hits.o")
			if err != nil {
				return err
			}
			env.Setenv("HITS", hits)
			whole, err := fixtures.Bytes("basic-gcc12-O2-dwarf5.elf")
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(env.WorkDir, "half.elf"), whole[:100], 0o600); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(env.WorkDir, "cut.elf"), nil, 0o600)
		},
	})
}
