// Package packs says what is in files with packs and what differs between them, as text and as lines of JSON, and joins them to archives.
package packs

import (
	"errors"
	"io"
	"strconv"

	"github.com/bpfprologue/bpfprologue/internal/jsonline"
	"github.com/bpfprologue/bpfprologue/internal/listing"
	"github.com/bpfprologue/bpfprologue/internal/mapping"
	"github.com/bpfprologue/bpfprologue/internal/screen"
	"github.com/bpfprologue/bpfprologue/internal/terminal"
	"github.com/bpfprologue/bpfprologue/pack"
)

// packJSON is what was written.
type packJSON struct {
	Pack string `json:"pack"`
	*pack.Summary
}

// Print prints what is in a pack.
func Print(w io.Writer, v *listing.View, path string, sum *pack.Summary, stats bool) error {
	if v.JSON {
		return jsonline.Write(w, packJSON{path, sum})
	}
	rest := sum.File - sum.Types
	perSite := func(n int) string { return strconv.FormatFloat(float64(n)/float64(max(sum.Sites, 1)), 'f', 2, 64) }
	terminal.Fprintf(w, "%s: %s, %d of them inlined, with %s: %d bytes, %d of them types; the rest is %s bytes a site\n",
		path, screen.Count(sum.Sites, "site"), sum.Inlined, screen.Count(sum.Values, "value"), sum.File, sum.Types, perSite(rest))
	if !stats {
		return nil
	}
	t := screen.Table{Width: v.Width}
	for _, p := range sum.Parts {
		t.Row("  "+strconv.Itoa(p.Stored)+" bytes", perSite(p.Stored)+" a site", "of "+strconv.Itoa(p.Bytes), p.Name)
		rest -= p.Stored
	}
	t.Row("  "+strconv.Itoa(rest)+" bytes", perSite(rest)+" a site", "of "+strconv.Itoa(rest), "headers of the file")
	return t.Print(w)
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

// Check checks packs, and prints what is in them.
func Check(w io.Writer, v *listing.View, paths []string, stats bool) error {
	var errs []error
	for _, path := range paths {
		var sum *pack.Summary
		err := readPack(path, func(data []byte) (err error) {
			sum, err = pack.Check(data, path)
			return err
		})
		if err == nil {
			err = Print(w, v, path, sum, stats)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Diff prints what differs between two packs.
func Diff(w io.Writer, v *listing.View, older, newer string) error {
	var d *pack.Differences
	err := readPack(older, func(from []byte) error {
		return readPack(newer, func(to []byte) (err error) {
			d, err = pack.Diff(from, to, older, newer)
			return err
		})
	})
	if err != nil {
		return err
	}
	if v.JSON {
		return jsonline.Write(w, d)
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
	terminal.Fprintf(w, "%s in both packs, %d as they were; %d are new, %d are gone\n", screen.Count(d.Functions, "function"), d.Same, added, removed)
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
			terminal.Fprintf(w, "%s%s %s", before, screen.Count(x.n, "site"), x.what)
			before = ", "
		}
	}
	if c.OldParameters != nil || c.NewParameters != nil {
		terminal.Fprintf(w, "%sother parameters: %q, were %q", before, c.NewParameters, c.OldParameters)
	}
	terminal.Fprintf(w, "\n")
}

// WriteArchive writes the packs of files into an archive.
func WriteArchive(w io.Writer, paths []string) error {
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
	return mapping.Guard(func() error { return pack.WriteArchive(w, packs, paths) })
}
