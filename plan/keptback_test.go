package plan_test

import "testing"

// TestKeptBack: of "r->bits |= more; take(r->bits)" GCC keeps the member in a register, stores it behind take, which changes it again, and goes on that what is passed is the member, as in
// brotli's decoder. Where the member is stored before, or what the body stores was not changed by its caller, memory has what the note says.
func TestKeptBack(t *testing.T) {
	const source = `
typedef unsigned long number;
struct reader { number bits, have; const unsigned *next; };
static const number masks[5] = { 0, 1, 3, 7, 15 };
volatile number seen;
static inline number take(number bits, struct reader *r, int n)
{
	number out = bits & masks[n];
	r->have -= n;
	r->bits >>= n;
	return out;
}
number get(struct reader *r, int n)
{
	number have = r->have;
	if (have <= 32) {
		r->bits |= (number)*r->next << have;
		r->have = have + 32;
		r->next++;
	}
	return take(r->bits, r, n);
}
static inline __attribute__((always_inline)) void put(number was, struct reader *r, number n) { seen = n; r->bits = was + n; }
void add(struct reader *r, number n)
{
	if (r->bits > 7)
		put(r->bits, r, n);
}
static inline __attribute__((always_inline)) void drop(number has, struct reader *r) { r->bits = 0; }
void clear(struct reader *r, number n)
{
	r->bits |= n;
	asm volatile("" : : : "memory");
	drop(r->bits, r);
}
`
	for _, options := range []string{"-O2 -shared -fPIC", "-O3 -shared -fPIC"} {
		img := built(t, "gcc-12", options, map[string]string{"a.c": source})
		isSure(t, options, img, "take bits", 1, false)
		isSure(t, options, img, "put was", 1, true)
		isSure(t, options, img, "drop has", 1, true)
	}
}
