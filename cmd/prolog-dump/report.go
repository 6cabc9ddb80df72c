package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/bpfprologue/bpfprologue/attachable"
	"github.com/bpfprologue/bpfprologue/export"
	"github.com/bpfprologue/bpfprologue/plan"
)

func reportCommand(s *settings) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "report 'FUNC ARG...'",
		Short: "Write a page for a browser: coverage, and a table of the sites to filter",
		Long: `report writes the plan of a definition as one HTML file, which needs no network: how
often each argument is fetched and why not elsewhere, and a table of all sites. A click on
a part of a bar or a word in the search field selects sites; a click on a site shows the
functions it is inlined into, locations with their rules, reasons, and its prologue.`,
		Example:           `  prolog-dump -k vmlinux report 'get_page page' -o get_page.html`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: s.completeDefinition,
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.withPlan(cmd, args, func(x *subject, p *plan.Plan, w io.Writer) error {
				s.attachable, s.cost = x.kernel, true
				predict, err := s.predictor(x)
				if err != nil {
					return err
				}
				return export.HTML(w, p, func(site *plan.Site) (refused, method string) {
					at := predict.at(site)
					if at.cause != attachable.CauseNone {
						return at.cause.String() + ": " + at.cause.Describe(), ""
					}
					return "", at.method.String()
				})
			})
		},
	}
	s.use(cmd, nil, join(planFlags, []string{"output"})...)
	return cmd
}
