package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/bpfprologue/bpfprologue/glob"
	"github.com/bpfprologue/bpfprologue/internal/mapping"
	"github.com/bpfprologue/bpfprologue/pack"
	"github.com/bpfprologue/bpfprologue/terminal"
)

// packOptions are the flags of pack.
type packOptions struct {
	output         string
	noTypes, stats bool

	check, diff, archive, delta, apply bool // what is done instead of writing a pack
}

func packCommand(s *settings) *cobra.Command {
	var o packOptions
	cmd := &cobra.Command{
		Use:   "pack -o FILE IMAGE [PATTERN...]",
		Short: "Write all answers for an image into a small file, for hosts without its debug information",
		Long: `pack writes a file that takes the place of an image: all functions that match a
pattern, or all there are, with their sites, inlined or not, the ways into and out
of inlined bodies, where the parameters are at each, source lines and types. The
same image gives the same bytes on any machine.

Types are in the section .BTF, as bpftool reads it. A kernel has its own types while it
runs: with --no-types they are left out, and taken from there.

With --check, pack checks files, all of each, and prints what is in them. With --diff
OLD NEW it prints of which functions the sites changed from one pack to the other,
or the places of parameters. With --archive it puts many packs into one file, which
has an index by build ID.

With --delta OLD NEW it writes what makes the new pack of the old one, which is small
between releases of one kernel, and with --apply OLD DELTA a host makes the new pack,
byte by byte as it was.`,
		Example: `  prolog-dump pack -o vmlinux.pack vmlinux
  prolog-dump pack -o server.pack ./server 'walk*'
  prolog-dump pack --check vmlinux.pack
  prolog-dump pack --diff vmlinux.pack vmlinux.pack
  prolog-dump pack --archive -o all.packs vmlinux.pack server.pack
  prolog-dump pack --delta -o next.delta vmlinux.pack vmlinux.pack
  prolog-dump pack --apply -o next.pack vmlinux.pack next.delta`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			w := bufio.NewWriter(cmd.OutOrStdout())
			var err error
			switch {
			case o.check:
				err = s.checkPacks(w, args, &o)
			case o.diff:
				err = s.diffPacks(w, args)
			case o.archive:
				err = s.writeArchive(w, args, &o)
			case o.delta:
				err = s.writeDelta(w, args, &o)
			case o.apply:
				err = s.applyDelta(w, args, &o)
			default:
				err = s.writePack(cmd.Context(), w, args[0], args[1:], &o)
			}
			return errors.Join(err, w.Flush())
		},
	}
	s.use(cmd, textOrJSON, "debug-dir", "no-cache")
	f := cmd.Flags()
	f.StringVarP(&o.output, "output", "o", "", "the file; another one of that name is replaced when the new one is whole")
	f.BoolVar(&o.noTypes, "no-types", false, "leave out the types that the running kernel has")
	f.BoolVar(&o.stats, "stats", false, "print how many bytes each part has")
	f.BoolVar(&o.check, "check", false, "check files")
	f.BoolVar(&o.diff, "diff", false, "compare two packs")
	f.BoolVar(&o.archive, "archive", false, "put packs into one file")
	f.BoolVar(&o.delta, "delta", false, "write what makes one pack of another")
	f.BoolVar(&o.apply, "apply", false, "make a pack of another and a delta")
	cmd.MarkFlagsMutuallyExclusive("check", "diff", "archive", "delta", "apply")
	return cmd
}

