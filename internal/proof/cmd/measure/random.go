package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/proof/truth"
)

// measureRandom makes programs in C up, compiles each with the builds of truth.RandomMatrix, traces them, and prints a table of how many
// values were not those that the programs passed. Progress and the wrong values go to standard error.
func measureRandom() {
	first := flag.Uint64("first", 1, "the first `SEED`")
	count := flag.Uint64("seeds", 20, "how many `SEEDS`")
	Main("random", "builds", ",", func(ctx context.Context, s *Series) error { return randomRun(ctx, s, *first, *count) })
}

func randomRun(ctx context.Context, s *Series, first, count uint64) error {
	builds := slices.DeleteFunc(truth.RandomMatrix(), func(b truth.Build) bool { return !s.Has(b.String()) })
	var seeds []uint64
	for i := range count {
		seeds = append(seeds, first+i)
	}
	results := make(map[string]*truth.Result)
	var failed error
	done := 0
	err := truth.RunRandom(ctx, s.Dir, builds, seeds, func(b *truth.Build, seed uint64, r *truth.Result, err error) {
		done++
		if err != nil {
			failed = errors.Join(failed, err)
			return
		}
		fmt.Fprintf(os.Stderr, "%d/%d %v, seed %d: %d compared, %d wrong\n", done, len(builds)*len(seeds), b, seed, r.Compared, r.Count.Wrong)
		for i := range r.Wrong {
			fmt.Fprintln(os.Stderr, "  ", &r.Wrong[i])
		}
		results[b.String()] = truth.Sum([]*truth.Result{results[b.String()], r})
	})
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	fmt.Printf("# What probes fetch in generated programs\n\nWritten by `measure random` (`make random`), seeds %d to %d. `go doc ./internal/proof/truth` says how.\n\n", first, first+count-1)
	fmt.Print("Functions of these programs assign their parameters far more often than those of people, whose programs\n`measure truth` traces. [docs/limits.md](../docs/limits.md) says what compilers describe wrongly.\n\n")
	fmt.Print("| build | runs | values compared | wrong | of 1000 | lost | of these `reassigned` |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n")
	for i := range builds {
		b := &builds[i]
		r := results[b.String()]
		if r == nil {
			continue
		}
		reassigned := 0
		for l, n := range r.Lost {
			if l.Reason == "reassigned" {
				reassigned += n
			}
		}
		fmt.Printf("| %v | %d | %d | %d | %.2f | %d | %d |\n", b, r.Runs, r.Compared, r.Count.Wrong, 1000*float64(r.Count.Wrong)/float64(max(r.Compared, 1)), r.LostValues(), reassigned)
	}
	return nil
}
