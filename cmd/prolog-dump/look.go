package main

import (
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/answers"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/listing"
	"github.com/bpfprologue/bpfprologue/internal/selected"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/sites"
)

// Commands to look around with before writing a probe, like perf probe's -L, -V and -F. None
// needs a kernel.

func varsCommand(s *settings) *cobra.Command {
	return s.use(&cobra.Command{
		Use:   "vars FUNC[:LINE]|FILE:LINE|ADDRESS",
		Short: "Show the variables that a probe can fetch, and at how many of its sites",
		Long: `vars lists the parameters and locals in scope at the sites of a probe point, with
their types and the number of sites where each has a location; and why it has none at
the others.`,
		Example: `  prolog-dump -k vmlinux vars get_page
  prolog-dump -k vmlinux vars vfs_read:6`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: s.completeOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.withImage(cmd, args[0], func(x *subject, def *probe.Definition, w io.Writer) error {
				point := *def
				point.Args = nil
				o := x.options
				o.EntryOnly = true // it counts sites, not probes
				p, err := plan.New(cmd.Context(), x.img, &point, o)
				if err != nil {
					return err
				}
				at := make([]*dwarfloc.Site, len(p.Sites))
				for i := range p.Sites {
					at[i] = p.Sites[i].Site
				}
				if by := inside.AnsweredBy(x.img); by != "" && by != answers.BySymbols {
					s.WarnOnce(by + " has no local variables: there may be others")
				}
				all, err := sites.Variables(cmd.Context(), at)
				if err != nil {
					return err
				}
				return listing.Variables(w, s.view(), all)
			})
		},
	}, textOrJSON, join(functionFlags, answerFlags)...)
}

func linesCommand(s *settings) *cobra.Command {
	return s.use(&cobra.Command{
		Use:   "lines FUNC[@FILE][:LINES]|FILE[:LINES]",
		Short: "Show the source lines of a function or a file, and how many sites a probe at each has",
		Long: `lines lists the source lines of a function, counted from the line that declares it,
with the number of sites of each: of all bodies, out of line and inlined. A line
without a number has no code of its own. FUNC:LINE is a probe point. The lines of a
file are counted from 1. As in perf probe -L, LINES is FROM-TO, FROM+COUNT, or FROM
alone, which means to the end.

The text is shown where the sources are found: below a directory that --source
names, or where they were compiled, if that directory is the user's own.`,
		Example: `  prolog-dump -k vmlinux --source ~/linux lines vfs_read
  prolog-dump -k vmlinux lines vfs_read:5-10
  prolog-dump -k vmlinux lines vfs_read:5+3
  prolog-dump -k vmlinux lines fs/read_write.c:450-470
  prolog-dump -k vmlinux 'vfs_read:6 file pos'`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: s.completeOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			text, only, err := selected.ParseRange(args[0])
			if err != nil {
				return err
			}
			return s.withImage(cmd, text, func(x *subject, def *probe.Definition, w io.Writer) error {
				all, err := selected.Lines(cmd.Context(), x.img, def, x.options.Filter, x.options.Sources, only)
				if err != nil {
					return err
				}
				return listing.Lines(w, s.view(), all)
			})
		},
	}, textOrJSON, join(functionFlags, answerFlags)...)
}

func funcsCommand(s *settings) *cobra.Command {
	return s.use(&cobra.Command{
		Use:               "funcs PATTERN",
		Short:             "List functions with the number of their sites, out of line and inlined",
		Example:           `  prolog-dump -k vmlinux funcs 'vfs_r*'`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: s.completeOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.withImage(cmd, args[0], func(x *subject, def *probe.Definition, w io.Writer) error {
				sel, err := selected.Functions(def, x.options.Filter)
				if err != nil {
					return err
				}
				all, err := sites.Functions(cmd.Context(), x.img, sel)
				var missing *sites.NotFoundError
				if errors.As(err, &missing) {
					return probe.Errorf(def, def.Point.Pos, "%w", err)
				}
				if err != nil {
					return err
				}
				return listing.Functions(w, s.view(), all)
			})
		},
	}, textOrJSON, join([]string{"filter"}, imageFlags, answerFlags)...)
}

// view is how functions are printed.
func (s *settings) view() *listing.View { return &listing.View{Look: s.Look, JSON: s.format == "json"} }
