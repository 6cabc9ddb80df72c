// Numbers: small functions that are inlined, narrow types, more arguments than registers,
// clones for constants, parameters that change.
#include "program.h"

static volatile long sink;

// trace: add a b
static int add(int a, int b)
{
	return a * 3 + b;
}

// trace: add3 a b c
static inline long add3(long a, long b, long c)
{
	long t = a ^ (b << 1);

	if (t > c)
		t -= c;
	return t + (long)add((int)a, (int)c);
}

// trace: narrow flag c sc uc s us e
NOINLINE static long narrow(bool flag, char c, signed char sc, unsigned char uc, short s, unsigned short us, enum colour e)
{
	long r = c + sc * 2 + uc * 3 + s * 5 + us * 7;

	if (flag)
		r += (int)e;
	return r ^ sink;
}

// trace: narrow_in flag c sc uc s us e
static ALWAYS long narrow_in(bool flag, char c, signed char sc, unsigned char uc, short s, unsigned short us, enum colour e)
{
	if (flag)
		return c * 11 + sink;
	if (e == GREEN)
		return sc - uc;
	return s * us;
}

// trace: many a b c d e f g h i
NOINLINE long many(int a, long b, short c, unsigned d, char e, long f, int g, unsigned char h, long i)
{
	return a + b * c - d + e * f + g - h * i;
}

// trace: many_in a b c d e f g h i
static inline long many_in(int a, long b, short c, unsigned d, char e, long f, int g, unsigned char h, long i)
{
	return a + b * c - d + e * f + g - h * i;
}

// The first argument is the same at all calls: a clone without it.
// trace: mode_of mode x y
NOINLINE static long mode_of(int mode, long x, long y)
{
	long r = x;

	for (int i = 0; i < 3; i++) {
		if (mode & 1)
			r = r * 7 + y;
		else
			r = r - (y >> 1) + sink;
		sink = r;
	}
	return r;
}

// Some arguments are not used.
// trace: unused a b c d
NOINLINE static long unused(long a, long b, long c, long d)
{
	(void)a;
	(void)c;
	sink = b;
	return d + b;
}

// trace: unused_in a b c
static inline long unused_in(long a, int b, long c)
{
	(void)b;
	sink = c;
	return a;
}

// Parameters that the function changes.
// trace: down n step
static inline unsigned down(unsigned n, unsigned step)
{
	unsigned r = 0;

	while (n--) {
		r = r * 3 + step;
		sink = r;
		step += n;
	}
	return r;
}

// trace: down_out n step
NOINLINE static unsigned down_out(unsigned n, unsigned step)
{
	unsigned r = 1;

	while (n--) {
		r = r * 5 + step;
		sink = r;
		step ^= n;
	}
	return r;
}

// trace: clamp x lo hi
static inline int clamp(int x, int lo, int hi)
{
	if (x < lo)
		x = lo;
	if (x > hi)
		x = hi;
	return x;
}

// trace: gcd a b
static unsigned long gcd(unsigned long a, unsigned long b)
{
	while (b) {
		unsigned long t = a % b;

		a = b;
		b = t;
	}
	return a;
}

// The first test is inlined, the rest stays a function.
// trace: rarely x y
static long rarely(long x, long y)
{
	if (x & 1)
		return y;
	sink = x;
	for (int i = 0; i < 4; i++) {
		y = y * 31 + sink;
		if (y & 64)
			sink = y + many((int)x, y, 3, 4, 5, 6, 7, 8, x);
		x += sink >> 3;
	}
	if (x > y)
		sink = many((int)x, y, 1, 2, 3, 4, 5, 6, y);
	return x - y;
}

// trace: floats d f n k
NOINLINE static double floats(double d, float f, int n, long k)
{
	return d * f + n - (double)k;
}

// trace: floats_in d n f
static inline double floats_in(double d, int n, float f)
{
	return d * n - f;
}

// trace: wide w lo
NOINLINE static unsigned long wide(unsigned __int128 w, unsigned long lo)
{
	return (unsigned long)(w >> 64) ^ (unsigned long)w ^ lo;
}

