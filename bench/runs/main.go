// Runs makes the builds of package truth's programs that count their runs, traces every function
// where bodies begin and end, and prints a page that compares hits with runs. Progress and what
// differs go to standard error.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"

	"github.com/bpfprologue/bpfprologue/internal/truth"
)

func main() {
	only := flag.String("only", "", "only builds whose names contain one of these `TEXTS`, separated by commas")
	dir := flag.String("dir", "", "`FOLDER` for the sources and programs, which are kept")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, strings.Split(*only, ","), *dir); err != nil {
		fmt.Fprintln(os.Stderr, "runs:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, only []string, dir string) error {
	var builds []truth.Build
	for _, b := range truth.Matrix() {
		if slices.ContainsFunc(only, func(part string) bool { return strings.Contains(b.String(), part) }) {
			builds = append(builds, b)
		}
	}
	if dir == "" {
		temporary, err := os.MkdirTemp("", "runs")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(temporary) }()
		dir = temporary
	}
	all := make([][]truth.Body, len(builds))
	finished, failed := 0, 0
	err := truth.CountRuns(ctx, dir, builds, func(i int, bodies []truth.Body, err error) {
		finished++
		if err != nil {
			failed++
			fmt.Fprintln(os.Stderr, err)
			return
		}
		all[i] = bodies
		fmt.Fprintf(os.Stderr, "%d/%d %v (runs%d)\n", finished, len(builds), &builds[i], i)
		for k := range bodies {
			for _, d := range bodies[k].Differences() {
				fmt.Fprintln(os.Stderr, "  ", d)
			}
		}
	})
	if err != nil {
		return err
	}
	fmt.Print("# Hits, compared with runs\n\nWritten by `bench/runs` (`make runs`). Programs count the runs of their functions: `go doc ./internal/truth`.\n\n")
	truth.WriteRuns(os.Stdout, builds, all)
	if failed > 0 {
		return fmt.Errorf("%d builds failed", failed)
	}
	return nil
}
