// Package docs holds the documentation. Its tests check what the pages say about the code:
// that snippets compile, that links lead somewhere, and that files and functions exist.
package docs

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/index"
	"github.com/bpfprologue/bpfprologue/internal/packfile"
	"github.com/bpfprologue/bpfprologue/internal/sealed"
)

const (
	root   = ".."
	module = "github.com/bpfprologue/bpfprologue"
)

// pages returns the text of all pages, by path relative to the root.
func pages(t *testing.T) map[string]string {
	t.Helper()
	out := make(map[string]string)
	for _, pattern := range []string{"*.md", "docs/*.md", "testdata/*/*.md"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			name, err := filepath.Rel(root, f)
			if err != nil {
				t.Fatal(err)
			}
			out[filepath.ToSlash(name)] = string(text)
		}
	}
	return out
}

// snippet is a block of Go statements. The HTML comment before it, which readers do not
// see, lists the variables that the statements use without declaring them, as parameters:
//
//	<!-- snippet(ctx context.Context, spec *ebpf.ProgramSpec) -->
//	```go
var snippet = regexp.MustCompile("(?ms)^(?:<!-- snippet(\\(.*?\\)) -->\n)?```go\n(.*?)^```")

// TestSnippets checks the types of every block of Go. That variables are not used is no
// fault in a snippet.
func TestSnippets(t *testing.T) {
	// Importable packages: the module's by their names, and those that the snippets use.
	paths := map[string]string{"context": "context", "errors": "errors", "ebpf": "github.com/cilium/ebpf", "asm": "github.com/cilium/ebpf/asm", "fmt": "fmt", "log": "log", "os": "os", "time": "time"}
	cmd := exec.Command("go", "list", "-export", "-deps", "-pgo=off", "-f", "{{.ImportPath}} {{.Name}} {{.Export}}", "./...")
	cmd.Dir = root
	list, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	exports := make(map[string]string)
	for line := range strings.Lines(string(list)) {
		f := strings.Fields(line)
		if len(f) < 3 {
			continue // unsafe
		}
		exports[f[0]] = f[2]
		if strings.HasPrefix(f[0], module+"/") && !strings.Contains(f[0], "/internal/") {
			paths[f[1]] = f[0]
		}
	}
	fset := token.NewFileSet()
	config := types.Config{
		Importer: importer.ForCompiler(fset, "gc", func(p string) (io.ReadCloser, error) { return os.Open(exports[p]) }),
	}
	n := 0
	for name, text := range pages(t) {
		for _, m := range snippet.FindAllStringSubmatchIndex(text, -1) {
			n++
			params := "()"
			if m[2] >= 0 {
				params = text[m[2]:m[3]]
			}
			body := text[m[4]:m[5]]
			var src bytes.Buffer
			src.WriteString("package snippet\n")
			for p, from := range paths {
				if regexp.MustCompile(`\b` + p + `\.[A-Z]`).MatchString(params + body) {
					fmt.Fprintf(&src, "import %q\n", from)
				}
			}
			fmt.Fprintf(&src, "func _%s {\n//line %s:%d\n%s}\n", params, filepath.Join(root, name), 1+strings.Count(text[:m[4]], "\n"), body)
			f, err := parser.ParseFile(fset, name, &src, parser.SkipObjectResolution)
			if err != nil {
				t.Error(err)
				continue
			}
			config.Error = func(err error) {
				if e, ok := err.(types.Error); !ok || !e.Soft {
					t.Error(err)
				}
			}
			_, _ = config.Check("snippet", fset, []*ast.File{f}, nil) // reported above
		}
	}
	if n < 2 {
		t.Errorf("%d snippets found", n)
	}
}

// anchor is the fragment that a heading is linked by.
func anchor(heading string) string {
	heading = strings.ToLower(strings.TrimSpace(strings.TrimLeft(heading, "#")))
	heading = regexp.MustCompile(`[^\p{L}\p{N}\- _]`).ReplaceAllString(heading, "")
	return strings.ReplaceAll(heading, " ", "-")
}

// TestLinks checks that relative links lead to a file, and to a heading in it.
func TestLinks(t *testing.T) {
	all := pages(t)
	link := regexp.MustCompile(`\]\(([^)\s]*)\)`)
	for name, text := range all {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			file, fragment, _ := strings.Cut(m[1], "#")
			to := name
			if file != "" {
				to = path.Join(path.Dir(name), file)
			}
			if _, err := os.Stat(filepath.Join(root, to)); err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			heading := func(line string) bool { return strings.HasPrefix(line, "#") && anchor(line) == fragment }
			if fragment != "" && !slices.ContainsFunc(strings.Split(all[to], "\n"), heading) {
				t.Errorf("%s: %s has no heading %q", name, to, fragment)
			}
		}
	}
}

// imagined are names in design.md of what a separate module for the tool would have.
var imagined = []string{"cmd/go.mod", "cmd/prolog-dump/v0.1.0"}

// TestPaths checks that the files of this repository that pages name exist.
func TestPaths(t *testing.T) {
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	quoted := regexp.MustCompile("`([\\w.-]+/[\\w./*-]*)`")
	for name, text := range pages(t) {
		for _, m := range quoted.FindAllStringSubmatch(text, -1) {
			top, rest, _ := strings.Cut(m[1], "/")
			if !slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == top }) {
				continue
			}
			if top == "bin" || strings.HasPrefix(m[1], "bench/.cache") || slices.Contains(imagined, m[1]) {
				continue // made by make, or not at all
			}
			if found, err := filepath.Glob(filepath.Join(root, top, rest)); err != nil || len(found) == 0 {
				t.Errorf("%s: there is no %s (%v)", name, m[1], err)
			}
		}
	}
}

