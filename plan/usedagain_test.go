package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestUsedAgain: LLVM unrolls a caller's loop, and computes once what the body in it begins with. The other copies begin in the midst of the body, behind what the caller makes of the result of the one
// before: each is a run. The turns of a body's own loop that is unrolled are none.
func TestUsedAgain(t *testing.T) {
	const source = `
#define NOINLINE __attribute__((noinline))
#define INLINE static inline __attribute__((always_inline))
struct window { const unsigned char *bytes; int pos, end; };
INLINE int left(const struct window *w) { return w->end - w->pos; }
INLINE int alike(const struct window *w, int from, int distance)
{
	const unsigned char *here = w->bytes + w->pos;
	int i = from, most = left(w) < 200 ? left(w) : 200;
	while (i < most && here[i - distance] == here[i])
		i++;
	return i;
}
NOINLINE int longest(const struct window *w, const int *back)
{
	int most = 0, which = 0;
	for (int k = 0; k < 4; k++) {
		int n = alike(w, 0, back[k] + 1);
		if (n > most) {
			most = n;
			which = k;
		}
	}
	return most * 4 + which;
}
INLINE unsigned spread(const unsigned char *bytes, unsigned seed)
{
	unsigned sum = seed;
	for (int k = 0; k < 4; k++) {
		int n = bytes[k] & 15;
		for (int i = 0; i < n && bytes[i] != seed; i++)
			sum = sum * 31 + bytes[i + k];
		sum ^= seed;
	}
	return sum;
}
NOINLINE unsigned spreads(const unsigned char *bytes, unsigned a, unsigned b) { return spread(bytes, a * 3 + b) + 1; }
int main(int argc, char **argv)
{
	unsigned char bytes[64] = {1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 1, 2, 3, 4};
	struct window w = {bytes, 32, 60};
	int back[4] = {3, 4, 7, argc};
	int n = longest(&w, back);
	return (n + spreads(bytes, argc, n)) & 1;
}
`
	for _, cc := range []string{"clang-14", "clang-16", "clang-19", "clang-22"} {
		exe := built(t, cc, "-O3", map[string]string{"a.c": source})
		for name, n := range map[string]int{"alike": 4, "spread": 1} {
			p := plantest.New(t, exe, name, plan.Options{})
			if len(p.Sites) != n {
				t.Errorf("%s: %d probes of %s: %v", cc, len(p.Sites), name, p.Sites)
			}
		}
	}
}
