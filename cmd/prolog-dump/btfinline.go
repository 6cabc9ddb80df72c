package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/internal/btfinline"
	"github.com/bpfprologue/bpfprologue/internal/heap"
	"github.com/bpfprologue/bpfprologue/internal/kernelhas"
	"github.com/bpfprologue/bpfprologue/internal/screen"
	"github.com/bpfprologue/bpfprologue/internal/terminal"
	"github.com/bpfprologue/bpfprologue/internal/usage"
)

func btfInlineCommand(s *settings) *cobra.Command {
	cmd := s.use(&cobra.Command{
		Use:   "btf-inline IMAGE",
		Short: "Compare a section .BTF.inline with the debug information",
		Long: `btf-inline compares what a section .BTF.inline says of inlined functions, as it was merged
in bpf-next in September 2026, with what the debug information of the same file says:
the instances, and where their parameters are. The exit status is 1 if a parameter is
in another place.`,
		Example: "  prolog-dump btf-inline ./vmlinux",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			path, err := s.OnlyImageOf(args)
			if err != nil {
				return err
			}
			dwarf, err := s.Open(path, nil)
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
			err = buffered(cmd, func(w io.Writer) error { return s.answered(w, a, func() error { return a.Print(w) }) })
			if err != nil {
				return err
			}
			if a.Other > 0 {
				return fmt.Errorf("%s: %d parameters are at another place in .BTF.inline than in the debug information", path, a.Other)
			}
			return nil
		},
	}, textOrJSON, "vmlinux", "exec", "debug-dir", "recover", "no-cache", "output", "no-pager")
	cmd.AddCommand(btfInlineWriteCommand(s))
	return cmd
}

func btfInlineWriteCommand(s *settings) *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:   "write -o FILE IMAGE|PACK",
		Short: "Write a section .BTF.inline, from debug information or a pack",
		Long: `write writes the contents of a section .BTF.inline, which no released compiler or pahole
writes: the inlined instances of all functions, and where their parameters are. The views
of the debug information are resolved; what the format cannot say (arithmetic, addresses of
the image, doubtful values) is left out and counted. It builds on the section .BTF that the
image has; of a pack that is the running kernel's, and the pack one without types.

  objcopy --add-section .BTF.inline=FILE vmlinux

adds it to the image, and --btf=IMAGE answers from both.`,
		Example: "  prolog-dump btf-inline write -o vmlinux.BTF.inline vmlinux",
		RunE: func(cmd *cobra.Command, args []string) error {
			image, err := s.OnlyImageOf(args)
			if err != nil {
				return err
			}
			return buffered(cmd, func(w io.Writer) error { return s.writeBTFInline(cmd.Context(), w, image, path) })
		},
	}
	s.use(cmd, textOrJSON, "vmlinux", "exec", "debug-dir", "recover", "no-cache")
	cmd.Flags().StringVarP(&path, "output", "o", "", "the file; another one of that name is replaced when the new one is whole")
	return cmd
}

func (s *settings) writeBTFInline(ctx context.Context, out io.Writer, image, path string) error {
	if path == "" {
		return usage.Errorf("btf-inline write writes to a file: -o names it")
	}
	img, err := s.Open(image, nil)
	if err != nil {
		return err
	}
	heap.At(heap.Coverage)
	var sum *btfinline.Written
	err = replace("btf-inline write", path, func(w io.Writer) error {
		var section []byte
		if section, sum, err = btfinline.Of(ctx, img, instances.KernelTypes, screen.Counting("reading sites")); err == nil {
			err = img.Changed()
		}
		if err == nil {
			_, err = w.Write(section)
		}
		return err
	})
	if err != nil {
		return err
	}
	return s.answered(beside(out, path), sum, func() error {
		terminal.Fprintf(beside(out, path), "%s: %v\n", path, sum)
		return nil
	})
}
