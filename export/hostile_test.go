package export_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/export"
	"github.com/bpfprologue/bpfprologue/internal/nametest"
	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/internal/terminal"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/plan"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

// What lines of the languages are, but for comments.
var (
	traceLine = regexp.MustCompile(`^[pr]:\w+/\w+ ([A-Za-z_.$][\w.$]*\+\d+|/[^ #]*:0x[0-9a-f]+)( \w{1,31}=[-+%\\@$\w:()/]+)*$`)
	probeLine = regexp.MustCompile(`^(k(ret)?probe:("[A-Za-z_.$][\w.$]*"|\w+)(\+\d+)?|u(ret)?probe:(/[\w./-]*|"/[^"\\*?]*"):(0x[0-9a-f]+|("[A-Za-z_.$][\w.$]*"|\w+)(\+\d+)?)),?$`)
	printLine = regexp.MustCompile(`^\tprintf\("%s( \w+=(0x)?%\w+)*\\n", probe[^";{}]*("[^"]*"[^";{}]*)*\);$`)
)

// TestHostile: whatever the names in an image are, and its path, an export has what it would have, or
// comments, and each is what it seems to be.
func TestHostile(t *testing.T) {
	data, err := fixtures.Bytes("basic-gcc12-O2-dwarf5.elf")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var headers []string
	probes := 0
	for i, evil := range append([]string{""}, nametest.Evils...) {
		image, err := nametest.Hostile(data, evil)
		if err != nil {
			t.Fatal(err)
		}
		path := "/tmp/d" + evil + "/image.elf"
		img, err := dwarfloc.FromBytes(path, image, nil)
		if err != nil {
			t.Fatal(err)
		}
		p := plantest.New(t, img, "* $params", plan.Options{})
		for _, o := range []export.Options{{Kernel: true}, {Path: path}} {
			var b bytes.Buffer
			if err := export.Tracefs(&b, p, o); err != nil {
				t.Fatal(err)
			}
			events := make(map[string]bool)
			for line := range strings.Lines(b.String()) {
				line = visible(t, evil, line)
				if strings.HasPrefix(line, "# ") {
					continue
				}
				event, _, _ := strings.Cut(line, " ")
				if !traceLine.MatchString(line) || events[event] {
					t.Errorf("%q: tracefs: %q", evil, line)
				}
				events[event] = true
				names := make(map[string]bool)
				for _, arg := range strings.Fields(line)[2:] {
					name, _, _ := strings.Cut(arg, "=")
					if names[name] {
						t.Errorf("%q: tracefs: two arguments are %s: %q", evil, name, line)
					}
					names[name] = true
				}
			}
			probes += len(events)
			b.Reset()
			if err := export.Bpftrace(&b, p, o); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(b.String()) {
				line = visible(t, evil, line)
				if !strings.HasPrefix(line, "// ") && line != "{" && line != "}" && !probeLine.MatchString(line) && !printLine.MatchString(line) {
					t.Errorf("%q: bpftrace: %q", evil, line)
				}
				if strings.HasPrefix(line, "// ") && strings.HasSuffix(line, `\`) {
					t.Errorf("%q: bpftrace: a comment goes on: %q", evil, line)
				}
			}
			b.Reset()
			if err := export.C(&b, p, o); err != nil {
				t.Fatal(err)
			}
			checkC(t, evil, b.String())
			if o.Kernel {
				headers = append(headers, fmt.Sprintf("h%d.c", i))
				if err := os.WriteFile(filepath.Join(dir, headers[i]), b.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		var b bytes.Buffer
		if err := export.Go(&b, p); err != nil {
			t.Fatal(err)
		}
		checkGo(t, evil, b.String())
	}
	if probes < 100 {
		t.Errorf("only %d probes", probes)
	}
	// A compiler takes them, with trigraphs too.
	gcc := testenv.Tool(t, "gcc-12")
	c := exec.Command(gcc, append([]string{"-fsyntax-only", "-std=c99", "-Wall", "-Werror"}, headers...)...)
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v\n%.3000s", err, out)
	}
}

func visible(t *testing.T, evil, line string) string {
	t.Helper()
	line = strings.TrimSuffix(line, "\n")
	if terminal.Line(line) != line {
		t.Errorf("%q: %q", evil, line)
	}
	return line
}

// checkC checks that what is outside of comments is of no image.
func checkC(t *testing.T, evil, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		visible(t, evil, line)
	}
	code := regexp.MustCompile(`(?s)/\*.*?\*/`).ReplaceAllString(text, "")
	for line := range strings.Lines(code) {
		if strings.Contains(line, "!!") || strings.Contains(line, "*/") || strings.Contains(line, "/*") {
			t.Errorf("%q: C: %q", evil, line)
		}
	}
}

// checkGo checks that a file has three kinds of declarations, whatever is in its comments.
func checkGo(t *testing.T, evil, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		visible(t, evil, line)
	}
	f, err := parser.ParseFile(token.NewFileSet(), "", text, parser.ParseComments)
	if err != nil {
		t.Errorf("%q: Go: %v", evil, err)
		return
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if !strings.HasPrefix(d.Name.Name, "prologue") {
				t.Errorf("%q: Go: func %s", evil, d.Name.Name)
			}
		case *ast.GenDecl:
			if d.Tok != token.VAR && d.Tok != token.IMPORT {
				t.Errorf("%q: Go: %v", evil, d.Tok)
			}
		}
	}
}

// TestHostilePath lets bpftrace parse programs for files with paths that need care.
func TestHostilePath(t *testing.T) {
	tool := testenv.Tool(t, "bpftrace")
	if os.Getuid() != 0 {
		testenv.Missing(t, "bpftrace runs as root only")
	}
	for _, name := range []string{"with blanks", "a{b", "a:b", "a;b", "a'b", "ä=#~!,@(b)"} {
		dir := filepath.Join(t.TempDir(), name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		path, err := fixtures.WriteTo(dir, "lib-gcc12-O2-dwarf5.elf")
		if err != nil {
			t.Fatal(err)
		}
		p := plantest.New(t, testenv.Open(t, path), "session_write bytes", plan.Options{})
		file := filepath.Join(dir, "p.bt")
		var b bytes.Buffer
		if err := export.Bpftrace(&b, p, export.Options{}); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(tool, "-d", file).CombinedOutput(); err != nil || !strings.Contains(b.String(), "uprobe:") {
			t.Errorf("%q: bpftrace: %v\n%s\n%.2000s", name, err, b.String(), out)
		}
	}
}
