package plan_test

import "testing"

// TestUnmarkedBody: link-time optimization inlines some bodies without the markers of their statements, and a view says only with these whether a note is of what was passed. All that is left
// of outer in the loop is inner's store. A body that has its markers, but no code of its own where they are, is as without link-time optimization.
func TestUnmarkedBody(t *testing.T) {
	const program = `
int run(unsigned n, unsigned m);
int main(int argc, char **argv) { return run(argc, argv[1][0]); }
`
	const lost = `
volatile unsigned sink;
unsigned table[8];
static inline unsigned inner(unsigned n) { sink = table[1] & 1; return 0; }
static inline unsigned outer(unsigned n)
{
	n &= 0;
	n -= 1;
	return inner(n);
}
int run(unsigned n, unsigned m)
{
	unsigned r = 0;
	for (unsigned i = 0; i < m; i++)
		r += outer(n + i) + i;
	return r;
}
`
	const kept = `
volatile unsigned sink;
unsigned table[8];
static inline unsigned put(unsigned *p, unsigned n)
{
	*p = n;
	return 0;
}
static inline unsigned two(unsigned k) { return put(&table[2], k); }
__attribute__((noinline)) unsigned set(unsigned k)
{
	sink = 5;
	two(4);
	return k + 1;
}
int run(unsigned n, unsigned m) { return set(n) + table[m]; }
`
	for _, compiler := range []string{"gcc-11", "gcc-12"} {
		isSure(t, compiler, built(t, compiler, "-O2 -flto", map[string]string{"main.c": program, "a.c": lost}), "outer n", 1, false)
		isSure(t, compiler, built(t, compiler, "-O2 -flto", map[string]string{"main.c": program, "a.c": kept}), "put n", 1, true)
	}
}
