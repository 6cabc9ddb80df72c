package plan_test

import "testing"

// TestOneNote: where GCC writes no markers of statements, of "x = y" at a body's beginning one note can be left, which begins before the body's first instruction and is
// that of both parameters. What the caller passes for x is in another register then.
func TestOneNote(t *testing.T) {
	const source = `
volatile int sink;
static inline __attribute__((always_inline)) int both(int x, int y) { if (x > y) x = y; else y = x; sink = x; return y; }
static inline __attribute__((always_inline)) int apart(int x, int y) { sink = x; return x * 3 + y; }
__attribute__((noinline)) int f(const int *v, int n)
{
	int r = 0, most = 0;
	for (int i = 0; i < n; i++) {
		int x = v[i];
		if (x > most)
			most = x;
		r += both(x, i), r += both(most, x), r += both(i + 1, x);
		r += apart(x, i);
	}
	return r;
}
int main(int c, char **v) { int a[] = {5, -3, 44, c}; return f(a, 3 + c) & 1; }
`
	for _, options := range []string{"-O2 -flto", "-O2 -gno-statement-frontiers"} {
		img := built(t, "gcc-12", options, map[string]string{"a.c": source})
		isSure(t, options, img, "apart x", 1, true)
		isSure(t, options, img, "both x", 3, false)
		isSure(t, options, img, "both y", 3, false)
	}
}
