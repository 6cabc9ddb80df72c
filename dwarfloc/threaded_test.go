package dwarfloc_test

import "testing"

// TestThreaded: on one of two paths a number is known, and all statements up to a test leave no code: they stand before the place where the other path comes from that test.
func TestThreaded(t *testing.T) {
	const source = `
static const unsigned long table[24] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24};
static const unsigned long power[27] = {1, 5, 25, 125, 625, 3125, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27};
__attribute__((noipa, noreturn)) void stop(void) { __builtin_trap(); }
__attribute__((noipa)) unsigned long shorter(int e) { return e * 7ul; }
static inline int decimal(int e) { return (e * 315653) >> 20; }
static inline int binary(int e) { return (e * 1741647) >> 19; }
static inline unsigned long cached(int k)
{
	int index = (k + 292) / 27, base = index * 27 - 292, off = k - base;
	unsigned long entry = table[index];
	if (off == 0)
		return entry;
	int alpha = binary(base + off) - binary(base) - off;
	if (!(alpha > 0 && alpha < 64))
		stop();
	unsigned long p = power[off], q = (unsigned long)((unsigned __int128)entry * p >> 64);
	return (entry * p >> alpha) + (q << (64 - alpha));
}
__attribute__((noipa)) unsigned long convert(int e, unsigned long s)
{
	int exponent;
	if (e != 0) {
		exponent = e - 1075;
		if (s == 0)
			return shorter(exponent);
		s |= 1ul << 52;
	} else {
		if (s == 0)
			return 0;
		exponent = -1074;
	}
	int left = s % 2 == 0;
	int minus = decimal(exponent) - 2;
	unsigned long c = cached(-minus);
	int beta = exponent + binary(-minus);
	return (c >> (63 - beta)) + s + left;
}
int main(void) { return convert(1000, 1) + convert(0, 3) == 99; }
`
	found, ways := waysOf(t, compile(t, "gcc-12", source, "-g", "-O2"), "decimal")
	if len(found) != 1 || len(ways[0].In) != 2 {
		t.Fatalf("%v %+v", found, ways)
	}
	if in := ways[0].In; in[0].Again || !in[1].Again {
		t.Errorf("%+v", in)
	}
}
