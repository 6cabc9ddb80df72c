package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/bpfprologue/bpfprologue/attachable"
	"github.com/bpfprologue/bpfprologue/export"
	"github.com/bpfprologue/bpfprologue/internal/screen"
	"github.com/bpfprologue/bpfprologue/internal/usage"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/recording"
)

func reportCommand(s *settings) *cobra.Command {
	var input string
	cmd := &cobra.Command{
		Use:   "report 'FUNC ARG...' | -i FILE",
		Short: "Write a page for a browser: coverage and sites, or what was recorded",
		Long: `report writes the plan of a definition as one HTML file, which needs no network: how
often each argument is fetched and why not elsewhere, and a table of all sites, or of as
many as fit into 20 MB. A click on a part of a bar or a word in the search field selects
sites; a click on a site shows the functions it is inlined into, locations with their
rules, reasons, and its prologue.

With -i the page is of the hits that record has kept, and needs neither the image nor
privileges: hits over time by thread or function, with whole runs as bars; counts by site
and task, histograms of numbers and durations by powers of two, counts of texts; and a
table of hits. A click on a row of a histogram, or a drag over the timeline, selects
hits. All are counted; the table and the marks are of at most 4000, chosen at random.`,
		Example: `  prolog-dump -k vmlinux report 'get_page page' -o get_page.html
  sudo prolog-dump -x ./server record -o server.hits --span 'walk i' -- ./server
  prolog-dump report -i server.hits -o server.html`,
		ValidArgsFunction: s.completeDefinition,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case input == "":
				return oneDefinition(cmd, args)
			case len(args) > 0:
				return errors.New("-i is about a recording: a definition has no place there")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if s.output == "" && screen.StdoutTerminal() {
				return usage.Errorf("a report is a page for a browser: -o FILE names the file")
			}
			if input != "" {
				return reportRecording(cmd, input)
			}
			return s.withPlan(cmd, args[0], func(x *subject, p *plan.Plan, w io.Writer) error {
				s.attachable, s.cost = x.kernel, true
				predict, err := s.predictor(x)
				if err != nil {
					return err
				}
				return export.HTML(w, p, func(site *plan.Site) (refused, method string) {
					at := predict.At(site)
					if at.Cause != attachable.CauseNone {
						return at.Cause.String() + ": " + at.Cause.Describe(), ""
					}
					return "", at.Method.String()
				})
			})
		},
	}
	s.use(cmd, nil, join(planFlags, []string{"output"})...)
	cmd.Flags().StringVarP(&input, "input", "i", "", "the page of a file that record has written; no image is needed")
	return cmd
}

// reportRecording writes the page of a recording.
func reportRecording(cmd *cobra.Command, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	r, err := recording.NewReader(f)
	if err == nil {
		err = buffered(cmd, func(w io.Writer) error { return recording.HTML(w, r) })
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
