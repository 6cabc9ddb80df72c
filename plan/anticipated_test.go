package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestAnticipated: GCC computes "1 + p" in front of the caller's test, behind one side of which the caller has that number. A run begins behind both sides.
func TestAnticipated(t *testing.T) {
	const source = `
static inline unsigned size(const unsigned p, const unsigned n)
{
	return ((1 + p) * n) / 3;
}
__attribute__((noipa)) unsigned best(const unsigned long *sums, const unsigned *sizes, unsigned parts, unsigned limit, unsigned *out, unsigned *raw)
{
	unsigned total = 6;
	for (unsigned i = 0; i < parts; i++) {
		unsigned p = 0, n = sizes[i], k = n;
		while (k * 8 < sums[i]) {
			p += 4;
			k <<= 4;
		}
		while (k < sums[i]) {
			p++;
			k <<= 1;
		}
		if (p >= limit)
			p = limit - 1;
		unsigned b = size(p, n);
		unsigned at = 0, best = ~0u;
		if (b < best)
			best = b, at = p;
		if (raw)
			raw[i] = at;
		out[i] = at;
		total += best;
	}
	return total;
}
int main(void)
{
	unsigned long s[] = {3, 1000, 17, 123456, 0, 99};
	unsigned sizes[] = {8, 8, 8, 16, 8, 8}, out[6];
	return best(s, sizes, 6, 6, out, 0) & 1;
}
`
	for _, cc := range []string{"gcc-11", "gcc-12"} {
		img := built(t, cc, "-O2 -fno-if-conversion -gno-statement-frontiers", map[string]string{"a.c": source})
		p := plantest.New(t, img, "size p n", plan.Options{})
		sure := 0
		for i := range p.Sites {
			if !p.Sites[i].Way.Again {
				sure++
			}
		}
		if sure != 1 {
			t.Errorf("%s: %d of %d probes are hit once for each run, not 1", cc, sure, len(p.Sites))
		}
	}
}
