package main

import (
	"context"
	"fmt"
	"os"

	"github.com/bpfprologue/bpfprologue/internal/proof/truth"
)

// measureRuns makes the builds of package truth's programs that count their runs, traces every function
// where bodies begin and end, and prints a page that compares hits with runs. Progress and what
// differs go to standard error.
func measureRuns() { Main("runs", "builds", ",", runsRun) }

func runsRun(ctx context.Context, s *Series) error {
	builds := truth.Chosen(s.Has)
	all := make([][]truth.Body, len(builds))
	finished, failed := 0, 0
	err := truth.CountRuns(ctx, s.Dir, builds, func(i int, bodies []truth.Body, err error) {
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
	fmt.Print("# Hits, compared with runs\n\nWritten by `measure runs` (`make runs`). Programs count the runs of their functions: `go doc ./internal/proof/truth`.\n\n")
	truth.WriteRuns(os.Stdout, builds, all)
	if failed > 0 {
		return fmt.Errorf("%d builds failed", failed)
	}
	return nil
}
