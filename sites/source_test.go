package sites_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/glob"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/sites"
)

// built is an object file that says that it was compiled in dir, from file.
func built(t *testing.T, dir, file string, firstLine int) string {
	t.Helper()
	work := t.TempDir()
	src, obj := filepath.Join(work, "in.c"), filepath.Join(work, "out.o")
	text := fmt.Sprintf("# %d \"%s\"\nvolatile int sink;\nint f(int a)\n{\n\tsink = a;\n\treturn a + 1;\n}\n", firstLine, file)
	if err := os.WriteFile(src, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(testenv.Tool(t, "gcc-12"), "-g", "-O1", "-fdebug-prefix-map="+work+"="+dir, "-c", "-o", obj, src)
	c.Dir = work
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return obj
}

// linesOf returns what is shown of the function, as one text.
func linesOf(t *testing.T, obj string, sources sites.Sources) (string, error) {
	t.Helper()
	all, err := sites.LinesOf(t.Context(), testenv.Open(t, obj), sites.Selection{Functions: pattern(t, "f")}, sources)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, f := range all {
		for _, l := range f.Lines {
			fmt.Fprintf(&b, "%d %dx %s\n", l.Number, l.Sites, l.Text)
		}
	}
	return b.String(), nil
}

// TestLargeLineNumbers: lines are not counted up to the numbers that a directive says.
func TestLargeLineNumbers(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x.c"), []byte("a\nb\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	obj := built(t, dir, "x.c", 1)
	jump := filepath.Join(t.TempDir(), "jump.o")
	src := filepath.Join(t.TempDir(), "jump.c")
	text := "volatile int sink;\nint f(int a)\n{\n\tsink = a;\n# 2147483000 \"x.c\"\n\tsink = 2;\n\treturn a + 1;\n}\n"
	if err := os.WriteFile(src, []byte("# 1 \"x.c\"\n"+text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(testenv.Tool(t, "gcc-12"), "-g", "-O1", "-c", "-o", jump, src).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, o := range []string{obj, jump} {
		for _, s := range []sites.Sources{nil, {{Dir: dir}}} {
			start := time.Now()
			shown, err := linesOf(t, o, s)
			if err != nil || time.Since(start) > 5*time.Second || strings.Count(shown, "\n") > 20 {
				t.Errorf("%v: %d bytes after %v", err, len(shown), time.Since(start))
			}
			if o == jump && !strings.Contains(shown, "2147482998 1x") {
				t.Errorf("without the lines after the directive:\n%s", shown)
			}
		}
	}
}

const secret = "a secret\na\nsecret\n\tof\nthe secret\nservice\n}\n"

// TestForeignSources: what an image names is not read because it names it.
func TestForeignSources(t *testing.T) {
	dir := t.TempDir()
	named, outside, theirs, shared := filepath.Join(dir, "named"), filepath.Join(dir, "outside"), filepath.Join(dir, "theirs"), filepath.Join(dir, "shared")
	for _, d := range []string{named, outside, theirs, shared} {
		if err := errors.Join(os.Mkdir(d, 0o700), os.WriteFile(filepath.Join(d, "x.c"), []byte(secret), 0o600), os.WriteFile(filepath.Join(d, "shadow"), []byte(secret), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(
		os.Chmod(shared, 0o777), os.Symlink(filepath.Join(outside, "x.c"), filepath.Join(named, "link.c")),
		os.Symlink("../outside", filepath.Join(named, "up")), os.Symlink("x.c", filepath.Join(named, "inside.c")),
		unix.Mkfifo(filepath.Join(named, "pipe.c"), 0o600), os.Mkdir(filepath.Join(named, "dir.c"), 0o700),
	); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		if err := os.Chown(theirs, 1, 1); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		dir, file string
		sources   sites.Sources
		shown     bool
	}{
		// Without directories, below the one of the compilation.
		{named, "x.c", nil, true},
		{named, named + "/x.c", nil, true},
		{named, "inside.c", nil, true},
		{named, "shadow", nil, false},
		{named, "link.c", nil, false},
		{named, "up/x.c", nil, false},
		{named, "../outside/x.c", nil, false},
		{named, outside + "/x.c", nil, false},
		{named, "pipe.c", nil, false},
		{named, "dir.c", nil, false},
		{shared, "x.c", nil, false},
		{theirs, "x.c", nil, os.Getuid() != 0},
		{"/etc", "shadow", nil, false},
		{"/etc", "/etc/passwd", nil, false},
		{"/proc", "kmsg", nil, false},
		{"/", dir[1:] + "/named/x.c", nil, false},
		// In directories that the user names.
		{"/etc", "x.c", sites.Sources{{Dir: named}}, true},
		{"/etc", "shadow", sites.Sources{{Dir: named}}, true},
		{"/etc", "passwd", sites.Sources{{Dir: named}}, false},
		{"/etc", "/etc/passwd", sites.Sources{{Dir: named}}, false},
		{"/etc", "../x/../../etc/passwd", sites.Sources{{Dir: named}}, false},
		{"/etc", "inside.c", sites.Sources{{Dir: named}}, true},
		{"/etc", "link.c", sites.Sources{{Dir: named}}, false},
		{"/etc", "up/shadow", sites.Sources{{Dir: outside}}, true}, // by its end
		{"/etc", "pipe.c", sites.Sources{{Dir: named}}, false},
		{"/build", "/build/x.c", sites.Sources{{Dir: named, Prefix: "/build"}}, true},
		{"/build", "/build/../outside/x.c", sites.Sources{{Dir: named, Prefix: "/build"}}, false},
		{"/build", "../outside/x.c", sites.Sources{{Dir: named, Prefix: "/build"}}, false},
		{"/build", "up/x.c", sites.Sources{{Dir: named, Prefix: "/build"}}, false},
		{"/build", "kmsg", sites.Sources{{Dir: "/proc", Prefix: "/build"}}, false},
		{"/build", "zero", sites.Sources{{Dir: "/dev", Prefix: "/build"}}, false},
	} {
		obj := built(t, tt.dir, tt.file, 1)
		start := time.Now()
		shown, err := linesOf(t, obj, tt.sources)
		if err != nil || strings.Contains(shown, "secret") != tt.shown || strings.Contains(shown, "root:") || time.Since(start) > 5*time.Second {
			t.Errorf("%s in %s, %v: %v, after %v\n%s", tt.file, tt.dir, tt.sources, err, time.Since(start), shown)
		}
		// Lazy patterns tell of the texts too.
		_, err = sites.Select(t.Context(), testenv.Open(t, obj), sites.Selection{Functions: pattern(t, "f"), Lines: &sites.Lines{Lazy: "*", Sources: tt.sources}})
		var none *sites.NoSourceError
		if errors.As(err, &none) == tt.shown && tt.file != "kmsg" { // which is there, and empty
			t.Errorf("%s in %s, %v: %v", tt.file, tt.dir, tt.sources, err)
		}
	}
}

func pattern(t *testing.T, name string) glob.Matcher {
	t.Helper()
	m, err := glob.Compile(name)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
