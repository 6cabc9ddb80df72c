package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/bpfprologue/bpfprologue/internal/proof/formats"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

// measureFormats builds programs in each format of debug information, compares the answers about them with those about their
// plain builds, and prints a table. Progress and differences go to standard error.
func measureFormats() {
	program := flag.String("program", "", "only programs whose names contain `TEXT`")
	Main("formats", "formats", ";", func(ctx context.Context, s *Series) error { return formatsRun(ctx, s, *program) })
}

func formatsRun(ctx context.Context, s *Series, program string) error {
	fmt.Print("# Formats of debug information, compared with plain builds\n\n" +
		"Written by `measure formats` (`make formats`): `go doc ./internal/proof/formats`. A difference is a site about which something else is said:\n" +
		"where it is, what it is called, its callers, and each parameter's name, type, location, rule and reason.\n\n" +
		"| program | format | sites | inlined | parameters | located | differences |\n| --- | --- | ---: | ---: | ---: | ---: | ---: |\n")
	failed, differ := 0, 0
	for _, p := range formats.Programs() {
		if !strings.Contains(p.Name, program) {
			continue
		}
		sources, ok := p.Exists(testenv.Cache())
		if !ok {
			return fmt.Errorf("no sources at %s: run scripts/fetch-source.sh %s", sources, p.Package)
		}
		for _, f := range formats.Formats() {
			if !s.Has(f.Name) {
				continue
			}
			results, err := formats.Try(ctx, &p, sources, &f, s.Dir)
			if err != nil {
				failed++
				fmt.Fprintf(os.Stderr, "%s, %s: %v\n", p.Name, f.Name, err)
				continue
			}
			names := make([]string, 0, len(results))
			for name := range results {
				names = append(names, name)
			}
			slices.Sort(names)
			for _, name := range names {
				r := results[name]
				differ += len(r.Differences)
				fmt.Printf("| %s | %s | %d | %d | %d | %d | %d |\n", name, f.Name, r.Sites, r.Inlined, r.Parameters, r.Located, len(r.Differences))
				for _, d := range r.Differences[:min(len(r.Differences), 10)] {
					fmt.Fprintf(os.Stderr, "%s, %s: %s\n", name, f.Name, d)
				}
			}
		}
	}
	if differ > 0 || failed > 0 {
		return fmt.Errorf("%d differences; %d builds failed", differ, failed)
	}
	return nil
}