// A comparison is all that is left of the arguments.
// trace: less a b
static inline bool less(int a, int b)
{
	return a < b;
}

// trace: is_set flag bit
static inline bool is_set(unsigned flag, unsigned bit)
{
	return flag & (1u << (bit & 31));
}

// trace: both a b
static inline bool both(bool a, bool b)
{
	return a && b;
}

// trace: nothing
static inline void nothing(void)
{
	sink = 3;
}

// The results.
// trace: add_out%return $retval
NOINLINE int add_out(int a, int b)
{
	return a - b * 5;
}

// trace: flag_out%return $retval
NOINLINE bool flag_out(long a)
{
	return a > 77;
}

// trace: short_out%return $retval
NOINLINE short short_out(long a)
{
	return (short)(a >> 3);
}

// trace: const_out v=a
// trace: const_out%return $retval
NOINLINE static int const_out(long a)
{
	sink = a;
	return -7;
}

// trace: ignored_out%return $retval
NOINLINE static long ignored_out(long a)
{
	sink = a;
	return a * 9;
}

static void adds(void)
{
	int a = (int)truth_random(), b = (int)truth_random(), r;
	long x = truth_random(), y = truth_random(), z = truth_random(), q;

	truth_open();
	truth_run("add"), INT(a), INT(b);
	HIDE(a), HIDE(b);
	truth_start();
	HIDE(a), HIDE(b);
	r = add(a, b);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("add"), INT(a), truth_int("b", 12);
	truth_start();
	HIDE(a);
	r = add(a, 12);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("add3"), truth_int("a", (uint64_t)x), truth_int("b", (uint64_t)y), truth_int("c", (uint64_t)z);
	truth_run("add"), truth_int("a", (uint64_t)(int)x), truth_int("b", (uint64_t)(int)z);
	truth_start();
	HIDE(x), HIDE(y), HIDE(z);
	q = add3(x, y, z);
	KEEP(q);
	truth_stop();

	truth_open();
	truth_run("add3"), truth_int("a", 5), truth_int("b", (uint64_t)y), truth_int("c", (uint64_t)-1);
	truth_run("add"), truth_int("a", 5), truth_int("b", (uint64_t)-1);
	truth_start();
	HIDE(y);
	q = add3(5, y, -1);
	KEEP(q);
	truth_stop();
}

static void narrows(void)
{
	long x = truth_random();
	bool flag = x & 4;
	char c = (char)truth_random();
	signed char sc = (signed char)truth_random();
	unsigned char uc = (unsigned char)truth_random();
	short s = (short)truth_random();
	unsigned short us = (unsigned short)truth_random();
	enum colour e = (enum colour)(x & 1 ? GREEN : BLUE);
	long r;

	truth_open();
	truth_run("narrow"), INT(flag), INT(c), INT(sc), INT(uc), INT(s), INT(us), INT(e);
	truth_start();
	HIDE(flag), HIDE(c), HIDE(sc), HIDE(uc), HIDE(s), HIDE(us), HIDE(e);
	r = narrow(flag, c, sc, uc, s, us, e);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("narrow_in"), INT(flag), INT(c), INT(sc), INT(uc), INT(s), INT(us), INT(e);
	truth_start();
	HIDE(flag), HIDE(c), HIDE(sc), HIDE(uc), HIDE(s), HIDE(us), HIDE(e);
	r = narrow_in(flag, c, sc, uc, s, us, e);
	KEEP(r);
	truth_stop();

	// Conversions at the call: only the low bits of the register are the argument.
	truth_open();
	flag = x & 6;
	c = (char)(x >> 3), sc = (signed char)(x >> 5), uc = (unsigned char)(x >> 7), s = (short)x, us = (unsigned short)(x >> 1), e = RED;
	truth_run("narrow"), INT(flag), INT(c), INT(sc), INT(uc), INT(s), INT(us), INT(e);
	truth_start();
	HIDE(x);
	r = narrow(x & 6, (char)(x >> 3), (signed char)(x >> 5), (unsigned char)(x >> 7), (short)x, (unsigned short)(x >> 1), RED);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("narrow_in"), INT(flag), INT(c), INT(sc), INT(uc), INT(s), INT(us), INT(e);
	truth_start();
	HIDE(x);
	r = narrow_in(x & 6, (char)(x >> 3), (signed char)(x >> 5), (unsigned char)(x >> 7), (short)x, (unsigned short)(x >> 1), RED);
	KEEP(r);
	truth_stop();
}

