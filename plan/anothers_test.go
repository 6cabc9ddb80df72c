package plan_test

import "testing"

// TestAnothers: of "a = b" at a body's beginning LLVM leaves one note, for both, at b's place. Where a function is called there, the convention says which of two is passed
// in the register; a static function's caller need not pass what is not used.
func TestAnothers(t *testing.T) {
	const source = `
__attribute__((noinline)) int g(int a, int b) { __asm__ volatile("" : : : "memory"); return a * 3 + b; }
static inline __attribute__((always_inline)) int same(int a, int b) { a = b; return g(a, b) + a + b; }
static inline __attribute__((always_inline)) int apart(int a, int b) { return g(a, b) + a + b; }
static inline __attribute__((always_inline)) int fixed(int a, const int b) { a = b; return g(a, b) + a + b; }
__attribute__((noinline)) int outer(int a, int b) { a = b; return g(a, b) + a + b; }
__attribute__((noinline)) int lost(int a, int b) { a = b; b = 7; return g(a, 5) + a + b; }
static __attribute__((noinline)) int inner(int a, int b) { a = b; return g(a, b) + a + b; }
__attribute__((noinline)) int f(int x, int y)
{
	int r = g(x, y);
	r += same(x + 1, y);
	r += fixed(x + 2, y);
	return r + apart(x, y) + x;
}
int main(int c, char **v) { return (f(c * 7, c + 3) + outer(c, c + 1) + lost(c, c + 1) + inner(c + 2, c + 1)) & 1; }
`
	type want map[string]bool // whether the value is sure
	llvm := want{"same a": false, "apart a": true, "apart b": true, "fixed a": false, "fixed b": true, "outer a": false, "outer b": true, "lost a": false, "inner a": false}
	for _, tt := range []struct {
		compiler, options string
		want              want
	}{
		{"clang-14", "-O2", llvm},
		{"clang-14", "-Os", llvm},
		{"clang-22", "-O2", llvm},
		{"gcc-12", "-O2 -gno-variable-location-views", want{"same a": false, "outer a": true, "outer b": true, "lost a": true, "inner a": true}},
	} {
		img := built(t, tt.compiler, tt.options, map[string]string{"a.c": source})
		for definition, sure := range tt.want {
			isSure(t, tt.compiler, img, definition, 1, sure)
		}
	}
}

// TestNeverAssigned: no statement assigns a reference or the object of a member function, whatever computes where it is.
func TestNeverAssigned(t *testing.T) {
	const source = `
struct part {
	int pad[8], n;
	int sum() { __asm__ volatile("" : : : "memory"); return n * 3 + pad[1]; }
};
struct whole { int x[3]; part parts[4]; };
static inline __attribute__((always_inline)) int refer(part &p) { __asm__ volatile("" : : : "memory"); return p.n + p.pad[2]; }
static inline __attribute__((always_inline)) int point(part *p) { __asm__ volatile("" : : : "memory"); return p->n + p->pad[2]; }
__attribute__((noinline)) int f(whole *w, long i) { return w->parts[i].sum(); }
__attribute__((noinline)) int g(whole *w, long i) { return refer(w->parts[i]); }
__attribute__((noinline)) int h(whole *w, long i) { return point(&w->parts[i]); }
int main(int c, char **) { whole w{}; return (f(&w, c) + g(&w, c) + h(&w, c)) & 1; }
`
	for _, compiler := range []string{"clang++-14", "clang++-16"} {
		img := built(t, compiler, "-O2", map[string]string{"a.cc": source})
		isSure(t, compiler, img, "part::sum this", 1, true)
		isSure(t, compiler, img, "refer p", 1, true)
		isSure(t, compiler, img, "point p", 1, false)
	}
}
