package main

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/bpfprologue/bpfprologue/internal/truth"
)

func main() {
	only := flag.String("only", "", "only builds whose names contain one of these `TEXTS`, separated by commas")
	dir := flag.String("dir", "", "`FOLDER` for the sources and programs, which are kept")
	flag.Parse()
	var builds []truth.Build
	for _, b := range truth.Matrix() {
		if slices.ContainsFunc(strings.Split(*only, ","), func(part string) bool { return strings.Contains(b.String(), part) }) {
			builds = append(builds, b)
		}
	}
	err := truth.CountRuns(context.Background(), *dir, builds, func(i int, bodies []truth.Body, err error) {
		if err != nil {
			fmt.Println(err)
			return
		}
		bad := 0
		why := map[string]int{}
		for _, b := range bodies {
			if b.Unknown > 0 {
				why[b.Why]++
				continue
			}
			for k, t := range []truth.Tally{b.In, b.Out} {
				if !t.Exact() || t.Marked > 0 || t.Shifted > 0 {
					if !t.Exact() {
						bad++
					}
					state := "BAD"
					if t.Exact() {
						state = "ok"
					}
					fmt.Printf("%s %s %s: %v (runs%d) sites %d ways %d nocode %v runs %d hits %d missed %d twice %d marked %d shifted %d entry %d %v\n", b.Label, []string{"in", "out"}[k], state, b.Build, i, b.Sites, b.Ways, b.NoCode, b.Runs, t.Hits, t.Missed, t.Twice, t.Marked, t.Shifted, b.Entry.Hits, t.Where)
				}
			}
		}
		fmt.Printf("%v: %d bodies, %d bad %v\n", &builds[i], len(bodies), bad, why)
	})
	if err != nil {
		fmt.Println(err)
	}
}