static void manies(void)
{
	int a = (int)truth_random(), g = (int)truth_random();
	long b = truth_random(), f = truth_random(), i = truth_random(), r;
	short c = (short)truth_random();
	unsigned d = (unsigned)truth_random();
	char e = (char)truth_random();
	unsigned char h = (unsigned char)truth_random();

	truth_open();
	truth_run("many"), INT(a), INT(b), INT(c), INT(d), INT(e), INT(f), INT(g), INT(h), INT(i);
	truth_start();
	HIDE(a), HIDE(b), HIDE(c), HIDE(d), HIDE(e), HIDE(f), HIDE(g), HIDE(h), HIDE(i);
	r = many(a, b, c, d, e, f, g, h, i);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("many_in"), INT(a), INT(b), INT(c), INT(d), INT(e), INT(f), INT(g), INT(h), INT(i);
	truth_start();
	HIDE(a), HIDE(b), HIDE(c), HIDE(d), HIDE(e), HIDE(f), HIDE(g), HIDE(h), HIDE(i);
	r = many_in(a, b, c, d, e, f, g, h, i);
	KEEP(r);
	truth_stop();

	c = 4, e = 'x', h = 200;
	truth_open();
	truth_run("many"), INT(a), INT(b), INT(c), INT(d), INT(e), INT(f), INT(g), INT(h), truth_int("i", (uint64_t)a);
	truth_start();
	HIDE(a), HIDE(b), HIDE(d), HIDE(f), HIDE(g);
	r = many(a, b, 4, d, 'x', f, g, 200, a);
	KEEP(r);
	truth_stop();
}

static void clones(void)
{
	long x = truth_random(), y = truth_random(), r;

	truth_open();
	truth_run("mode_of"), truth_int("mode", 5), INT(x), INT(y);
	truth_start();
	HIDE(x), HIDE(y);
	r = mode_of(5, x, y);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("mode_of"), truth_int("mode", 5), INT(x), truth_int("y", 9);
	truth_start();
	HIDE(x);
	r = mode_of(5, x, 9);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("unused"), truth_int("a", (uint64_t)x), truth_int("b", (uint64_t)y), truth_int("c", 77), truth_int("d", (uint64_t)(x + y));
	truth_start();
	HIDE(x), HIDE(y);
	r = unused(x, y, 77, (long)((unsigned long)x + (unsigned long)y));
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("unused_in"), truth_int("a", (uint64_t)x), truth_int("b", (uint64_t)(int)y), truth_int("c", (uint64_t)(x ^ y));
	truth_start();
	HIDE(x), HIDE(y);
	r = unused_in(x, (int)y, x ^ y);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("rarely"), INT(x), INT(y);
	truth_start();
	HIDE(x), HIDE(y);
	r = rarely(x, y);
	KEEP(r);
	truth_stop();

	x = (x | 1) ^ (y & 1);
	truth_open();
	truth_run("rarely"), INT(x), truth_int("y", (uint64_t)-2);
	truth_start();
	HIDE(x);
	r = rarely(x, -2);
	KEEP(r);
	truth_stop();
}

