package plan_test

import "testing"

// TestCopied: a variable that alternates, and that of an inner loop, have the number of one copy of a body in others too, and other ones in the copies in between: each is what is passed.
func TestCopied(t *testing.T) {
	const source = `
volatile long sink, beside;
static inline __attribute__((always_inline)) void set(int on, long v) { sink = on; beside = v; }
void alternates(const int *a)
{
	int on = 0;
	for (int i = 0; i < 6; i++) {
		set(on, a[i]);
		on = !on;
	}
}
static inline __attribute__((always_inline)) void inner(int column) { sink = column; beside = column * 3; }
void nested(void)
{
	for (int i = 0; i < 3; i++)
		for (int j = 0; j < 3; j++)
			inner(j);
}
`
	for _, cc := range []string{"gcc-11", "gcc-12"} {
		for _, options := range []string{"-O3 -shared -fPIC", "-O3 -funroll-loops -shared -fPIC"} {
			img := built(t, cc, options, map[string]string{"a.c": source})
			isSure(t, cc+" "+options, img, "set on", 6, true)
			isSure(t, cc+" "+options, img, "set v", 6, true)
			isSure(t, cc+" "+options, img, "inner column", 9, true)
		}
	}
}
