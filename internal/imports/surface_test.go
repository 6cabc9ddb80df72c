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

// maxExported is how many names all public packages may export together. It is lowered in the commit that takes names away, and
// never raised: what is new finds room below it, or takes the place of something else.
const maxExported = 430

// TestSurface counts exported names: types, functions, methods of exported types,
// constants and variables. Each must have a doc comment of its own. A type's comment lists its
// constants with their meanings, since "go doc" shows no others for a type.
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
		for _, c := range s.constants {
			if doc, ok := s.types[c.of]; ok && !strings.Contains(doc, c.name) {
				t.Errorf("%s: the comment of %s does not say what %s means", path, c.of, c.name)
			}
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
	types        map[string]string // exported ones, with their comments
	constants    []constant        // of these types
}

// constant is an exported constant of a type of its package.
type constant struct{ name, of string }

func surfaceOf(dir string) (*surface, error) {
	s := &surface{fset: token.NewFileSet(), types: make(map[string]string)}
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
		of := "" // what constants without a type repeat
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				if spec.Name.IsExported() {
					s.types[spec.Name.Name] = spec.Doc.Text() + d.Doc.Text()
				}
				s.count(spec.Name, spec.Doc != nil || d.Doc != nil && !d.Lparen.IsValid())
			case *ast.ValueSpec:
				if id, ok := spec.Type.(*ast.Ident); ok && d.Tok == token.CONST {
					of = id.Name
				} else if spec.Type != nil || len(spec.Values) > 0 {
					of = ""
				}
				for _, n := range spec.Names {
					if of != "" && n.IsExported() {
						s.constants = append(s.constants, constant{n.Name, of})
					}
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
