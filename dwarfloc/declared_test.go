package dwarfloc_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

// TestDeclared: GCC gives neither a lambda's operator() nor what it writes itself, such as
// the function that calls constructors, a place of declaration.
func TestDeclared(t *testing.T) {
	const source = `int volatile sink;
struct set { int v; set(int n) : v(n) { sink = v; } } first(sink);
template <class F> __attribute__((noinline)) int call(F f, int n) { return f(n) + f(n + 1); }
int main(int n, char **) {
	auto add = [n](int x) __attribute__((noinline)) { sink = x; return x + n; };
	return call(add, 3);
}`
	for _, level := range []string{"-O0", "-O2"} {
		img := testenv.Open(t, compile(t, "g++-12", source, level, "-g", "-x", "c++"))
		for name, line := range map[string]int{"operator()": 5, "_GLOBAL__sub_I_sink": 7, "main": 4} {
			sites, err := img.Sites(context.Background(), dwarfloc.Name(name))
			if err != nil || len(sites) == 0 {
				t.Errorf("%s %s: %v, %v", level, name, sites, err)
				continue
			}
			for _, s := range sites {
				file, at, err := s.Declared()
				if filepath.Base(file) != "source.c" || at != line || err != nil {
					t.Errorf("%s %v: declared at %s:%d, %v, want source.c:%d", level, s, file, at, err, line)
				}
			}
		}
	}
}

// TestDeclaredGo: Go gives an inlined function a line and no file.
func TestDeclaredGo(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.com/program\ngo 1.21\n",
		"main.go": `package main

import "os"

var sink int

func main() {
	outer(len(os.Args))
}
`,
		"other.go": `package main

func inner(n int) {
	sink = n
	sink = n * 3
}

func outer(n int) {
	inner(n)
	sink = n + 1
	inner(n + 2)
}
`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(testenv.Tool(t, "go"), "build", "-o", "program", ".")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	img := testenv.Open(t, filepath.Join(dir, "program"))
	for name, want := range map[string]struct{ sites, line int }{"main.inner": {1, 3}, "main.outer": {1, 8}} {
		sites, err := img.Sites(context.Background(), dwarfloc.Name(name))
		if err != nil || len(sites) != want.sites {
			t.Errorf("%s: %v, %v", name, sites, err)
		}
		for _, s := range sites {
			file, line, err := s.Declared()
			if filepath.Base(file) != "other.go" || line != want.line || err != nil || !s.Inlined() {
				t.Errorf("%v: declared at %s:%d, %v, want other.go:%d", s, file, line, err, want.line)
			}
		}
	}
}
