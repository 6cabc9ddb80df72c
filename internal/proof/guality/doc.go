// Package guality compares what is fetched with what GCC's developers say that programs' variables are.
//
// GCC's tests of its debug information are programs with comments such as
//
//	/* { dg-final { gdb-test 14 "arg1" "1" } } */
//
// which say that where line 14 is first reached, arg1 is 1. Cases reads them, and Run compiles a program, traces it, and asks GDB
// the same. scripts/fetch-source.sh gcc-12 guality unpacks the programs.
package guality

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Case is a program.
type Case struct {
	Path    string
	Sources []string // others that are compiled with it
	Flags   []string // of the compiler
	Skips   []string // options with which it is not compiled
	Checks  []Check
}

// Check is that a variable has a value where a line is first reached.
type Check struct {
	File, Var, Value string
	Line             int
}

var (
	checks    = regexp.MustCompile(`gdb-test ([^ ]+) "?([^" ]+)"? +"([^"]*)"`)
	flags     = regexp.MustCompile(`dg-options "([^"]*)"`)
	sources   = regexp.MustCompile(`dg-additional-sources "([^"]*)"`)
	skips     = regexp.MustCompile(`dg-skip-if "" \{ \*-\*-\* \} *\{ "\*" \} \{([^}]*)\}`)
	variables = regexp.MustCompile(`^[A-Za-z_]\w*$`)
)

// Cases returns the programs of C below a folder that check variables. Checks of expressions, of types and of what is no line are left out.
func Cases(root string) (cases []Case, err error) {
	paths, err := filepath.Glob(filepath.Join(root, "gcc/testsuite/*/guality/*.c"))
	for _, p := range paths {
		text, err := os.ReadFile(p)
		if err != nil {
			return nil, err
		}
		if c := read(p, string(text)); len(c.Checks) > 0 {
			cases = append(cases, c)
		}
	}
	slices.SortFunc(cases, func(a, b Case) int { return cmp.Compare(a.Path, b.Path) })
	return cases, err
}

// read reads the comments of a program.
func read(path, text string) Case {
	c := Case{Path: path}
	for i, line := range strings.Split(text, "\n") {
		if m := flags.FindStringSubmatch(line); m != nil {
			c.Flags = append(c.Flags, strings.Fields(m[1])...)
		}
		if m := sources.FindStringSubmatch(line); m != nil {
			c.Sources = append(c.Sources, filepath.Join(filepath.Dir(path), m[1]))
		}
		if m := skips.FindStringSubmatch(line); m != nil {
			c.Skips = append(c.Skips, strings.Fields(strings.ReplaceAll(m[1], `"`, ""))...)
		}
		m := checks.FindStringSubmatch(line)
		if m == nil || !variables.MatchString(m[2]) {
			continue
		}
		x := Check{File: filepath.Base(path), Var: m[2], Value: m[3]}
		at := m[1]
		if file, own, ok := strings.Cut(at, ":"); ok {
			x.File, at = file, own
		}
		if rest, relative := strings.CutPrefix(at, "."); relative {
			x.Line, at = i+1, strings.TrimPrefix(rest, "+")
		}
		n, err := strconv.Atoi(at)
		if err != nil && at != "" {
			continue // a function
		}
		x.Line += n
		c.Checks = append(c.Checks, x)
	}
	return c
}

// Skipped reports whether a program is not for an option. GCC's harness compiles those whose names begin with Og at -O0 and -Og alone
// (gcc/testsuite/gcc.dg/guality/guality.exp): Og-dce-3.c says what a store does that other options delete.
func (c *Case) Skipped(option string) bool {
	of := strings.HasPrefix(filepath.Base(c.Path), "Og-") && option != "-O0" && option != "-Og"
	return of || slices.Contains(c.Skips, option)
}
