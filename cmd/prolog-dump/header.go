package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/bpfprologue/bpfprologue/plan"
)

func headerCommand(s *settings) *cobra.Command {
	return s.use(&cobra.Command{
		Use:   "header 'FUNC ARG...'",
		Short: "Print the C declarations that a program for a definition begins with",
		Long: `header prints the prototype of the program that a definition's arguments are handed
to. With more than three arguments, or with strings and structures, they are in a
record, and header prints its structure too.

The types are those of linux/types.h and of bpftool's vmlinux.h. A bit of err is set for
each argument that was not fetched, which is 0 then, and with --doubt keep, or doubt=keep in
the definition, for each one that may not be what was passed. A program with a record is called
with 512 bytes of stack, less what the record and its prologue need.`,
		Example: `  prolog-dump -k vmlinux header 'read=vfs_read name=file->f_path.dentry->d_iname:string buf count pos' > read.h
  prolog-dump -k vmlinux header --string-bytes 128 'do_filp_open name=pathname->name:string'`,
		Args:              oneDefinition,
		ValidArgsFunction: s.completeDefinition,
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.withPlan(cmd, args[0], func(_ *subject, p *plan.Plan, w io.Writer) error {
				_, err := io.WriteString(w, p.Header())
				return err
			})
		},
	}, nil, join([]string{"ways", "missing", "doubt", "convention", "string-bytes"}, functionFlags, []string{"output"})...)
}
