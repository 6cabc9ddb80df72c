package sites_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/glob"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/sites"
)

const qualifiedCC = `volatile int sink;
namespace app {
__attribute__((noinline)) int f(int a) { return a + sink; }
static inline __attribute__((always_inline)) int twice(int a) { sink = a; return 2 * a + sink; }
template <class T> struct Box { T v; int get(int i) const; bool operator==(const Box &o) const; };
template <class T> __attribute__((noinline)) int Box<T>::get(int i) const { return v + i + sink; }
template <class T> __attribute__((noinline)) bool Box<T>::operator==(const Box &o) const { return v == o.v + sink; }
template <class K, class V> __attribute__((noinline)) int both(K k, V v) { return k + v + sink; }
}
int f(int a) { return a + 2 * sink; }
int main() {
  app::Box<int> b{3}; app::Box<long> c{4};
  return app::f(sink) + f(sink) + b.get(1) + c.get(2) + (b == b) + app::both<int, long>(sink, 2) + app::twice(sink);
}
`

// Debian 12's compiler, 1.63, has no std::hint::black_box yet.
const qualifiedRS = `#[inline(always)] pub fn black_box<T: Copy>(v: T) -> T { unsafe { std::ptr::read_volatile(&v) } }
mod app {
    pub mod inner {
        #[inline(never)] pub fn f(n: u64) -> u64 { crate::black_box(n) + 1 }
        #[inline(always)] pub fn small(k: u64) -> u64 { crate::black_box(k * 3) }
    }
    pub struct B<T> { pub v: T }
    impl<T: Copy + Into<u64>> B<T> { #[inline(never)] pub fn get(&self, i: u64) -> u64 { self.v.into() + i } }
    impl std::fmt::Display for B<u32> {
        #[inline(never)] fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { write!(f, "{}", self.v) }
    }
}
#[inline(never)] fn sum<T: Into<u64> + Copy>(a: T, k: u64) -> u64 { a.into() * k }
fn main() {
    let b = app::B { v: 5u32 };
    println!("{} {}", sum(black_box(2u8), black_box(3)), sum(black_box(2u32), black_box(3)));
    println!("{} {} {} {}", app::inner::f(black_box(2)), b.get(black_box(3)), b, app::inner::small(black_box(4)));
    println!("{}", black_box("abc").len());
}
`

// TestQualified: functions of C++ and Rust are found by the names that people write, from any namespace
// on, and print so.
func TestQualified(t *testing.T) {
	cc := map[string][]string{
		"app::f":                    {"app::f"},
		"f":                         {"app::f", "f"},
		"app::Box<int>::get":        {"app::Box<int>::get"},
		"Box<int>::get":             {"app::Box<int>::get"},
		"app::Box<*>::get":          {"app::Box<int>::get", "app::Box<long>::get"},
		"app::both<int,long>":       {"app::both<int, long>"},
		`app::both<int,\ long>`:     {"app::both<int, long>"},
		"app::twice":                {"app::twice"},
		"app::Box<int>::operator==": {"app::Box<int>::operator=="},
		"_ZN3app1fEi":               {"app::f"},
		"no::f":                     nil,
		"app::ge":                   nil,
	}
	rs := map[string][]string{
		"app::inner::f":    {"q::app::inner::f"},
		"q::app::inner::*": {"q::app::inner::f", "q::app::inner::small"},
		"inner::small":     {"q::app::inner::small"},
		"app::B<*>::get":   {"q::app::B<T>::get<u32>"},
		"B<T>::get":        {"q::app::B<T>::get<u32>"},
		"*Display>::fmt":   {"<q::app::B<u32> as core::fmt::Display>::fmt"},
		"q::main":          {"q::main"},
		"app::inner::nope": nil,
		"q::sum":           {"q::sum<u32>", "q::sum<u8>"},
		"sum<u8>":          {"q::sum<u8>"},
		"q::sum<*>":        {"q::sum<u32>", "q::sum<u8>"},
		"q::sum<u16>":      nil,
	}
	for _, c := range []struct {
		tool, file, text string
		args             []string
		want             map[string][]string
	}{
		{"g++", "q.cc", qualifiedCC, []string{"-O2", "-g"}, cc},
		{"clang++-14", "q.cc", qualifiedCC, []string{"-O2", "-g"}, cc},
		{"rustc", "q.rs", qualifiedRS, []string{"-O", "-g"}, rs},
		{"rustc", "q.rs", qualifiedRS, []string{"-O", "-g", "-C", "symbol-mangling-version=v0"}, nil},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, c.file), []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(testenv.Tool(t, c.tool), append(c.args, "-o", "q", c.file)...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", c.tool, err, out)
		}
		img := testenv.Open(t, filepath.Join(dir, "q"))
		for pattern, want := range c.want {
			if got := qualifiedNames(t, img, pattern); !slices.Equal(got, want) && !strings.Contains(pattern, "Display") || len(want) > 0 && !slices.Contains(got, want[0]) {
				t.Errorf("%s: %s: got %q, want %q", c.tool, pattern, got, want)
			}
		}
		if c.want == nil { // newer symbols name the crate's disambiguator's arguments too
			for pattern, want := range map[string][]string{"app::inner::f": {"q::app::inner::f"}, "q::sum": {"q::sum<u32>", "q::sum<u8>"}, "q::sum<u8>": {"q::sum<u8>"}} {
				if got := qualifiedNames(t, img, pattern); !slices.Equal(got, want) {
					t.Errorf("%s v0: %s: %q", c.tool, pattern, got)
				}
			}
		}
		all, err := img.QualifiedNames(t.Context())
		if err != nil || !slices.ContainsFunc(all, func(n string) bool { return strings.HasSuffix(n, "::f") }) || !slices.IsSorted(all) {
			t.Errorf("%s: QualifiedNames: %v, %q", c.tool, err, all[:min(9, len(all))])
		}
	}
}

func qualifiedNames(t *testing.T, img *dwarfloc.Image, pattern string) (out []string) {
	t.Helper()
	m, err := glob.Compile(pattern)
	if err != nil {
		t.Fatal(err)
	}
	found, err := sites.Select(t.Context(), img, sites.Selection{Functions: m})
	var none *sites.NotFoundError
	if err != nil && !errors.As(err, &none) {
		t.Fatalf("%s: %v", pattern, err)
	}
	for _, s := range found {
		name, err := s.QualifiedName()
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(s.Place(), "_Z") || strings.Contains(s.String(), "_Z") {
			t.Errorf("%s: %v at %s", pattern, s, s.Place())
		}
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
