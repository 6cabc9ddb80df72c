package export_test

import (
	"bytes"
	"go/parser"
	"go/token"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/export"
	"github.com/bpfprologue/bpfprologue/internal/nametest"
	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/plan"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

// FuzzNames: whatever names an image has, and its path, what is exported is text of one line for each
// thing, and Go is Go.
func FuzzNames(f *testing.F) {
	data, err := fixtures.Bytes("lib-gcc12-O2-dwarf5.elf")
	if err != nil {
		f.Fatal(err)
	}
	for _, evil := range nametest.Evils {
		f.Add(evil, "/tmp/"+evil)
	}
	f.Fuzz(func(t *testing.T, evil, path string) {
		path = "/" + path // as the tool does, and tracefs wants
		if strings.ContainsRune(evil, 0) || len(evil) > 100 {
			return
		}
		hostile, err := nametest.Hostile(data, evil)
		if err != nil {
			return
		}
		img, err := dwarfloc.FromBytes(path, hostile, nil)
		if err != nil {
			t.Fatal(err)
		}
		p := plantest.New(t, img, "* $params", plan.Options{})
		for name, write := range map[string]func(*bytes.Buffer) error{
			"tracefs":  func(b *bytes.Buffer) error { return export.Tracefs(b, p, export.Options{Path: path}) },
			"bpftrace": func(b *bytes.Buffer) error { return export.Bpftrace(b, p, export.Options{Path: path}) },
			"c":        func(b *bytes.Buffer) error { return export.C(b, p, export.Options{Path: path}) },
			"go":       func(b *bytes.Buffer) error { return export.Go(b, p) },
		} {
			var b bytes.Buffer
			if err := write(&b); err != nil {
				continue
			}
			text := b.String()
			if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }) {
				t.Errorf("%s: %q", name, text)
			}
			for line := range strings.Lines(text) {
				if name == "tracefs" && line != "\n" && !traceLine.MatchString(strings.TrimSuffix(line, "\n")) && line[0] != '#' {
					t.Errorf("tracefs: %q", line)
				}
			}
			if name == "go" {
				if _, err := parser.ParseFile(token.NewFileSet(), "export.go", text, parser.SkipObjectResolution); err != nil {
					t.Error(err)
				}
			}
		}
	})
}
