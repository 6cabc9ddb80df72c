package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"prolog-dump": func() { os.Exit(run(os.Args[1:])) }})
}

// TestScripts runs the tool as a user would: testdata/*.txtar. The images of
// testdata/vmlinux-fixtures are in the working directory. With
// UPDATE=1 in the environment the expected outputs are rewritten.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:           "testdata",
		UpdateScripts: os.Getenv("UPDATE") != "",
		Setup: func(env *testscript.Env) error {
			env.Setenv("BPFPROLOGUE_CACHE", filepath.Join(env.WorkDir, "cache"))
			for _, name := range append(fixtures.Names(), fixtures.Relocatable()...) {
				if _, err := fixtures.WriteTo(env.WorkDir, name); err != nil {
					return err
				}
			}
			src, err := filepath.Abs("../../testdata/vmlinux-fixtures/src")
			if err != nil {
				return err
			}
			env.Setenv("SRC", src)
			return os.WriteFile(filepath.Join(env.WorkDir, "cut.elf"), nil, 0o600)
		},
	})
}
