package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/bpfprologue/bpfprologue/coverage"
	"github.com/bpfprologue/bpfprologue/internal/heap"
	"github.com/bpfprologue/bpfprologue/internal/terminal"
)

func coverageCommand(s *settings) *cobra.Command {
	var diff string
	cmd := &cobra.Command{
		Use:   "coverage IMAGE",
		Short: "Count, over all functions of an image, which parameters a probe can fetch",
		Long: `coverage resolves every parameter at every site of an image and counts the
answers, out-of-line entries and inlined instances apart. It writes the prologues
that fetch them, and counts those, the distinct ones and their instructions. It
also follows the code of all functions, and counts the ways into the bodies that
were inlined into them, and out of them, and how the kernel would run a probe at
each inlined site; --ways entry leaves both out. The report is kept with the
image's index, and the next one of the same file is read from there.

With --diff OTHER it prints the figures that differ from OTHER's, and its exit
status is 1 when IMAGE has a smaller share of located parameters than OTHER: a
gate for a kernel build.`,
		Example: `  prolog-dump coverage --ways entry ./server
  prolog-dump coverage --ways entry --diff ./server ./server`,
		RunE: func(cmd *cobra.Command, args []string) error {
			heap.From(heap.CoverageFrom, heap.Coverage)
			path, err := s.OnlyImageOf(args)
			if err != nil {
				return err
			}
			r, err := s.measure(cmd, path)
			if err != nil {
				return err
			}
			return buffered(cmd, func(w io.Writer) error {
				if diff != "" {
					return s.printDiff(cmd, w, diff, r)
				}
				return s.answered(w, r, func() error {
					r.Print(w)
					return nil
				})
			})
		},
	}
	s.use(cmd, textOrJSON, "vmlinux", "exec", "ways", "debug-dir", "recover", "no-cache", "output", "no-pager")
	cmd.Flags().StringVar(&diff, "diff", "", "compare with another image's coverage")
	return cmd
}

func (s *settings) measure(cmd *cobra.Command, path string) (*coverage.Report, error) {
	img, err := s.Open(path, nil)
	if err != nil {
		return nil, err
	}
	if s.ways != "all" {
		return coverage.Measure(cmd.Context(), img)
	}
	return coverage.MeasureAll(cmd.Context(), img)
}

func (s *settings) printDiff(cmd *cobra.Command, w io.Writer, other string, r *coverage.Report) error {
	base, err := s.measure(cmd, other)
	if err != nil {
		return err
	}
	changes := coverage.Diff(base, r)
	err = s.answered(w, changes, func() error {
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
		terminal.Fprintf(t, "%s\t%s\tchange\t figure\n", "old", "new")
		for _, c := range changes {
			terminal.Fprintf(t, "%d\t%d\t%+d\t %s\n", c.Old, c.New, c.New-c.Old, c.Name)
		}
		if err := t.Flush(); err != nil {
			return err
		}
		terminal.Fprintf(w, "located: %.3f %% in %s, %.3f %% in %s\n", 100*locatedShare(base), base.Image, 100*locatedShare(r), r.Image)
		return nil
	})
	if err != nil {
		return err
	}
	if locatedShare(r) < locatedShare(base) {
		return fmt.Errorf("%s has a smaller share of located parameters than %s", r.Image, base.Image)
	}
	return nil
}

// locatedShare returns the share of all parameters, of both kinds of sites, that have their
// whole value, from 0 to 1.
func locatedShare(r *coverage.Report) float64 {
	n := r.Entry.Parameters + r.Inline.Parameters
	if n == 0 {
		return 1
	}
	return float64(r.Entry.Located+r.Inline.Located) / float64(n)
}
