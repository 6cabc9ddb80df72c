package main

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/btfinline"
	"github.com/bpfprologue/bpfprologue/internal/jsonline"
	"github.com/bpfprologue/bpfprologue/internal/kernelhas"
	"github.com/bpfprologue/bpfprologue/internal/terminal"
)

func btfInlineCommand(s *settings) *cobra.Command {
	return s.use(&cobra.Command{
		Use:   "btf-inline IMAGE",
		Short: "Compare a section .BTF.inline with the debug information",
		Long: `btf-inline compares what a section .BTF.inline says of inlined functions, as the fourth
version of its proposal has it, with what the debug information of the same file says:
the instances, and where their parameters are. The exit status is 1 if a parameter is
in another place.`,
		Example: "  prolog-dump btf-inline ./vmlinux",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			path, err := s.onlyImageOf(args)
			if err != nil {
				return err
			}
			dwarf, err := s.open(path, nil)
			if err != nil {
				return err
			}
			btf, err := dwarfloc.OpenBTF(path, kernelhas.Arch())
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, btf.Close()) }()
			a, err := btfinline.AgreeInline(cmd.Context(), btf, dwarf)
			if err != nil {
				return err
			}
			if a.Both+a.OnlyBTF == 0 {
				return fmt.Errorf("%s: no section .BTF.inline, or no inlined function in it", path)
			}
			if err := buffered(cmd, func(w io.Writer) error { return s.printAgreement(w, a) }); err != nil {
				return err
			}
			if a.Other > 0 {
				return fmt.Errorf("%s: %d parameters are at another place in .BTF.inline than in the debug information", path, a.Other)
			}
			return nil
		},
	}, textOrJSON, "vmlinux", "exec", "debug-dir", "no-cache", "output", "no-pager")
}

func (s *settings) printAgreement(w io.Writer, a *btfinline.Agreement) error {
	if s.format == "json" {
		return jsonline.Write(w, a)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, row := range []struct {
		n    int
		text string
	}{
		{a.Both, "instances in both"}, {a.OnlyBTF, "only in .BTF.inline"}, {a.Only, "only in DWARF"},
		{a.Same, "parameters of those in both: at the same place"}, {a.Other, "at another place"}, {a.ByBTF, "located only by .BTF.inline"},
		{a.ByDWARF, "located only by DWARF"}, {a.Neither, "located by neither"},
	} {
		terminal.Fprintf(t, "%d\t  %s\n", row.n, row.text)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, d := range a.Different {
		terminal.Fprintf(w, "%s\n", d)
	}
	return nil
}
