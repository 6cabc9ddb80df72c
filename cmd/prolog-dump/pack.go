package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/bpfprologue/bpfprologue/glob"
	"github.com/bpfprologue/bpfprologue/internal/fleet"
	"github.com/bpfprologue/bpfprologue/internal/heap"
	"github.com/bpfprologue/bpfprologue/internal/outfile"
	"github.com/bpfprologue/bpfprologue/internal/packs"
	"github.com/bpfprologue/bpfprologue/internal/screen"
	"github.com/bpfprologue/bpfprologue/internal/terminal"
	"github.com/bpfprologue/bpfprologue/internal/usage"
	"github.com/bpfprologue/bpfprologue/pack"
)

func packCommand(s *settings) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "pack",
		Short: "Write, check and compare small files with all answers for an image, for hosts without its debug information",
		Long: `A pack takes the place of an image: it has all functions, or those that match a
pattern, with their sites, inlined or not, the ways into and out of inlined bodies,
where the parameters are at each, source lines and types. The same image gives the
same bytes on any machine.

Types are in the section .BTF, as bpftool reads it. A kernel has its own types while it
runs: with --no-types they are left out, and taken from there.`,
	}
	cmd.AddCommand(packWriteCommand(s), packCheckCommand(s), packDiffCommand(s), packArchiveCommand(s))
	return cmd
}

func packWriteCommand(s *settings) *cobra.Command {
	var path, dir string
	var noTypes, stats bool
	cmd := &cobra.Command{
		Use:   "write -o FILE|--out-dir DIR IMAGE [PATTERN...]",
		Short: "Write a pack of an image",
		Long: `write writes the pack of an image, into a file or, with --out-dir, where a server of
static files finds it by build ID: DIR/buildid/BUILDID/pack. There it also writes
DIR/index.jsonl, which lists all packs that are in DIR, a line of JSON each; several
processes may write into one directory at once. --pack-url and PACK_URLS name such a
server to the commands that need packs.`,
		Example: `  prolog-dump pack write -o vmlinux.pack vmlinux
  prolog-dump pack write --out-dir packs vmlinux
  prolog-dump pack write -o server.pack -x ./server 'walk*'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			image, names, err := s.ImageOf(args)
			if err != nil {
				return err
			}
			if path != "" && dir != "" {
				return usage.Errorf("-o names a file, and --out-dir a directory for it: one is enough")
			}
			return buffered(cmd, func(w io.Writer) error { return s.writePack(cmd.Context(), w, image, names, path, dir, noTypes, stats) })
		},
	}
	s.use(cmd, textOrJSON, "vmlinux", "exec", "debug-dir", "recover", "no-cache")
	f := cmd.Flags()
	f.StringVarP(&path, "output", "o", "", "the file; another one of that name is replaced when the new one is whole")
	f.StringVar(&dir, "out-dir", "", "a directory with packs by build ID, for a server of files")
	f.BoolVar(&noTypes, "no-types", false, "leave out the types that the running kernel has")
	f.BoolVar(&stats, "stats", false, "print how many bytes each part has")
	return cmd
}

func packCheckCommand(s *settings) *cobra.Command {
	var stats bool
	cmd := &cobra.Command{
		Use: "check PACK...", Short: "Check packs, all of each, and print what is in them", Args: cobra.MinimumNArgs(1),
		Example: "  prolog-dump pack check vmlinux.pack",
		RunE: func(cmd *cobra.Command, args []string) error {
			return buffered(cmd, func(w io.Writer) error { return packs.Check(w, s.view(), args, stats) })
		},
	}
	s.use(cmd, textOrJSON)
	cmd.Flags().BoolVar(&stats, "stats", false, "print how many bytes each part has")
	return cmd
}

func packDiffCommand(s *settings) *cobra.Command {
	return s.use(&cobra.Command{
		Use: "diff OLD NEW", Short: "Print the functions with changed sites, or changed places of parameters", Args: cobra.ExactArgs(2),
		Example: "  prolog-dump pack diff vmlinux.pack vmlinux.pack",
		RunE: func(cmd *cobra.Command, args []string) error {
			return buffered(cmd, func(w io.Writer) error { return packs.Diff(w, s.view(), args[0], args[1]) })
		},
	}, textOrJSON)
}

func packArchiveCommand(s *settings) *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use: "archive -o FILE PACK...", Short: "Put many packs into one file, with an index by build ID", Args: cobra.MinimumNArgs(1),
		Example: "  prolog-dump pack archive -o all.packs vmlinux.pack server.pack",
		RunE: func(cmd *cobra.Command, args []string) error {
			return buffered(cmd, func(w io.Writer) error { return s.writeArchive(w, args, path) })
		},
	}
	s.use(cmd, textOrJSON)
	cmd.Flags().StringVarP(&path, "output", "o", "", "the file; another one of that name is replaced when the new one is whole")
	return cmd
}

// replace writes a file that takes the place of another when it is whole.
func replace(verb, path string, write func(w io.Writer) error) error {
	if path == "" {
		return usage.Errorf("%s writes to a file: -o names it", verb)
	}
	o, err := outfile.Create(path, false)
	if err != nil {
		return err
	}
	err = write(o)
	return errors.Join(err, o.Close(err == nil))
}

// patterns match a name if one of them does.
type patterns []glob.Matcher

func (p patterns) Match(name string) bool {
	for _, m := range p {
		if m.Match(name) {
			return true
		}
	}
	return false
}

func (p patterns) Literal() (string, bool) {
	if len(p) == 1 {
		return p[0].Literal()
	}
	return "", false
}

func (s *settings) writePack(ctx context.Context, w io.Writer, image string, names []string, path, dir string, noTypes, stats bool) error {
	heap.At(heap.Usual)
	po := pack.Options{NoTypes: noTypes}
	var list patterns
	for _, n := range names {
		m, err := glob.Compile(n)
		if err != nil {
			return err
		}
		list = append(list, m)
	}
	if list != nil {
		po.Match = list
	}
	img, err := s.Open(image, nil)
	if err != nil {
		return err
	}
	po.Progress = screen.Counting("reading sites")
	var sum *pack.Summary
	write := func(f io.Writer) (err error) {
		if sum, err = pack.Write(ctx, img, po, f); err == nil && sum.Sites == 0 {
			err = fmt.Errorf("%s: no function matches, and so there is nothing to pack", image)
		}
		if err == nil {
			err = img.Changed()
		}
		return err
	}
	if dir != "" {
		path, err = fleet.WriteInTree(dir, img, write)
	} else {
		err = replace("pack", path, write)
	}
	if err != nil {
		return err
	}
	return packs.Print(beside(w, path), s.view(), path, sum, stats)
}

// beside returns where to say something of a file that was written: standard output, unless that is the file.
func beside(w io.Writer, path string) io.Writer {
	if screen.IsStdout(path) {
		return screen.Stderr
	}
	return w
}

func (s *settings) writeArchive(out io.Writer, paths []string, path string) error {
	err := replace("pack", path, func(w io.Writer) error { return packs.WriteArchive(w, paths) })
	if err != nil || s.format == "json" {
		return err
	}
	terminal.Fprintf(beside(out, path), "%s: %s\n", path, screen.Count(len(paths), "pack"))
	return nil
}
