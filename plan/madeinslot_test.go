package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/reasons"
)

// TestMadeInSlot: LLVM moves what the body makes of a parameter at once out of the caller's loop, stores it to the frame where it has no register left, and notes that slot for the whole body. Of what is
// passed as it is the slot has that.
func TestMadeInSlot(t *testing.T) {
	const source = `
volatile long sink;
__attribute__((noinline)) long use(long v) { sink = v; return v + sink; }
static inline long next(long i, long k) { i++; use(k); use(i + k); sink = i; return i; }
static inline long same(long i, long k) { use(k); use(i + k); sink = i; return k; }
__attribute__((noinline)) long rows(long *at, long n, long m)
{
	long a = at[0], b = at[1], c = at[2], d = at[3], e = at[4], f = at[5], g = at[6], s = 0;
	for (long i = 0; i < n; i++) {
		use(i);
		s += next(n, a);
		s += same(m, b);
		use(a + b); use(c + d); use(e + f); use(g);
		a += b; b ^= c; c += d; d ^= e; e += f; f ^= g; g += s;
	}
	return a + b + c + d + e + f + g + s;
}
long cells[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
int main(void) { return rows(cells, 5, 6) == 0; }
`
	for _, compiler := range []string{"clang-14", "clang-16", "clang-19", "clang-22"} {
		img := built(t, compiler, "-O2", map[string]string{"a.c": source})
		hasDoubt(t, compiler, img, "next i", reasons.Reassigned)
		hasDoubt(t, compiler, img, "same i", reasons.None)
	}
}
