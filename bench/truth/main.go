// Truth makes all builds of package truth's programs, traces them, and writes a table of what
// was right, wrong and lost as Markdown. Wrong values go to standard error.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"github.com/bpfprologue/bpfprologue/internal/truth"
)

func main() {
	only := flag.String("only", "", "builds whose names contain `TEXT`; several are separated by commas")
	dir := flag.String("dir", "", "`FOLDER` for the sources and programs, which stay there")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *only, *dir); err != nil {
		fmt.Fprintln(os.Stderr, "truth:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, only, dir string) error {
	var builds []truth.Build
	for _, b := range truth.Matrix() {
		for _, part := range strings.Split(only, ",") {
			if strings.Contains(b.String(), part) {
				builds = append(builds, b)
				break
			}
		}
	}
	if dir == "" {
		temporary, err := os.MkdirTemp("", "truth")
		if err != nil {
			return err
		}
		defer os.RemoveAll(temporary)
		dir = temporary
	}
	results := make([]*truth.Result, len(builds))
	failed, finished := 0, 0
	err := truth.Run(ctx, dir, builds, func(i int, r *truth.Result, err error) {
		finished++
		if err != nil {
			failed++
			fmt.Fprintln(os.Stderr, err)
			return
		}
		results[i] = r
		fmt.Fprintf(os.Stderr, "%d/%d %v (program%d): %d compared, %d wrong\n", finished, len(builds), &builds[i], i, r.Compared, r.WrongValues())
		for k := range r.Wrong {
			fmt.Fprintln(os.Stderr, "  ", &r.Wrong[k])
		}
		for _, d := range r.Notes {
			fmt.Fprintln(os.Stderr, "   refused:", d)
		}
	})
	if err != nil {
		return err
	}
	truth.WriteTable(os.Stdout, builds, results)
	if failed > 0 {
		return fmt.Errorf("%d of %d builds failed", failed, len(builds))
	}
	return nil
}
