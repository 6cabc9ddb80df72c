package plan_test

import "testing"

// TestNarrower: the body uses the lower bits of a long alone, so LLVM passes it the int in its register as it is, and notes that register as the long: its upper half
// is 0. A number without a sign has zeros there in the source too, where a variable says so, which clang 14 alone notes there; and a long is what it is.
func TestNarrower(t *testing.T) {
	const source = `
#define NOINLINE __attribute__((noinline))
#define INLINE static inline __attribute__((always_inline))
volatile unsigned sink;
long cells[8];
struct two { int x; long y; };
NOINLINE void put(unsigned n) { sink ^= n; }
NOINLINE long number(void) { return sink * 0x123456789abcdfl; }
#define LOW \
	switch (n * n & 3) { \
	case 0: m -= cells[n & 7]; break; \
	case 1: m += number(); break; \
	case 2: put(n - 100); break; \
	} \
	for (int i = (int)n & 3; i >= 0; i--) put(m); \
	n &= (unsigned long)cells[m & 7] >> 4 & 0xff; \
	put(n);
INLINE void low_loaded(unsigned char m, unsigned long n) { LOW }
INLINE void low_unsigned(unsigned char m, unsigned long n) { LOW }
INLINE void all(unsigned long n) { put(n >> 40); if (n & 4) put(n >> 32); }
INLINE void loaded(struct two t) { put(1); low_loaded(t.y - t.x, t.x); put(t.x); }
INLINE void as_unsigned(unsigned x) { put(1); low_unsigned(3, x); put(x); }
INLINE void as_long(long x) { put(1); all(x); put(x); }
int main(int argc, char **argv)
{
	struct two t = {number(), number()};
	__asm__ volatile("" : "+m"(t));
	loaded(t);
	unsigned u = sink;
	as_unsigned(u);
	as_long(number());
	return 0;
}
`
	for _, cc := range []string{"clang-14", "clang-16", "clang-19", "clang-22"} {
		exe := built(t, cc, "-O2", map[string]string{"a.c": source})
		for name, doubtful := range map[string]bool{"low_loaded": true, "low_unsigned": cc != "clang-14", "all": false} {
			hasDoubt(t, cc, exe, name+" n", contradictory(doubtful))
		}
	}
}