// replace writes a file that takes the place of another when it is whole.
func replace(path string, write func(w io.Writer) error) (err error) {
	if path == "" {
		return errors.New("pack writes to a file: -o names it")
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	err = errors.Join(write(f), f.Chmod(0o644), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
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

// packJSON is what was written.
type packJSON struct {
	Pack string `json:"pack"`
	*pack.Summary
}

func (s *settings) writePack(ctx context.Context, w io.Writer, image string, names []string, o *packOptions) error {
	collectAt(gcCoverage)
	po := pack.Options{NoTypes: o.noTypes}
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
	img, err := s.open(image, nil)
	if err != nil {
		return err
	}
	if onTerminal() {
		show := showProgress("reading sites", progressbar.OptionShowCount())
		po.Progress = func(done, total int) { show(uint64(done), uint64(total)) }
	}
	var sum *pack.Summary
	err = replace(o.output, func(f io.Writer) (err error) {
		if sum, err = pack.Write(ctx, img, po, f); err == nil && sum.Sites == 0 {
			err = fmt.Errorf("%s: no function matches, and so there is nothing to pack", image)
		}
		if err == nil {
			err = img.Changed()
		}
		return err
	})
	if err != nil {
		return err
	}
	return s.printPack(w, o.output, sum, o.stats)
}

// printPack prints what is in a pack.
func (s *settings) printPack(w io.Writer, path string, sum *pack.Summary, stats bool) error {
	if s.format == "json" {
		return printObject(w, packJSON{path, sum})
	}
	rest := sum.File - sum.Types
	perSite := func(n int) string { return strconv.FormatFloat(float64(n)/float64(max(sum.Sites, 1)), 'f', 2, 64) }
	terminal.Fprintf(w, "%s: %s, %d of them inlined, with %s: %d bytes, %d of them types; the rest is %s bytes a site\n",
		path, count(sum.Sites, "site"), sum.Inlined, count(sum.Values, "value"), sum.File, sum.Types, perSite(rest))
	if !stats {
		return nil
	}
	t := table{width: s.width}
	for _, p := range sum.Parts {
		t.row("  "+strconv.Itoa(p.Stored)+" bytes", perSite(p.Stored)+" a site", "of "+strconv.Itoa(p.Bytes), p.Name)
		rest -= p.Stored
	}
	t.row("  "+strconv.Itoa(rest)+" bytes", perSite(rest)+" a site", "of "+strconv.Itoa(rest), "headers of the file")
	return t.print(w)
}

// readPack maps a file. f must not keep the bytes.
func readPack(path string, f func(data []byte) error) error {
	m, err := mapping.Open(path)
	if err != nil {
		return err
	}
	err = mapping.Guard(func() error { return f(m.Data) })
	return errors.Join(err, m.Close())
}

func (s *settings) checkPacks(w io.Writer, paths []string, o *packOptions) error {
	var errs []error
	for _, path := range paths {
		var sum *pack.Summary
		err := readPack(path, func(data []byte) (err error) {
			sum, err = pack.Check(data, path)
			return err
		})
		if err == nil {
			err = s.printPack(w, path, sum, o.stats)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (s *settings) diffPacks(w io.Writer, paths []string) error {
	if len(paths) != 2 {
		return errors.New("--diff compares two packs: the old one and the new one")
	}
	var d *pack.Differences
	err := readPack(paths[0], func(from []byte) error {
		return readPack(paths[1], func(to []byte) (err error) {
			d, err = pack.Diff(from, to, paths[0], paths[1])
			return err
		})
	})
	if err != nil {
		return err
	}
	if s.format == "json" {
		return printObject(w, d)
	}
	added, removed := 0, 0
	for i := range d.Changes {
		c := &d.Changes[i]
		if c.Old == (pack.Count{}) {
			added++
		} else if c.New == (pack.Count{}) {
			removed++
		}
		printChange(w, c)
	}
	terminal.Fprintf(w, "%s in both packs, %d as they were; %d are new, %d are gone\n", count(d.Functions, "function"), d.Same, added, removed)
	return nil
}

func printChange(w io.Writer, c *pack.Change) {
	terminal.Fprintf(w, "%s:", c.Function)
	sites := func(n pack.Count) string {
		return strconv.Itoa(n.Entries) + " out of line, " + strconv.Itoa(n.Inlined) + " inlined"
	}
	switch {
	case c.Old == pack.Count{}:
		terminal.Fprintf(w, " new, %s\n", sites(c.New))
		return
	case c.New == pack.Count{}:
		terminal.Fprintf(w, " gone, had %s\n", sites(c.Old))
		return
	}
	before := " "
	for _, x := range []struct {
		n    int
		what string
	}{{c.Added, "added"}, {c.Removed, "removed"}, {c.Moved, "with values elsewhere"}} {
		if x.n > 0 {
			terminal.Fprintf(w, "%s%s %s", before, count(x.n, "site"), x.what)
			before = ", "
		}
	}
	if c.OldParameters != nil || c.NewParameters != nil {
		terminal.Fprintf(w, "%sother parameters: %q, were %q", before, c.NewParameters, c.OldParameters)
	}
	terminal.Fprintf(w, "\n")
}

func (s *settings) writeArchive(out io.Writer, paths []string, o *packOptions) error {
	var maps []*mapping.Mapping
	var packs [][]byte
	defer func() {
		for _, m := range maps {
			_ = m.Close()
		}
	}()
	for _, path := range paths {
		m, err := mapping.Open(path)
		if err != nil {
			return err
		}
		maps = append(maps, m)
		packs = append(packs, m.Data)
	}
	err := replace(o.output, func(w io.Writer) error {
		return mapping.Guard(func() error { return pack.WriteArchive(w, packs, paths) })
	})
	if err != nil || s.format == "json" {
		return err
	}
	terminal.Fprintf(out, "%s: %s\n", o.output, count(len(paths), "pack"))
	return nil
}
