package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/doc"
	"go/doc/comment"
	"go/format"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"strings"
)

// packages writes a page for each package that others may import: what go doc says of it.
func (s *stage) packages() error {
	cmd := exec.Command("go", "list", "-f", "{{.ImportPath}}\t{{.Dir}}\t{{.Name}}\t{{len .GoFiles}}\t{{.Doc}}", "./...")
	cmd.Dir = s.root
	list, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("go list: %w", err)
	}
	index := "# Packages\n\n| package | task |\n| --- | --- |\n"
	var pages []func() error
	for line := range strings.Lines(string(list)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		name := strings.TrimPrefix(f[0], module+"/")
		if f[2] == "main" || f[3] == "0" || strings.Contains(name, "/") || name == "bench" || name == "docs" {
			continue
		}
		index += fmt.Sprintf("| [%s](%s.md) | %s |\n", name, name, strings.ReplaceAll(f[4], "|", "\\|"))
		pages = append(pages, func() error {
			text, err := packagePage(f[0], f[1])
			if err != nil {
				return err
			}
			return s.write("api/"+name+".md", text)
		})
	}
	if err := s.write("api/index.md", index); err != nil {
		return err
	}
	for _, page := range pages {
		if err := page(); err != nil {
			return err
		}
	}
	return nil
}

func packagePage(path, dir string) (string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return "", err
	}
	fset := token.NewFileSet()
	var parsed []*ast.File
	for _, f := range files {
		file, err := parser.ParseFile(fset, f, nil, parser.ParseComments)
		if err != nil {
			return "", err
		}
		parsed = append(parsed, file)
	}
	p, err := doc.NewFromFiles(fset, parsed, path)
	if err != nil {
		return "", err
	}
	w := &page{fset: fset, p: p, printer: p.Printer()}
	w.printer.HeadingLevel = 3
	w.printer.DocLinkURL = w.url
	fmt.Fprintf(&w.Buffer, "# package %s\n\n```go\nimport %q\n```\n\n", p.Name, path)
	w.text(p.Doc)
	w.examples(p.Examples)
	w.values("Constants", p.Consts)
	w.values("Variables", p.Vars)
	for _, f := range p.Funcs {
		w.function(f)
	}
	for _, t := range p.Types {
		w.heading("type "+t.Name, t.Name)
		w.declaration(t.Decl)
		w.text(t.Doc)
		w.examples(t.Examples)
		w.values("", t.Consts)
		w.values("", t.Vars)
		for _, f := range append(t.Funcs, t.Methods...) {
			w.function(f)
		}
	}
	return w.String(), w.err
}

// page is a package's page.
type page struct {
	bytes.Buffer
	fset    *token.FileSet
	p       *doc.Package
	printer *comment.Printer
	err     error
}

func (w *page) heading(text, anchor string) {
	fmt.Fprintf(w, "## %s {#%s}\n\n", text, anchor)
}

func (w *page) text(text string) {
	w.Write(w.printer.Markdown(w.p.Parser().Parse(text)))
	w.WriteString("\n")
}

func (w *page) declaration(node any) {
	w.WriteString("```go\n")
	if f, ok := node.(*ast.FuncDecl); ok {
		short := *f
		short.Body = nil
		node = &short
	}
	w.err = firstError(w.err, format.Node(w, w.fset, node))
	w.WriteString("\n```\n\n")
}

func firstError(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

func (w *page) values(title string, values []*doc.Value) {
	if title != "" && len(values) > 0 {
		w.heading(title, strings.ToLower(title))
	}
	for _, v := range values {
		for _, n := range v.Names {
			if token.IsExported(n) {
				fmt.Fprintf(w, "<a id=\"%s\"></a>", n)
			}
		}
		w.WriteString("\n\n")
		w.declaration(v.Decl)
		w.text(v.Doc)
	}
}

func (w *page) function(f *doc.Func) {
	title, anchor := "func "+f.Name, f.Name
	if f.Recv != "" {
		receiver := strings.TrimPrefix(f.Recv, "*")
		receiver, _, _ = strings.Cut(receiver, "[")
		title, anchor = "func ("+receiver+") "+f.Name, receiver+"."+f.Name
	}
	w.heading(title, anchor)
	w.declaration(f.Decl)
	w.text(f.Doc)
	w.examples(f.Examples)
}

func (w *page) examples(all []*doc.Example) {
	for _, e := range all {
		w.WriteString("Example:\n\n")
		w.declaration(e.Code)
		if e.Output != "" {
			fmt.Fprintf(w, "```text\n%s```\n\n", e.Output)
		}
	}
}

// url returns where a name in a comment leads.
func (w *page) url(l *comment.DocLink) string {
	anchor := l.Name
	if l.Recv != "" {
		anchor = l.Recv + "." + l.Name
		if l.ImportPath == "" && !w.method(l.Recv, l.Name) {
			anchor = l.Recv // a field is where its type is
		}
	}
	own, is := strings.CutPrefix(l.ImportPath, module+"/")
	switch {
	case l.ImportPath == "":
		return "#" + anchor
	case is && strings.HasPrefix(own, "internal/"):
		return repository + "/tree/main/" + own
	case is && anchor == "":
		return own + ".md"
	case is:
		return own + ".md#" + anchor
	}
	return l.DefaultURL("https://pkg.go.dev/")
}

func (w *page) method(of, name string) bool {
	for _, t := range w.p.Types {
		for _, m := range t.Methods {
			if t.Name == of && m.Name == name {
				return true
			}
		}
	}
	return false
}
