package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bpfprologue/bpfprologue/internal/proof/guality"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

// measureGuality traces the programs of GCC's guality tests, and prints a page that compares values with what the programs'
// comments say, beside GDB. What is wrong, and with -v what is lost, goes to standard error.
func measureGuality() {
	root := flag.String("programs", filepath.Join(testenv.Cache(), "source/gcc-12-guality"), "where scripts/fetch-source.sh gcc-12 guality has put them")
	options := flag.String("options", "-O0,-Og,-O1,-O2,-O3,-Os", "of the compiler")
	only := flag.String("only", "", "programs whose name has this")
	verbose := flag.Bool("v", false, "list what is lost")
	flag.Parse()
	if err := gualityRun(context.Background(), *root, strings.Split(*options, ","), *only, *verbose); err != nil {
		fmt.Fprintln(os.Stderr, "guality:", err)
		os.Exit(1)
	}
}

func gualityRun(ctx context.Context, root string, options []string, only string, verbose bool) (err error) {
	cases, err := guality.Cases(root)
	if err != nil {
		return err
	}
	if len(cases) == 0 {
		return fmt.Errorf("no programs at %s: scripts/fetch-source.sh gcc-12 guality", root)
	}
	dir, err := os.MkdirTemp("", "guality")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	fmt.Print("# Values that GCC's developers say\n\nWritten by `measure guality`: `go doc ./internal/proof/guality`.\n\n",
		"| build | checks | right | wrong | doubtful | lost | no hit | GDB: right | wrong | lost |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n")
	lost := make(map[string]int)
	for _, compiler := range []string{"gcc-12", "clang-14"} {
		if _, err := exec.LookPath(compiler); err != nil {
			fmt.Fprintln(os.Stderr, compiler, "is not installed")
			continue
		}
		for _, option := range options {
			var ours, gdb [guality.Wrong + 1]int
			for i := range cases {
				c := &cases[i]
				if c.Skipped(option) || !strings.Contains(c.Path, only) {
					continue
				}
				answers, err := guality.Run(ctx, dir, guality.Build{Compiler: compiler, Option: option}, c)
				if err != nil {
					return err
				}
				for _, a := range answers {
					ours[a.Ours]++
					gdb[a.GDB]++
					if a.Ours != guality.Right {
						reason, _, _ := strings.Cut(a.Got, ":")
						lost[reason]++
					}
					if a.Ours == guality.Wrong || verbose && a.Ours != guality.Right {
						fmt.Fprintf(os.Stderr, "%s %s: %s:%d %s: want %s, got %s (%d; gdb %d)\n", compiler, option, a.File, a.Line, a.Var, a.Want, a.Got, a.Ours, a.GDB)
					}
				}
			}
			n := 0
			for _, k := range ours {
				n += k
			}
			fmt.Printf("| %s %s | %d | %d | %d | %d | %d | %d | %d | %d | %d |\n", compiler, option, n, ours[guality.Right], ours[guality.Wrong],
				ours[guality.Doubtful], ours[guality.Lost], ours[guality.NoHit], gdb[guality.Right], gdb[guality.Wrong], gdb[guality.Lost])
		}
	}
	fmt.Print("\nWhat is not right, by reason:\n\n| reason | checks |\n|---|---:|\n")
	for _, r := range slices.SortedFunc(maps.Keys(lost), func(a, b string) int { return lost[b] - lost[a] }) {
		if len(r) < 40 && !strings.ContainsAny(r, "0123456789") {
			fmt.Printf("| %s | %d |\n", r, lost[r])
		}
	}
	return nil
}
