package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/hits"
	"github.com/bpfprologue/bpfprologue/internal/nametest"
	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/internal/screen"
	"github.com/bpfprologue/bpfprologue/internal/terminal"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/recording"
	"github.com/bpfprologue/bpfprologue/stacks"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
	"github.com/bpfprologue/bpfprologue/tracer"
)

// TestOneWayOut: the tool prints by terminal.Fprintf and jsonline.Write, to screen.Stdout and screen.Stderr, so that no
// new line of it forgets what others may have chosen.
func TestOneWayOut(t *testing.T) {
	var files []string
	for _, dir := range []string{".", "../../internal/screen", "../../internal/listing", "../../internal/hits", "../../internal/launch", "../../internal/endprobes"} {
		list, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(list) == 0 {
			t.Fatalf("%s: %d files: %v", dir, len(list), err)
		}
		files = append(files, list...)
	}
	fset := token.NewFileSet()
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			pkg, ok := sel.X.(*ast.Ident)
			if !ok {
				return true
			}
			what := pkg.Name + "." + sel.Sel.Name
			switch {
			case strings.HasPrefix(what, "fmt.Fprint"), strings.HasPrefix(what, "fmt.Print"), strings.HasPrefix(what, "log."):
				t.Errorf("%v: %s: terminal.Fprintf prints", fset.Position(n.Pos()), what)
			case what == "json.NewEncoder":
				t.Errorf("%v: %s: jsonline.Write writes JSON", fset.Position(n.Pos()), what)
			case (what == "os.Stdout" || what == "os.Stderr" || what == "os.Stdin") && filepath.Base(name) != "output.go":
				t.Errorf("%v: %s: package screen has writers", fset.Position(n.Pos()), what)
			}
			return true
		})
	}
}

// hostile writes an image whose names have evil inside.
func hostile(t *testing.T, path, evil string) {
	t.Helper()
	data, err := fixtures.Bytes("basic-gcc12-O2-dwarf5.elf")
	if err != nil {
		t.Fatal(err)
	}
	if data, err = nametest.Hostile(data, evil); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// checkPrinted checks that a terminal obeys nothing in a text, and that a name with a newline forged no
// line.
func checkPrinted(t *testing.T, what, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if terminal.Line(line) != line {
			t.Errorf("%s: the terminal would obey %q", what, line)
			return
		}
		if strings.HasPrefix(line, "!!") {
			t.Errorf("%s: a forged line %q", what, line)
			return
		}
	}
}

