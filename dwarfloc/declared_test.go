package dwarfloc_test

import (
	"context"
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
