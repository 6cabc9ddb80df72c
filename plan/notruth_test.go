package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestNoTruth: clang 22 knows that bits of what is counted to 14 are 0, and notes "not 1" for one of them, converted to a type of one bit. A program that calls a function with "true" is believed.
func TestNoTruth(t *testing.T) {
	const source = `
struct model { int p; };
short prices[4096];
static inline int one(struct model m, const _Bool bit) { return bit ? prices[2048 - m.p] : prices[m.p]; }
static inline int other(struct model m, const _Bool bit) { return bit ? prices[2047 - m.p] : prices[m.p]; }
static inline int six(const struct model *m, unsigned n)
{
	_Bool bit = n & 1;
	n |= 64; n >>= 1;
	int price = one(m[n], bit);
	bit = n & 1; n >>= 1; price += one(m[n], bit);
	bit = n & 1; n >>= 1; price += one(m[n], bit);
	bit = n & 1; n >>= 1; price += one(m[n], bit);
	bit = n & 1; n >>= 1; price += one(m[n], bit);
	return price + one(m[1], n & 1);
}
__attribute__((noinline)) void all(int *to, const struct model *m)
{
	int i = 0;
	for (; i < 14; i++)
		to[i] = six(m, i);
	for (; i < 40; i++)
		to[i] = six(m, i) + (i >> 1);
	to[i] = other(m[1], 1);
}
int main(void)
{
	static struct model m[128];
	int to[64];
	all(to, m);
	return to[3] & 1;
}
`
	exe := built(t, "clang-22", "-O2", map[string]string{"a.c": source})
	for definition, want := range map[string][2]int{"one bit": {2, 0}, "other bit": {1, 0}} {
		located, doubtful := 0, 0
		p := plantest.New(t, exe, definition, plan.Options{})
		for i := range p.Sites {
			a := p.Sites[i].Args[0].Variable
			if a.Located() {
				located++
			}
			if a.Loc.Doubt == reasons.Contradictory {
				doubtful++
			}
		}
		if got := [2]int{located, doubtful}; got != want {
			t.Errorf("%s: %v have a value and are doubtful, and not %v", definition, got, want)
		}
	}
}
