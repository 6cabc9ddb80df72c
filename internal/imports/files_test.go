package imports

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// upwards is how many of a hundred uses between a package's files may run upwards: those that no order of the files avoids. It only falls.
var upwards = map[string]int{"dwarfloc": 15, "internal/resolve": 15, "internal/entries": 15, "internal/witness": 15, "internal/flow": 15, "internal/body": 15, "internal/motion": 15, "internal/runs": 15, "plan": 5}

// TestFiles orders the files of packages so that as few uses as possible run upwards, and says which ones do. A file uses another one if
// it names a function, method, type, variable or constant that is declared there.
func TestFiles(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(upwards)) {
		files, uses := fileUses(t, name)
		order := ordered(files, uses)
		at := make(map[string]int)
		for i, f := range order {
			at[f] = i
		}
		var up []string
		for u := range uses {
			if at[u.from] > at[u.to] {
				up = append(up, fmt.Sprintf("%s uses %s", u.from, u.to))
			}
		}
		slices.Sort(up)
		share := 100 * len(up) / max(len(uses), 1)
		t.Logf("%s: %d files, %d uses between them, %d upwards (%d %%)", name, len(files), len(uses), len(up), share)
		if share > upwards[name] {
			t.Errorf("%s: more than %d %% of the uses between files run upwards:\n%s\nfrom top to bottom: %s", name, upwards[name], strings.Join(up, "\n"), strings.Join(order, " "))
		}
	}
}

// use is that a file names what another one declares.
type use struct{ from, to string }

// fileUses returns the files of a package and what they use of each other.
func fileUses(t *testing.T, name string) (files []string, uses map[use]bool) {
	t.Helper()
	out, err := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", module+name).Output()
	if err != nil {
		t.Fatal(err)
	}
	export := make(map[string]string)
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		export[path] = file
	}
	set := token.NewFileSet()
	var parsed []*ast.File
	paths, err := filepath.Glob(filepath.Join("../..", name, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		parsed, files = append(parsed, f), append(files, filepath.Base(path))
	}
	config := types.Config{Importer: importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) { return os.Open(export[path]) })}
	info := types.Info{Uses: make(map[*ast.Ident]types.Object)}
	pkg, err := config.Check(module+name, set, parsed, &info)
	if err != nil {
		t.Fatal(err)
	}
	uses = make(map[use]bool)
	for id, object := range info.Uses {
		if object.Pkg() != pkg {
			continue
		}
		if v, ok := object.(*types.Var); ok && v.Parent() != pkg.Scope() {
			continue // a field or a local variable: its type counts
		}
		from, to := filepath.Base(set.Position(id.Pos()).Filename), filepath.Base(set.Position(object.Pos()).Filename)
		if from != to {
			uses[use{from, to}] = true
		}
	}
	return files, uses
}

// ordered puts files that use others above these, as far as circles allow: by how many use a file, less how many it uses, and then
// by moving single files while that helps.
func ordered(files []string, uses map[use]bool) []string {
	rest := slices.Clone(files)
	var top, bottom []string
	for len(rest) > 0 {
		in, out := make(map[string]int), make(map[string]int)
		for u := range uses {
			if slices.Contains(rest, u.from) && slices.Contains(rest, u.to) {
				out[u.from]++
				in[u.to]++
			}
		}
		pick := slices.MaxFunc(rest, func(a, b string) int { return cmp.Or(cmp.Compare(out[a]-in[a], out[b]-in[b]), strings.Compare(b, a)) })
		if i := slices.IndexFunc(rest, func(f string) bool { return out[f] == 0 }); i >= 0 {
			pick = rest[i]
			bottom = append(bottom, pick)
		} else {
			top = append(top, pick)
		}
		rest = slices.DeleteFunc(rest, func(f string) bool { return f == pick })
	}
	slices.Reverse(bottom)
	order := append(top, bottom...)
	back := func(order []string) (n int) {
		at := make(map[string]int)
		for i, f := range order {
			at[f] = i
		}
		for u := range uses {
			if at[u.from] > at[u.to] {
				n++
			}
		}
		return n
	}
	for best, better := back(order), true; better; {
		better = false
		for _, f := range files {
			without := slices.DeleteFunc(slices.Clone(order), func(x string) bool { return x == f })
			for i := range files {
				try := slices.Insert(slices.Clone(without), i, f)
				if n := back(try); n < best {
					order, best, better = try, n, true
				}
			}
		}
	}
	return order
}
