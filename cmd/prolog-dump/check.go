package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/bpfprologue/bpfprologue/internal/fleet"
	"github.com/bpfprologue/bpfprologue/internal/launch"
	"github.com/bpfprologue/bpfprologue/internal/screen"
	"github.com/bpfprologue/bpfprologue/internal/terminal"
	"github.com/bpfprologue/bpfprologue/internal/usage"
)

func checkCommand(s *settings) *cobra.Command {
	var kernels []string
	var require string
	cmd := &cobra.Command{
		Use:   "check PROG.o|'FUNC ARG...'... --kernels ARCHIVE|DIR|FILE...",
		Short: "Check whether definitions work on each kernel of a fleet",
		Long: `check says for each definition and kernel how many sites there are, at which part of them
all arguments are fetched and the kernel takes a probe, why not at the others, and what a
program that was compiled for the first of the kernels finds changed: types of arguments
and their places in a record. Where a kernel does not have a function it names another
one with which the definition works: 'kfree_skb_reason|kfree_skb reason'.

Definitions are those of an object file's programs, as of SEC("func=get_page page"), or
arguments. Kernels are packs, archives of packs, images with debug information, and
directories with these; a module is a kernel for the definitions with its module=. They
are sorted by their release. An argument that has a slash, a hyphen or a period and names
a file is no definition, so that --kernels packs/*.pack works.

The exit status is 1 if a definition has less on a kernel than --require says.`,
		Example: `  prolog-dump check filter.bpf.o --kernels all.packs
  prolog-dump check 'vfs_read file count' --kernels /srv/packs --require '90 % of sites'
  prolog-dump check filter.bpf.o --kernels all.packs --format html -o check.html`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := fleet.ParseRequirement(require)
			if err != nil {
				return usage.Errorf("--require %q: %w", require, err)
			}
			wants, more, err := fleet.Wanted(args, s.parse)
			switch {
			case err != nil:
				return err
			case len(wants) == 0:
				return usage.Errorf("check: no definition, and no object file with one")
			case len(kernels)+len(more) == 0:
				return usage.Errorf("check: --kernels names packs, archives, images or directories with them")
			}
			t, err := s.check(cmd, append(kernels, more...), wants)
			if err != nil {
				return err
			}
			err = buffered(cmd, func(w io.Writer) error {
				switch s.format {
				case "json":
					return t.JSON(w, r)
				case "html":
					return t.HTML(w, r)
				}
				return t.Text(w, s.Look, r)
			})
			if err != nil {
				return err
			}
			met, all := t.Met(r)
			if met == all {
				return nil
			}
			if s.format != "text" || s.output != "" {
				terminal.Fprintf(screen.Stderr, "prolog-dump: %d of %d answers have not what is required: %v\n", all-met, all, r)
			}
			return launch.Status(exitError) // it is an answer all the same, and goes to the file that -o names
		},
	}
	s.use(cmd, []string{"text", "json", "html"}, join([]string{"ways", "doubt", "string-bytes", "debug-dir", "recover", "no-cache"}, answerFlags)...)
	f := cmd.Flags()
	f.Var((*texts)(&kernels), "kernels", "packs, archives, kernel images, or directories with them; may be repeated")
	f.StringVar(&require, "require", "any", "what each definition must have on each kernel, as an exit status: none; any, a site with all arguments; all, every site; or a part, as '90 % of sites'")
	return cmd
}

func (s *settings) check(cmd *cobra.Command, paths []string, wants []fleet.Want) (*fleet.Table, error) {
	s.missing, s.reads, s.convention = "flag", "auto", "auto"
	o := fleet.Options{Image: s.ImageOptions(nil), Progress: screen.Counting("checking kernels")}
	var err error
	if o.Plan, err = s.options(true); err != nil {
		return nil, err
	}
	sources, err := fleet.Sources(paths)
	if err != nil {
		return nil, err
	}
	return fleet.Check(cmd.Context(), sources, wants, o)
}
