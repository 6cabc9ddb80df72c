package main

import (
	"io"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/fault"
	"github.com/bpfprologue/bpfprologue/internal/listing"
	"github.com/bpfprologue/bpfprologue/probe"
)

func bugCommand(s *settings) *cobra.Command {
	return s.use(&cobra.Command{
		Use:   "bug ['FUNC ARG...']",
		Short: "Write what a report of a fault needs: versions, build ID, and the answer with its reasons",
		Long: `bug writes a text for a report of a fault: the versions of the tool and of the kernel,
what this process may do, the image by its build ID, and what --explain says of the
definition, or the error.

It leaves out the environment, names of users and machines, home directories, what follows
the host in URLs, and what programs hold in memory. Names of functions, variables and
source files are in it. Read it before you hand it on.`,
		Example: `  prolog-dump bug -o bug.md
  prolog-dump -k vmlinux bug 'get_page page' -o bug.md
  prolog-dump -x ./server bug 'walk n->name:string i'`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: s.completeDefinition,
		RunE: func(cmd *cobra.Command, args []string) error {
			return buffered(cmd, func(w io.Writer) error { return s.bug(cmd, w, args) })
		},
	}, nil, join([]string{"output"}, planFlags)...)
}

func (s *settings) bug(cmd *cobra.Command, w io.Writer, args []string) error {
	r := fault.Report{Version: version()}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		value := f.Value.String()
		if f.Name == "vmlinux" || f.Name == "exec" {
			value = filepath.Base(value) // the build ID says which it is
		}
		r.Flags = append(r.Flags, "--"+f.Name+"="+value)
	})
	if len(args) > 0 {
		var def *probe.Definition
		var x *subject
		r.Definition = args[0]
		r.Open = func() (_ *dwarfloc.Image, err error) {
			if def, err = s.parse(args[0]); err != nil {
				return nil, err
			}
			if x, err = s.subject(&def.Options); err != nil {
				return nil, err
			}
			return x.img, nil
		}
		r.Answer = func(w io.Writer) error {
			return listing.Text(cmd.Context(), w, x.img, def, x.options, &listing.Options{Explain: true})
		}
	}
	return r.Write(w)
}
