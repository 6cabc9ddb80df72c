package plan_test

import (
	"cmp"
	"slices"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestMadeAgain: LLVM repeats a comparison where its result is used, makes an address before all parts that need it, and loads ahead of a loop what each turn has in a register. Each
// has the position of a body, and no run of that begins there.
func TestMadeAgain(t *testing.T) {
	const source = `
#define NOINLINE __attribute__((noinline))
#define INLINE static inline __attribute__((always_inline))
NOINLINE int low(int x) { __asm__ volatile("" : "+r"(x)); return x + 1; }
NOINLINE int high(int x) { __asm__ volatile("" : "+r"(x)); return x + 2; }
NOINLINE void add(int a, int b, int c) { __asm__ volatile("" : : "r"(a), "r"(b), "r"(c)); }

static int prices[64];
INLINE int is_low(int st) { return st < 7; }
INLINE int next(int st) { return st < 7 ? 8 : 11; }
NOINLINE int compared(int st, int x, const int *p)
{
	int sum = 0;
	while (*p) {
		int price = *p + prices[x];
		st = low(*p) & 15;
		if (is_low(st))
			price += low(price);
		else
			price += high(price);
		for (int i = 2; i < x; i++)
			prices[i] = high(price);
		if (price & 4) {
			for (int len = 2; len < x; len++)
				add(prices[next(st)] + sum, prices[next(st) + len], len);
		}
		if (price & 8)
			sum += prices[next(st)];
		p++;
	}
	return sum;
}

const unsigned char table[64] = {1, 2, 3, 4, 5, 6, 7};
INLINE int entry(unsigned i) { return table[i]; }
INLINE int slot(unsigned d)
{
	if (d < 16)
		return entry(d);
	if (d < 256)
		return entry(d >> 4) + 18;
	if (d < 4096)
		return entry(d >> 8) + 36;
	return entry(d >> 12) + 54;
}
struct price { int length, state; int of[4][64]; };
NOINLINE int sums(const unsigned *d, int n, struct price *p)
{
	int sum = 0;
	for (int i = 0; i < n; i++) {
		unsigned x = d[i];
		for (int len = 2; len < p->length; len++) {
			int state = len < 5 ? len - 2 : 3;
			int price = p->of[state][len] + p->state;
			if (x < 8)
				price += p->of[state][x];
			else
				price += p->of[state][slot(x) & 63] * 3 + p->of[state][x & 15];
			if (price > p->of[2][len]) {
				p->of[1][len] = price;
				p->of[3][len] = len;
				sum += low(price);
			}
			add(sum, price, len);
		}
	}
	return sum;
}

struct input { int ring, size, pos, limit; };
NOINLINE void normalize(struct input *in) { in->pos = 0; }
INLINE void move(struct input *in)
{
	if (++in->ring > in->size)
		in->ring = 0;
	if (++in->pos >= in->limit)
		normalize(in);
}
NOINLINE int optimize(struct input *in, int n)
{
	int cur = 0;
	add(in->size, in->limit, n);
	while (1) {
		move(in);
		if (++cur >= n)
			return cur;
		if (in->pos > 30)
			in->pos = low(in->pos);
	}
}
int main(int argc, char **argv)
{
	static const unsigned d[] = {3, 17, 300, 5000, 9};
	static struct price price = {.length = 9};
	static struct input in = {0, 5, 0, 40};
	static const int p[] = {4, 2, 6, 0};
	add(compared(3, argc, p), compared(9, argc, p), sums(d, 5, &price));
	return optimize(&in, 60) != 60;
}
`
	for _, compiler := range []string{"clang-14", "clang-16", "clang-19", "clang-22"} {
		img := built(t, compiler, "-O2", map[string]string{"a.c": source})
		for _, f := range []string{"is_low", "move"} {
			if p := plantest.New(t, img, f, plan.Options{}); len(p.Sites) != 1 {
				t.Errorf("%s: %s has %d sites, not 1", compiler, f, len(p.Sites))
			}
		}
		p := plantest.New(t, img, "entry", plan.Options{})
		// LLVM 22 says that what was made for several calls is of one at line 0: it may be all of each.
		of := slices.DeleteFunc(slices.Clone(p.Sites), func(s plan.Site) bool { return s.CallLine == 0 })
		if len(of) != 4 {
			t.Errorf("%s: %d sites of calls of entry, not 4", compiler, len(of))
		}
		slices.SortFunc(of, func(a, b plan.Site) int { return cmp.Compare(a.CallLine, b.CallLine) })
		if !slices.IsSortedFunc(of, func(a, b plan.Site) int { return cmp.Compare(a.Addr, b.Addr) }) {
			t.Errorf("%s: a run of a later call begins before the tests of the earlier ones", compiler)
		}
	}
}
