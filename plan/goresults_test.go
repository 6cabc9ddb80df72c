package plan_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/glob"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

// TestGoResultsAreNoParameters: Go's compilers describe results as parameters with a mark. Nobody passes them, so they are none, where functions are out of
// line, inlined, or both, and optimized or not. They have their names, as other variables of a body.
func TestGoResultsAreNoParameters(t *testing.T) {
	dir := t.TempDir()
	source := filepath.Join(dir, "main.go")
	err := os.WriteFile(source, []byte(`package main

//go:noinline
func alone(n int, s string) (first byte, err error) { first = s[n]; return }

//go:noinline
func kept(n int) (q int, err error) { defer func() { q++ }(); q = n / 3; return }

func inlined(n int) (q int, ok bool) { q, ok = n*7, n > 3; return }

type both struct{ n int }

func (b *both) add(n int) (sum int) { b.n += n; sum = b.n; return }

type adder interface{ add(n int) (sum int) }

func main() {
	b := both{}
	var a adder = &b
	for i := range 5 {
		println(alone(i, "abcdef"))
		println(kept(i))
		println(inlined(i))
		println(b.add(i), a.add(i))
	}
}
`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{"main.alone": {"n", "s"}, "main.kept": {"n"}, "main.inlined": {"n"}, "main.(*both).add": {"b", "n"}}
	results := map[string][]string{"main.alone": {"first", "err"}, "main.kept": {"q", "err"}, "main.inlined": {"q", "ok"}, "main.(*both).add": {"sum"}}
	for _, flags := range []string{"", "-N -l"} {
		path := filepath.Join(dir, "program")
		if out, err := exec.Command("go", "build", "-gcflags="+flags, "-o", path, source).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		img := testenv.Open(t, path)
		for function, names := range want {
			pattern, err := glob.Compile(function)
			if err != nil {
				t.Fatal(err)
			}
			sites, err := img.Sites(t.Context(), pattern)
			if err != nil || len(sites) == 0 {
				t.Fatalf("%q: %s has %d sites: %v", flags, function, len(sites), err)
			}
			for _, s := range sites {
				params, err := s.Params()
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, p := range params {
					got = append(got, p.Name)
				}
				if !slices.Equal(got, names) {
					t.Errorf("%q: %v: parameters %v instead of %v", flags, s, got, names)
				}
				for _, name := range results[function] {
					if v, err := s.Lookup(name); err != nil || v.Role != dwarfloc.RoleLocal {
						t.Errorf("%q: %v: %s: %+v, %v", flags, s, name, v, err)
					}
				}
			}
		}
	}
}
