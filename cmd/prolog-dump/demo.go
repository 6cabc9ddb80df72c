package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/terminal"
	"github.com/bpfprologue/bpfprologue/probe"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

const demoSection = "func=my_func_*_abcd arg1"

func demoCommand(s *settings) *cobra.Command {
	return s.use(&cobra.Command{
		Use:   "demo",
		Short: "Do the main job on a small image inside this program: no root, no kernel image",
		Example: `  prolog-dump demo
  prolog-dump demo --sites --explain`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			name, data, err := fixtures.Demo()
			if err != nil {
				return err
			}
			img, err := dwarfloc.FromBytes(name, data, nil)
			if err != nil {
				return err
			}
			def, err := probe.ParseSection(demoSection)
			if err != nil {
				return err
			}
			return buffered(cmd, func(w io.Writer) error {
				if s.format == "text" {
					terminal.Fprintf(w, "A BPF program in the section\n\n    SEC(%q)\n\nprobes these places of the image %s:\n\n", demoSection, name)
				}
				return s.print(cmd.Context(), w, &subject{img: img}, def)
			})
		},
	}, textOrJSON, join([]string{"sites", "explain"}, answerFlags)...)
}
