package plan_test

import "testing"

// TestCountedDown: of "i" and "7 * i" GCC keeps the second in a loop, and notes the first as "(%r14-21 /u 7)+2", which is wrong from the second turn on, where %r14 is less than 21.
func TestCountedDown(t *testing.T) {
	const source = `
enum e { E0, E1, E2, E3 };
__attribute__((noipa)) long g(long a, long b) { return a * 3 + b; }
static inline __attribute__((always_inline)) long down(enum e x, int k) { if (k) x = E2; return g(x, k) + x; }
static inline __attribute__((always_inline)) long up(unsigned long x) { return g(x, 1) + x; }
__attribute__((noipa)) long f(long x)
{
	long r = 0;
	for (int i = 3; i > 0; i--) { r += g(i * 7, x); r += down(i - 1, i & 1); }
	return r + up((unsigned long)x / 7);
}
int main(int c, char **v) { return f(c) & 1; }
`
	for _, options := range []string{"-O2", "-O3"} {
		img := built(t, "gcc-12", options, map[string]string{"a.c": source})
		isSure(t, "gcc-12", img, "down x", 1, false)
		isSure(t, "gcc-12", img, "up x", 1, true)
	}
}
