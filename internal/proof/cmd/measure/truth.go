package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/bpfprologue/bpfprologue/internal/proof/truth"
)

// measureTruth makes the builds of package truth's programs, traces them, and prints a page about
// what was right, wrong and lost. Progress and the wrong values go to standard error.
func measureTruth() { Main("truth", "builds", ",", truthRun) }

func truthRun(ctx context.Context, s *Series) error {
	builds := truth.Chosen(s.Has)
	results := make([]*truth.Result, len(builds))
	finished, news := 0, 0
	err := truth.Run(ctx, s.Dir, builds, func(i int, r *truth.Result, err error) {
		finished++
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return
		}
		results[i] = r
		fmt.Fprintf(os.Stderr, "%d/%d %v (program%d): %d compared, %d wrong\n", finished, len(builds), &builds[i], i, r.Compared, r.Count.Wrong)
		for k := range r.Wrong {
			fmt.Fprintln(os.Stderr, "  ", &r.Wrong[k])
			if r.Wrong[k].Known() == "" {
				news++
			}
		}
		for label, n := range r.Outside {
			fmt.Fprintf(os.Stderr, "   outside of calls: %s %d times\n", label, n)
		}
		for _, n := range r.Notes {
			fmt.Fprintln(os.Stderr, "   refused:", n)
		}
	})
	if err != nil {
		return err
	}
	fmt.Print("# What probes fetch, compared with what programs passed\n\nWritten by `measure truth` (`make truth`). `go doc ./internal/proof/truth` says how the comparison works.\n\n")
	version := strings.SplitN(firstLine("uname", "-r"), ".", 3)
	fmt.Printf("Linux %s.\n\n", strings.Join(version[:min(2, len(version))], "."))
	truth.WriteTable(os.Stdout, builds, results)
	writeCompilers(builds)
	if failed := slices.Index(results, nil); failed >= 0 {
		return fmt.Errorf("%v and perhaps others failed", &builds[failed])
	}
	if news > 0 {
		return fmt.Errorf("%d arguments of sites are wrong", news)
	}
	return nil
}

// writeCompilers lists the compilers with their versions.
func writeCompilers(builds []truth.Build) {
	fmt.Print("\nThe compilers:\n\n")
	listed := make(map[string]bool)
	for i := range builds {
		b := &builds[i]
		if listed[b.Compiler] {
			continue
		}
		listed[b.Compiler] = true
		fmt.Printf("- %s: %s\n", b.Compiler, b.Version())
	}
}

// firstLine returns the first line that a command prints.
func firstLine(name string, args ...string) string {
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		return err.Error()
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return line
}
