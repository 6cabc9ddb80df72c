package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/proof/twin"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

// measureTwin builds real programs with and without optimization, traces both, and prints a page that compares what was seen.
// Progress and what differs go to standard error.
func measureTwin() {
	ends := flag.Bool("ends", false, "compare where runs end, in place of where they begin")
	Main("twin", "programs and flavours", ";", func(ctx context.Context, s *Series) error {
		if *ends {
			return twinRun(ctx, s, twin.CompareEnds)
		}
		return twinRun(ctx, s, twin.Compare)
	})
}

// comparison is one of package twin's.
type comparison func(ctx context.Context, dir string, p *twin.Program, sources string, flavours []twin.Flavour, done func(*twin.Result, error)) error

func twinRun(ctx context.Context, s *Series, compare comparison) error {
	var results []*twin.Result
	failed, wrong := 0, 0
	for _, p := range twin.Programs() {
		flavours := slices.DeleteFunc(twin.Flavours(), func(f twin.Flavour) bool { return !s.Has(p.Name + ", " + f.Name) })
		if len(flavours) == 0 {
			continue
		}
		sources, ok := p.Sources(testenv.Cache())
		if !ok {
			return fmt.Errorf("no sources at %s: run scripts/fetch-source.sh %s", sources, p.Package)
		}
		first := true
		err := compare(ctx, s.Dir, &p, sources, flavours, func(r *twin.Result, err error) {
			if err != nil {
				failed++
				fmt.Fprintln(os.Stderr, err)
				return
			}
			results = append(results, r)
			if first {
				for f, why := range r.Off {
					fmt.Fprintf(os.Stderr, "%s: %s is not compared: %s\n", p.Name, f.Name, why)
				}
				first = false
			}
			fmt.Fprintf(os.Stderr, "%s, %s: %d sites\n", r.Program, r.Flavour, r.Sites)
			for _, d := range r.Details() {
				fmt.Fprintln(os.Stderr, "  ", d)
			}
			for i := range r.Verdicts {
				v := &r.Verdicts[i]
				for k := range v.Wrong {
					if r.Known(v, &v.Wrong[k]) == "" {
						wrong += v.Wrong[k].Count
					}
				}
			}
		})
		if err != nil {
			failed++
			fmt.Fprintln(os.Stderr, err)
		}
	}
	fmt.Print("# Real programs, beside their unoptimized builds\n\nWritten by `measure twin` (`make twin`): `go doc ./internal/proof/twin`. " +
		"In parentheses: what no rule explains.\n\n")
	twin.Write(os.Stdout, results)
	if failed > 0 || wrong > 0 {
		return fmt.Errorf("%d values are wrong that are not known to be; %d builds or programs failed", wrong, failed)
	}
	return nil
}
