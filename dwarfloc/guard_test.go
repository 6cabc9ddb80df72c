package dwarfloc

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bpfprologue/bpfprologue/internal/eval"
	"github.com/bpfprologue/bpfprologue/internal/image"
	"github.com/bpfprologue/bpfprologue/internal/syntax"
	"github.com/bpfprologue/bpfprologue/loc"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
	"github.com/bpfprologue/bpfprologue/types"
)

// asked is what a question has to work with.
type asked struct {
	img             *Image
	site            *Site
	line            *Site       // inside a body
	typ             *types.Type // of a pointer to a structure
	typedef, record *types.Type // that have not been asked
	v               *Variable
}

// questions are all exported ways into an image that read its file. tells is false
// for those that have no error to tell.
var questions = []struct {
	name  string
	tells bool
	ask   func(a asked) error
}{
	{"Scan", true, func(a asked) error { return a.img.r.Index.Scan(context.Background()) }},
	{"Sites", true, func(a asked) error {
		_, err := a.img.Sites(context.Background(), nil)
		return err
	}},
	{"Sites of a name", true, func(a asked) error {
		_, err := a.img.Sites(context.Background(), Name("pkt_hold"))
		return err
	}},
	{"EachSite", true, func(a asked) error {
		return a.img.EachSite(context.Background(), nil, func(_ int, s SiteRef) error {
			_, err := s.Params()
			return err
		})
	}},
	{"FunctionNames", true, func(a asked) error {
		_, err := a.img.FunctionNames(context.Background())
		return err
	}},
	{"SymbolAt", false, func(a asked) error {
		a.img.file.SymbolAt(a.img.file.Sections()[0].Addr, "")
		return nil
	}},
	{"Symbols", false, func(a asked) error {
		for range a.img.file.Symbols() {
		}
		return nil
	}},
	{"Site.Params", true, func(a asked) error {
		_, err := a.site.Params()
		return err
	}},
	{"Site.Params inside a body", true, func(a asked) error {
		_, err := a.line.Params()
		return err
	}},
	{"LineSites", true, func(a asked) error {
		_, err := a.img.LineSites(context.Background(), []*Site{a.site}, func(*Site, string, int) bool { return true })
		return err
	}},
	{"FileLineSites", true, func(a asked) error {
		_, err := a.img.FileLineSites(context.Background(), anyFile{})
		return err
	}},
	{"FileLines", true, func(a asked) error {
		_, err := a.img.FileLines(context.Background(), anyFile{})
		return err
	}},
	{"SourceFiles", true, func(a asked) error {
		_, err := a.img.SourceFiles(context.Background())
		return err
	}},
	{"CompilationDir", false, func(a asked) error {
		a.img.compilationDir("queue.c")
		return nil
	}},
	{"SiteAt", true, func(a asked) error {
		_, err := a.img.SiteAt(context.Background(), a.site.Addr)
		return err
	}},
	{"Site.Lookup", true, func(a asked) error {
		_, err := a.site.Lookup("ring_zero")
		return err
	}},
	{"Site.Variables", true, func(a asked) error {
		_, err := a.site.Variables()
		return err
	}},
	{"Site.Declared", true, func(a asked) error {
		_, _, err := a.site.Declared()
		return err
	}},
	{"Variable.Pointee", true, func(a asked) error {
		v := Variable{Loc: loc.Location{Kind: loc.KindImplicitPointer, Target: a.site.DIE}, Site: a.site}
		_, err := Pointee(&v)
		return err
	}},
	{"Site.At", true, func(a asked) error {
		_, _, err := a.site.atOffset(1)
		return err
	}},
	{"Site.Clone", true, func(a asked) error {
		s := *a.site
		s.described = false
		_, err := s.keptCopy()
		return err
	}},
	{"Site.String", false, func(a asked) error {
		s := *a.site
		s.described = false
		_ = s.String()
		return nil
	}},
	{"Site.Resolve", true, func(a asked) error {
		_, err := Resolve(a.site, &syntax.Expr{Name: a.v.Name, Path: []syntax.Step{{Kind: syntax.StepArrow, Member: "len"}}})
		return err
	}},
	{"Site.Resolve of a result", true, func(a asked) error {
		_, err := Resolve(a.site, &syntax.Expr{Kind: syntax.KindRetval})
		return err
	}},
	{"SymbolAddresses", true, func(a asked) error {
		_, err := a.img.file.SymbolAddresses("ring_zero")
		return err
	}},
	{"Type.Count", true, func(a asked) error {
		_, _, err := a.typ.Count()
		return err
	}},
	{"Type.Declared", true, func(a asked) error {
		_, _, err := a.typ.Declared()
		return err
	}},
	{"Type.Elem", true, func(a asked) error {
		_, err := a.typ.Elem()
		return err
	}},
	{"Type.Resolve", true, func(a asked) error {
		_, err := a.typedef.Resolve()
		return err
	}},
	{"Type.ByteSize", true, func(a asked) error {
		_, err := a.typedef.ByteSize()
		return err
	}},
	{"Type.Members", true, func(a asked) error {
		_, err := a.record.Members()
		return err
	}},
	{"Type.String", false, func(a asked) error {
		_ = a.typ.String()
		return nil
	}},
	{"Variable.Expression", false, func(a asked) error {
		expr, _, _ := a.v.Expression()
		_ = eval.ExpressionText(expr, a.site.u.Encoding())
		return nil
	}},
}

