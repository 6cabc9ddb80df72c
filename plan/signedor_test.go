package plan_test

import "testing"

// TestSignedOr: a number with the sign of a constant, which GCC's note divides, is one with a sign or one without, where no code divides it. One without a sign is the same in both.
func TestSignedOr(t *testing.T) {
	const source = `
volatile long sink;
__attribute__((noinline)) long keep(long n) { return sink + n; }
static inline long body(short less, long n, long m) { sink = n; return keep(n + m); }
static inline long next(unsigned n, int by) { return body(((unsigned long)n / 9) < (by * n), (-3000 ^ by) & (-3000 - by), n * -3000 - by); }
static inline long near(unsigned more, long n, long m) { sink = n; return keep(n + m); }
__attribute__((noinline)) long caller(int n)
{
	keep(n);
	return next(n - n ? (unsigned long)n % 9 : n | -3000, n);
}
__attribute__((noinline)) long other(int n)
{
	keep(n);
	return near((unsigned)(n & 1023 | 3000) / 9 < 9 * n, n, n ^ 7);
}
int main(void)
{
	for (int i = 0; i < 9; i++)
		sink = caller(i) + other(i);
	return 0;
}
`
	for _, option := range []string{"-O2", "-O3"} {
		img := built(t, "gcc-12", option, map[string]string{"a.c": source})
		hasDoubt(t, option, img, "body less", contradictory(true))
		hasDoubt(t, option, img, "near more", contradictory(false))
	}
}