static void changes(void)
{
	unsigned n = (unsigned)truth_random() % 5, step = (unsigned)truth_random(), r;
	int x = (int)truth_random(), lo = (int)truth_random() % 100, hi = 1000, q;
	unsigned long a = (unsigned long)truth_random(), b = (unsigned long)truth_random() % 1000;

	truth_open();
	truth_run("down"), INT(n), INT(step);
	truth_start();
	HIDE(n), HIDE(step);
	r = down(n, step);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("down"), truth_int("n", 3), INT(step);
	truth_start();
	HIDE(step);
	r = down(3, step);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("down_out"), INT(n), INT(step);
	truth_start();
	HIDE(n), HIDE(step);
	r = down_out(n, step);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("clamp"), INT(x), INT(lo), INT(hi);
	truth_start();
	HIDE(x), HIDE(lo);
	q = clamp(x, lo, 1000);
	KEEP(q);
	truth_stop();

	truth_open();
	truth_run("gcd"), INT(a), INT(b);
	truth_start();
	HIDE(a), HIDE(b);
	a = gcd(a, b);
	KEEP(a);
	truth_stop();
}

static void others(void)
{
	double d = (double)truth_random(), z;
	float f = (float)truth_random();
	int n = (int)truth_random(), m = (int)truth_random();
	long k = truth_random();
	unsigned long lo = (unsigned long)truth_random(), q;
	unsigned __int128 w = (unsigned __int128)(unsigned long)truth_random() << 64 | (unsigned long)truth_random();
	bool yes;

	truth_open();
	truth_run("floats"), truth_bytes("d", &d, sizeof d), truth_bytes("f", &f, sizeof f), INT(n), INT(k);
	truth_start();
	HIDE(n), HIDE(k);
	z = floats(d, f, n, k);
	KEEPMEM(z);
	truth_stop();

	truth_open();
	truth_run("floats_in"), truth_bytes("d", &d, sizeof d), INT(n), truth_bytes("f", &f, sizeof f);
	truth_start();
	HIDE(n);
	z = floats_in(d, n, f);
	KEEPMEM(z);
	truth_stop();

	truth_open();
	truth_run("wide"), truth_bytes("w", &w, sizeof w), INT(lo);
	truth_start();
	HIDE(lo);
	q = wide(w, lo);
	KEEP(q);
	truth_stop();

	truth_open();
	truth_run("less"), truth_int("a", (uint64_t)n), truth_int("b", (uint64_t)m);
	truth_start();
	HIDE(n), HIDE(m);
	yes = less(n, m);
	KEEP(yes);
	truth_stop();

	truth_open();
	truth_run("is_set"), truth_int("flag", (unsigned)n), truth_int("bit", 5);
	truth_start();
	HIDE(n);
	if (is_set((unsigned)n, 5))
		sink = 1;
	truth_stop();

	yes = k & 2;
	truth_open();
	truth_run("both"), truth_int("a", yes), truth_int("b", m > 0);
	truth_start();
	HIDE(yes), HIDE(m);
	if (both(yes, m > 0))
		sink = 2;
	truth_stop();

	truth_open();
	truth_run("nothing");
	truth_start();
	nothing();
	truth_stop();
}

static void results(void)
{
	int a = (int)truth_random(), b = (int)truth_random(), r;
	long x = truth_random();
	bool yes;
	short s;

	truth_open();
	truth_start();
	HIDE(a), HIDE(b);
	r = add_out(a, b);
	KEEP(r);
	truth_stop();
	truth_run("add_out%return"), truth_int("retval", (uint64_t)r);

	truth_open();
	truth_start();
	HIDE(x);
	yes = flag_out(x);
	KEEP(yes);
	truth_stop();
	truth_run("flag_out%return"), truth_int("retval", yes);

	truth_open();
	truth_start();
	HIDE(x);
	s = short_out(x);
	KEEP(s);
	truth_stop();
	truth_run("short_out%return"), truth_int("retval", (uint64_t)s);

	truth_open();
	truth_run("const_out"), truth_int("v", (uint64_t)x);
	truth_start();
	HIDE(x);
	r = const_out(x);
	KEEP(r);
	truth_stop();
	truth_run("const_out%return"), truth_int("retval", (uint64_t)r);

	// The result of ignored_out is not used, so the compiler may drop it.
	truth_open();
	truth_start();
	HIDE(x);
	ignored_out(x);
	truth_stop();
	truth_run("ignored_out%return"), truth_int("retval", (uint64_t)x * 9);
}

void scalars(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		adds();
		narrows();
		manies();
		clones();
		changes();
		others();
		results();
	}
}