// copyOf opens a copy of a fixture. With warm, all has been asked before.
func copyOf(t *testing.T, name string, warm bool) (a asked, path string) {
	t.Helper()
	path, err := fixtures.WriteTo(t.TempDir(), name)
	if err != nil {
		t.Fatal(err)
	}
	if a.img, err = Open(path, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.img.Close() })
	sites, err := a.img.Sites(context.Background(), Name("queue_send"))
	if err != nil || len(sites) == 0 {
		t.Fatalf("%d sites, %v", len(sites), err)
	}
	a.site = sites[0]
	if a.line, err = a.img.SiteAt(context.Background(), a.site.Addr); err != nil {
		t.Fatal(err)
	}
	params, err := a.site.Params()
	if err != nil || len(params) == 0 {
		t.Fatalf("%d parameters, %v", len(params), err)
	}
	a.v, a.typ = params[0], params[0].Type
	for name, x := range map[string]**types.Type{"u64": &a.typedef, "struct window": &a.record} {
		if *x, err = a.img.typeNamed(name); err != nil || *x == nil {
			t.Fatalf("%s: %v, %v", name, *x, err)
		}
	}
	if warm {
		for _, q := range questions {
			if err := q.ask(a); err != nil && q.name != "Site.Pointee" { // which is asked for what it is not
				t.Fatalf("%s: %v", q.name, err)
			}
		}
	}
	return a, path
}

// TestTruncated: when the file is cut short under an open image, each question ends
// with an error that names the file, and so do all that follow.
func TestTruncated(t *testing.T) {
	for _, name := range []string{"basic-gcc12-O2-dwarf5.elf", "basic-clang14-O2-dwarf5.elf"} {
		for _, q := range questions {
			for _, warm := range []bool{false, true} {
				a, path := copyOf(t, name, warm)
				if err := os.Truncate(path, 0); err != nil {
					t.Fatal(err)
				}
				want := path + ": the file was changed while it was being read: open it again when it is complete"
				err := q.ask(a)
				if q.tells && (!errors.Is(err, image.ErrChanged) || err.Error() != want) {
					// What is remembered needs no file, but then a later question tells.
					remembered := q.name == "Site.Clone" || q.name == "Site.At" || warm && (q.name == "Scan" || q.name == "FunctionNames" || strings.HasPrefix(q.name, "Type."))
					if err == nil && remembered {
						continue
					}
					t.Errorf("%s (asked before: %v): %v, want %s", q.name, warm, err, want)
				}
				if _, err := a.img.Sites(context.Background(), nil); !errors.Is(err, image.ErrChanged) {
					t.Errorf("%s and then Sites: %v", q.name, err)
				}
			}
		}
	}
}

// TestClosed: when an image was closed, each question says so, also what was asked before.
func TestClosed(t *testing.T) {
	for _, q := range questions {
		for _, warm := range []bool{false, true} {
			a, path := copyOf(t, "basic-gcc12-O2-dwarf5.elf", warm)
			if err := errors.Join(a.img.Close(), a.img.Close()); err != nil {
				t.Fatal(err)
			}
			want := path + ": file already closed"
			err := q.ask(a)
			if warm && err == nil && (q.name == "Scan" || strings.HasPrefix(q.name, "Type.")) {
				continue // what is remembered needs no file
			}
			if q.tells && (!errors.Is(err, os.ErrClosed) || err.Error() != want) {
				t.Errorf("%s (asked before: %v): %v, want %s", q.name, warm, err, want)
			}
			if err := a.img.Changed(); !errors.Is(err, os.ErrClosed) {
				t.Errorf("%s and then Changed: %v", q.name, err)
			}
		}
	}
}

// TestTruncatedKept: the same as TestTruncated for an image whose scan was kept, and for the kept
// scan's own file.
func TestTruncatedKept(t *testing.T) {
	for _, which := range []string{"image", "kept scan"} {
		dir := t.TempDir()
		open := func() (*Image, string) {
			path := filepath.Join(dir, "image.elf")
			if err := os.WriteFile(path, fixture(t, "basic-gcc12-O2-dwarf5.elf"), 0o600); err != nil {
				t.Fatal(err)
			}
			img, err := Open(path, &Options{CacheDir: filepath.Join(dir, "cache")})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = img.Close() })
			if err := img.r.Index.Scan(context.Background()); err != nil {
				t.Fatal(err)
			}
			return img, path
		}
		open()
		img, cut := open()
		if img.r.Index.Kept == nil {
			t.Fatal("the scan was not kept")
		}
		if which == "kept scan" {
			cut = img.r.Index.KeptPath()
		}
		if err := os.Truncate(cut, 0); err != nil {
			t.Fatal(err)
		}
		_, err := img.Sites(context.Background(), nil)
		if !errors.Is(err, image.ErrChanged) || !strings.HasPrefix(err.Error(), cut+": ") {
			t.Errorf("%s: %v", which, err)
		}
	}
}

// TestWrittenTo: a file that is written to in place is not what was opened.
func TestWrittenTo(t *testing.T) {
	a, path := copyOf(t, "basic-gcc12-O2-dwarf5.elf", false)
	if err := os.Chtimes(path, time.Time{}, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, err := a.img.Sites(context.Background(), nil); !errors.Is(err, image.ErrChanged) {
		t.Errorf("got %v", err)
	}
}
