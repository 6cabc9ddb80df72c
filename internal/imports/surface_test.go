package imports

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// maxExported is how many names all public packages may export together.
const maxExported = 380

// TestSurface counts exported names: types, functions, methods of exported types,
// constants and variables. Each must have a doc comment of its own.
func TestSurface(t *testing.T) {
	const root = "../.."
	sum := 0
	var table strings.Builder
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		switch name := d.Name(); {
		case path == root:
		case strings.HasPrefix(name, "."), name == "internal", name == "testdata", name == "bench", name == "examples", name == "bin":
			return fs.SkipDir
		}
		s, err := surfaceOf(path)
		if err != nil {
			return err
		}
		for _, u := range s.undocumented {
			t.Errorf("%s has no doc comment of its own", u)
		}
		if s.names > 0 {
			rel, _ := filepath.Rel(root, path)
			fmt.Fprintf(&table, "%4d %s\n", s.names, rel)
			sum += s.names
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("exported names:\n%s%4d in all", &table, sum)
	if sum > maxExported {
		t.Errorf("%d exported names, at most %d", sum, maxExported)
	}
	if sum < maxExported/2 {
		t.Errorf("%d exported names: packages are missing", sum)
	}
}

// surface is what a package exports.
type surface struct {
	names        int
	undocumented []string // with their positions
	fset         *token.FileSet
}

func surfaceOf(dir string) (*surface, error) {
	s := &surface{fset: token.NewFileSet()}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(s.fset, name, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		if f.Name.Name == "main" {
			return s, nil
		}
		for _, d := range f.Decls {
			s.declaration(d)
		}
	}
	return s, nil
}

func (s *surface) declaration(d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv != nil && !receiver(d.Recv.List[0].Type).IsExported() {
			return
		}
		// What the standard library's interfaces ask for needs no explanation.
		known := d.Recv != nil && (d.Name.Name == "Error" || d.Name.Name == "Unwrap")
		s.count(d.Name, known || d.Doc != nil)
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				s.count(spec.Name, spec.Doc != nil || d.Doc != nil && !d.Lparen.IsValid())
			case *ast.ValueSpec:
				for _, n := range spec.Names {
					s.count(n, spec.Doc != nil || spec.Comment != nil || d.Doc != nil && !d.Lparen.IsValid())
				}
			}
		}
	}
}

func (s *surface) count(name *ast.Ident, documented bool) {
	if !name.IsExported() {
		return
	}
	s.names++
	if !documented {
		s.undocumented = append(s.undocumented, fmt.Sprintf("%v: %s", s.fset.Position(name.Pos()), name.Name))
	}
}

// receiver returns the name of a method's type.
func receiver(e ast.Expr) *ast.Ident {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e
	}
	return ast.NewIdent("_")
}