// TestRooms checks that design.md's tables of packages list what each imports of this
// module, and that none imports a package that comes later in its table.
func TestRooms(t *testing.T) {
	cmd := exec.Command("go", "list", "-pgo=off", "-f", "{{.ImportPath}} {{join .Imports \" \"}}", "./...")
	cmd.Dir = root
	list, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	imports := make(map[string][]string) // of this module
	for line := range strings.Lines(string(list)) {
		var own []string
		for _, p := range strings.Fields(line) {
			if p, ok := strings.CutPrefix(p, module+"/"); ok && !strings.HasPrefix(p, "testdata/") {
				own = append(own, p)
			}
		}
		imports[own[0]] = own[1:]
	}
	text := pages(t)["docs/design.md"]
	row := regexp.MustCompile("(?m)^\\| `([\\w/-]+?)/?` \\| .* \\| (.*) \\|$")
	name := regexp.MustCompile("`([^`]+)`")
	var above []string
	for _, m := range row.FindAllStringSubmatch(text, -1) {
		pkg, has := m[1], []string(nil)
		got, ok := imports[pkg]
		if !ok {
			continue // a word in another table
		}
		for _, n := range name.FindAllStringSubmatch(m[2], -1) {
			has = append(has, n[1])
		}
		slices.Sort(has)
		if slices.Sort(got); m[2] != "all of these" && !slices.Equal(has, got) {
			t.Errorf("design.md says that %s imports %v, and it imports %v", pkg, has, got)
		}
		for _, p := range got {
			if strings.HasPrefix(p, "internal/") == strings.HasPrefix(pkg, "internal/") && !slices.Contains(above, p) {
				t.Errorf("%s imports %s, which comes later in design.md", pkg, p)
			}
		}
		above = append(above, pkg)
	}
	for pkg := range imports {
		top, _, _ := strings.Cut(pkg, "/")
		if top != "bench" && top != "examples" && top != "docs" && !strings.Contains(text, "`"+pkg+"`") && !strings.Contains(text, "`"+pkg+"/`") && pkg != "internal/proof/guest/init" {
			t.Errorf("design.md does not mention %s", pkg)
		}
	}
}

// TestWalk checks that every function of design.md's walk is declared in the file that the
// line names: "plan/plan.go: New, Plan.write".
func TestWalk(t *testing.T) {
	_, text, ok := strings.Cut(pages(t)["docs/design.md"], "\n## One parameter through the rooms\n")
	if !ok {
		t.Fatal("design.md has no walk")
	}
	text, _, _ = strings.Cut(text, "\n## ")
	step := regexp.MustCompile(`(?m)^ *([\w./-]+\.go): ([\w., ]+?)(?:  .*)?$`)
	n := 0
	for _, m := range step.FindAllStringSubmatch(text, -1) {
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, m[1]), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Error(err)
			continue
		}
		declared := make(map[string]bool)
		for _, d := range f.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				declared[funcName(f)] = true
			}
		}
		for _, name := range strings.Split(m[2], ", ") {
			n++
			if !declared[name] {
				t.Errorf("%s does not declare %s", m[1], name)
			}
		}
	}
	if n < 40 {
		t.Errorf("the walk names %d functions", n)
	}
}

// funcName returns "Function" or "Type.Method".
func funcName(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	recv := f.Recv.List[0].Type
	if p, ok := recv.(*ast.StarExpr); ok {
		recv = p.X
	}
	return types.ExprString(recv) + "." + f.Name.Name
}

// TestGrammar: the guide has the grammar of package probe's comment, which the tests of the parser read too.
func TestGrammar(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "probe", "doc.go"), nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	_, comment, _ := strings.Cut(f.Doc.Text(), "with expressions of C:\n\n")
	comment, _, _ = strings.Cut(comment, "\n\n")
	comment = strings.ReplaceAll(strings.TrimPrefix(comment, "\t"), "\n\t", "\n")
	_, guide, _ := strings.Cut(pages(t)["docs/definitions.md"], "## Grammar\n\n```\n")
	guide, _, _ = strings.Cut(guide, "\n```")
	if comment == "" || comment != guide {
		t.Errorf("the guide has\n%s\nand the package\n%s", guide, comment)
	}
}

// TestFormats: the versions and parts of packs and kept indexes are those that the code writes.
func TestFormats(t *testing.T) {
	text := pages(t)["docs/packs.md"]
	if want := fmt.Sprintf("| version, %d, of a kept index %d;", packfile.Version, index.KeptKind.Version); !strings.Contains(text, want) {
		t.Errorf("packs.md does not have %q", want)
	}
	for _, kind := range []sealed.Kind{packfile.Kind, index.KeptKind} {
		at := 0
		for _, part := range kind.Parts {
			i := strings.Index(text[at:], "\n| "+part+" |")
			if i < 0 {
				t.Errorf("packs.md does not have the part %q of %s, or not in its place", part, kind.Section)
				continue
			}
			at += i
		}
	}
}