// TestHostileNames drives every command over images and files with hostile names. The writers behind
// which nothing can be forgotten are taken away: what is printed must be safe before.
func TestHostileNames(t *testing.T) {
	var out, errs bytes.Buffer
	defer func(o, e io.Writer) { screen.Stdout, screen.Stderr = o, e }(screen.Stdout, screen.Stderr)
	screen.Stdout, screen.Stderr = &out, &errs
	printed := 0
	for _, evil := range nametest.Evils {
		dir := filepath.Join(t.TempDir(), "d"+strings.ReplaceAll(evil, "/", ""))
		cache := filepath.Join(dir, "cache")
		t.Setenv("BPFPROLOGUE_CACHE", cache)
		if err := os.MkdirAll(cache, 0o700); err != nil {
			t.Fatal(err)
		}
		// The cache has files of somebody else's choice.
		for _, name := range []string{"a" + evil + "x.4.idx", ".new-" + evil, "b" + evil} {
			name = strings.ReplaceAll(name, "/", "")
			if err := os.WriteFile(filepath.Join(cache, name), []byte(evil), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		image := filepath.Join(dir, "image.elf")
		hostile(t, image, evil)
		src := filepath.Join(dir, "src")
		if err := os.MkdirAll(src, 0o700); err != nil {
			t.Fatal(err)
		}
		text := strings.Repeat("\tint x; "+strings.ReplaceAll(evil, "\n", "")+" !\n", 500)
		for _, name := range []string{"queue.c", "qu" + strings.ReplaceAll(evil, "/", ""), "page.c", "toy.h"} {
			if err := os.WriteFile(filepath.Join(src, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		cut := filepath.Join(dir, "cut.elf")
		if err := os.WriteFile(cut, []byte("\x7fELF"+evil), 0o600); err != nil {
			t.Fatal(err)
		}
		hits := filepath.Join(dir, "hits")
		record(t, hits, evil)
		k := []string{"-k", image, "--source", src}
		for _, args := range [][]string{
			{"*_abcd $params"}, {"report", "*_abcd $params"}, {"report", "-i", hits}, {"report", "-i", cut}, {"report", "-i", hits, evil}, {"trace", "-i", hits}, {"--format", "json", "trace", "-i", hits}, {"complete-line", "bash", "prolog-dump -k " + image + " '"}, {"--explain", "*", "$vars"}, {"--sites", "--attachable", "--cost", "* $params"},
			{"--format", "json", "* $params"}, {"--format", "tracefs", "* $params"}, {"--format", "bpftrace", "* $params"},
			{"--format", "go", "* $params"}, {"--format", "c", "* $params"}, {"header", "*_abcd $params"}, {"--convention", "record", "header", "* $params"},
			{"funcs", "*"}, {"vars", "*"}, {"lines", "*"}, {"--format", "json", "funcs", "*"}, {"--format", "json", "vars", "*"},
			{"--format", "json", "lines", "*"}, {"coverage", image}, {"--format", "json", "coverage", image},
			{"coverage", "--diff", image, image}, {"--format", "json", "coverage", "--diff", image, image},
			{"__complete", ""}, {"cache", "list"},
			// Errors, with what is nearest.
			{"my_func_one_abcd arg9"}, {"call_my_funcz arg"}, {"*_abcd no_such"}, {"*_abcd arg1->no_such"}, {"* pk->no_such"}, {"qu*.c:1"}, {"queu.c:19"},
			{"*_abcd:900"}, {"*_abcd;nothing*"}, {"ca*;x" + evil}, {"x" + evil}, {"--filter", "x*", "*_abcd"}, {"--missing", "fail", "* $params"},
			{"--" + evil}, {"--format", evil, "x"}, {"trace", "--buffer", evil}, {"cache", evil}, {"-k", cut, "x"}, {"-k", dir + "/no such", "x"},
			{"-k", dir, "x"}, {"coverage", cut}, {"module=x" + evil + ";f"}, {"exec=" + cut + ";f"}, {"--source", evil, "lines", "*"},
			{"--filter", "(" + evil, "x"}, {"trace", "x" + evil}, {"trace", "--object", cut}, {"verify", cut},
		} {
			out.Reset()
			errs.Reset()
			_ = run(append(append([]string{}, k...), args...))
			printed += out.Len()
			checkPrinted(t, strings.Join(args, " "), out.String())
			checkPrinted(t, strings.Join(args, " ")+" (errors)", errs.String())
			if args[0] == "--format" && args[1] == "json" {
				for line := range strings.Lines(out.String()) {
					if !json.Valid([]byte(line)) {
						t.Errorf("%q: %q is no JSON", args, line)
					}
				}
			}
		}
	}
	if printed < 1<<20 {
		t.Errorf("only %d bytes were printed", printed)
	}
}

// record makes a recording whose texts are all evil.
func record(t *testing.T, path, evil string) {
	t.Helper()
	site := &recording.Site{Plan: &recording.Plan{Definition: evil, Event: evil}, Text: evil, Function: evil, Qualified: evil, Place: evil, Args: []recording.Arg{{Name: evil, Type: evil}}}
	values := []recording.Value{{Text: evil, Any: evil}}
	var b bytes.Buffer
	w, err := recording.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	h := &recording.Hit{Comm: evil, Site: site, Values: values, End: site, Results: values, Stack: []stacks.Frame{{Function: evil, File: evil, Object: evil}}}
	if err := errors.Join(w.Write(h), w.Close(recording.Totals{}), os.WriteFile(path, b.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// TestHostileTask: the name of a task, and strings that it gives, are anybody's choice.
func TestHostileTask(t *testing.T) {
	for _, evil := range nametest.Evils {
		path := filepath.Join(t.TempDir(), "image.elf")
		hostile(t, path, evil)
		img, err := dwarfloc.Open(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer img.Close()
		p := plantest.New(t, img, "*_abcd arg1 comm=$comm", plan.Options{})
		hit := &tracer.Hit{Time: time.Second, Comm: evil + "\n!!" + evil, TID: 7, Plan: p}
		record := []byte(strings.Repeat(evil+"\n!!", 1000))
		hit.Values = p.Values(0, 0, record[:min(len(record), 512)])
		var b bytes.Buffer
		show, _ := hits.Printer(&b, &hits.Form{Format: "text"})
		if err := show(new(recording.Source).Hit(hit)); err != nil {
			t.Fatal(err)
		}
		checkPrinted(t, "hit", b.String())
		if n := strings.Count(b.String(), "\n"); n != 1 {
			t.Errorf("%d lines: %q", n, b.String())
		}
		b.Reset()
		show, _ = hits.Printer(&b, &hits.Form{Format: "json"})
		if err := show(new(recording.Source).Hit(hit)); err != nil {
			t.Fatal(err)
		}
		checkPrinted(t, "hit in JSON", b.String())
		if !json.Valid(b.Bytes()) {
			t.Errorf("%q is no JSON", b.String())
		}
	}
}
