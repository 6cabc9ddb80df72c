package plan_test

import "testing"

// TestSpent: a parameter of a const type that the caller computes has all of its bits where the body compares or stores it, and may lack some where the body uses a few.
func TestSpent(t *testing.T) {
	const source = `
struct big { unsigned digits[128]; };
struct slot { unsigned value; unsigned char low; };
extern void abort(void);
__attribute__((noipa)) void use(unsigned x) { __asm__ volatile("" : : "r"(x)); }
static inline unsigned *compared(struct big *b, const int index)
{
	if ((unsigned)index >= 128)
		abort();
	return &b->digits[index];
}
static inline void stored(struct slot *s, const unsigned n) { s->value = n; }
static inline void cut(struct slot *s, const unsigned n) { s->low = n; }
static inline void both(struct slot *s, const unsigned n, const unsigned all) { s->low = n; s->value = all; }
__attribute__((noipa)) unsigned f(struct big *b, int x, int y) { return *compared(b, x * y); }
__attribute__((noipa)) void g(struct slot *s, unsigned x, unsigned y) { stored(s, x * y); }
__attribute__((noipa)) void h(struct slot *s, unsigned x, unsigned y) { cut(s, x * y & 255); }
__attribute__((noipa)) void k(struct slot *s, unsigned x, unsigned y) { both(s, x * y & 255, x * y); }
int main(void)
{
	static struct big b;
	static struct slot s;
	use(f(&b, 3, 7));
	g(&s, 300, 7);
	h(&s, 300, 7);
	k(&s, 300, 7);
	return s.low;
}
`
	for _, compiler := range []string{"clang-14", "clang-16", "clang-19", "clang-22"} {
		img := built(t, compiler, "-O2", map[string]string{"a.c": source})
		for _, tt := range []struct {
			definition string
			sure       bool
		}{{"compared index", true}, {"stored n", true}, {"cut n", false}, {"both n", false}} {
			isSure(t, compiler, img, tt.definition, 1, tt.sure)
		}
	}
}
