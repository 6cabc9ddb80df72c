package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestNeedsRest: LLVM merges the last instructions of several instances into one of their own, and what is before has the position of these too: one expression. No run begins
// at what needs that. Where each instance is left as it was and a further call of each path was merged, runs begin there.
func TestNeedsRest(t *testing.T) {
	const source = `
#define NOINLINE __attribute__((noinline))
#define INLINE static inline __attribute__((always_inline))
volatile unsigned sink;
NOINLINE void put(unsigned digit, unsigned left) { sink = digit ^ left; }
INLINE void take(unsigned *digit, unsigned *left, unsigned by)
{
	*digit = *left / by;
	*left %= by;
}
NOINLINE void digits(unsigned left, int n)
{
	for (; n > 0; n--) {
		unsigned digit = 0;
		switch (n) {
		case 5:
			take(&digit, &left, 10000);
			break;
		case 4:
			take(&digit, &left, 1000);
			break;
		case 3:
			take(&digit, &left, 100);
			break;
		case 2:
			take(&digit, &left, 10);
			break;
		case 1:
			digit = left;
			left = 0;
			break;
		}
		put(digit, left);
	}
}
INLINE void mix(unsigned *sum, unsigned by)
{
	*sum = *sum * 5 + by;
}
NOINLINE unsigned sums(unsigned a, unsigned b, int way)
{
	unsigned sum = sink;
	if (way > 3) {
		mix(&sum, 3);
		put(sum, a);
		mix(&sum, b);
	} else {
		mix(&sum, 7);
		put(a, sum);
		mix(&sum, b);
	}
	return sum;
}
int main(int argc, char **argv)
{
	digits(argc * 12345, 5);
	return sums(argc, argc + 1, argc) & 1;
}
`
	for _, cc := range []string{"clang-14", "clang-16", "clang-19", "clang-22"} {
		exe := built(t, cc, "-O2", map[string]string{"a.c": source})
		for name, n := range map[string]int{"take": 4, "mix": 2} {
			p := plantest.New(t, exe, name, plan.Options{})
			if len(p.Sites) < n || name == "take" && len(p.Sites) > n {
				t.Errorf("%s: %d probes of %s: %v", cc, len(p.Sites), name, p.Sites)
			}
		}
	}
}
