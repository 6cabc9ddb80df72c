package sites

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/glob"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

func TestSources(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"fs/a.c": "one\r\ntwo\n", "b.h": "three"} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	img := testenv.Fixture(t, "basic-gcc12-O2-dwarf5.elf")
	for _, tt := range []struct {
		sources Sources
		file    string
		want    []string // nil: not found
	}{
		{Sources{{Dir: dir}}, "fs/a.c", []string{"one", "two", ""}},
		{Sources{{Dir: dir}}, "/build/linux/fs/a.c", []string{"one", "two", ""}},
		{Sources{{Dir: dir}}, "/build/linux/fs/c.c", nil},
		{Sources{{Dir: dir}}, "x/../fs/a.c", []string{"one", "two", ""}},
		{Sources{{Dir: dir}}, "../../../../etc/passwd", nil},
		{Sources{{Dir: dir, Prefix: "/build"}}, "/build/b.h", []string{"three"}},
		{Sources{{Dir: dir, Prefix: "/build"}}, "/other/b.h", nil},
		{Sources{{Dir: dir, Prefix: "/buil"}}, "/build/b.h", nil},
		{Sources{{Dir: dir, Prefix: "/usr/src/toy"}}, "b.h", []string{"three"}}, // below the directory of compilation
		{Sources{{Dir: "/nowhere"}, {Dir: dir}}, "b.h", []string{"three"}},
		{nil, "fs/a.c", nil},
	} {
		got, err := tt.sources.lines(img, tt.file)
		var none *NoSourceError
		if err != nil && (!errors.As(err, &none) || none.File != tt.file || !strings.Contains(err.Error(), tt.file)) {
			t.Errorf("%v: %s: %v", tt.sources, tt.file, err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%v: %s (-want +got):\n%s", tt.sources, tt.file, diff)
		}
	}
}

// TestSelectLazy: the lines that a pattern finds in the fixtures' sources, by function
// and by file.
func TestSelectLazy(t *testing.T) {
	img := testenv.Fixture(t, "basic-gcc12-O2-dwarf5.elf")
	sources := Sources{{Dir: "../testdata/vmlinux-fixtures/src"}}
	name := func(s string) Selection {
		p, err := glob.Compile(s)
		if err != nil {
			t.Fatal(err)
		}
		return Selection{Functions: p}
	}
	places := func(sites []*dwarfloc.Site) (out []string) {
		for _, s := range sites {
			out = append(out, s.String())
		}
		return out
	}
	l := &Lines{Lazy: "sum+=my_func_two_abcd(*", Sources: sources}
	of := func(sel Selection) Selection { sel.Lines = l; return sel }
	sites, err := Select(t.Context(), img, of(name("call_my_funcs")))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"queue.c:50 (call_my_funcs) at call_my_funcs+0x20", "queue.c:51 (call_my_funcs) at call_my_funcs+0x2e"}
	if diff := cmp.Diff(want, places(sites)); diff != "" {
		t.Errorf("by function (-want +got):\n%s", diff)
	}
	sites, err = Select(t.Context(), img, of(Selection{Source: "queue.c"}))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, places(sites)); diff != "" {
		t.Errorf("by file (-want +got):\n%s", diff)
	}
	// The pattern is elsewhere in the file.
	_, err = Select(t.Context(), img, of(name("queue_send")))
	var none *NotFoundError
	if !errors.As(err, &none) || none.Line == "" || none.Nearest != nil {
		t.Errorf("a function without the line: %v", err)
	}
}
