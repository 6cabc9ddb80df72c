// Structures: by value in one register, in two, in registers of both kinds, on the stack; by
// reference; bit-fields; results.
#include "program.h"

#include <string.h>

static volatile long sink;

// trace: small_of s s.a b=s.b c=s.c d=s.d k
NOINLINE static long small_of(struct small s, int k)
{
	return s.a + s.b * s.c - s.d + k;
}

// trace: small_in s s.a b=s.b c=s.c d=s.d k
static inline long small_in(struct small s, int k)
{
	return s.a * k + s.b - s.c * s.d;
}

// trace: pair_of p x=p.x y=p.y k
NOINLINE static long pair_of(struct pair p, long k)
{
	return p.x * k - p.y;
}

// trace: pair_in p x=p.x y=p.y k
static inline long pair_in(struct pair p, long k)
{
	return p.x ^ (p.y + k);
}

// trace: mixed_of n=m.n d=m.d k
NOINLINE static double mixed_of(struct mixed m, int k)
{
	return (double)m.n * m.d + k;
}

// trace: mixed_in n=m.n d=m.d k
static inline double mixed_in(struct mixed m, int k)
{
	return (double)m.n - m.d * k;
}

// trace: large_of l a1=l.a[1] n=l.n name=l.name:string k
NOINLINE static long large_of(struct large l, long k)
{
	return l.a[0] + l.a[1] * k + l.a[2] - l.n + l.name[0];
}

// trace: large_in a0=l.a[0] a1=l.a[1] n=l.n name=l.name:string k
static inline long large_in(struct large l, long k)
{
	sink = l.n;
	return l.a[0] - l.a[1] * k + l.a[2] + l.name[1];
}

// trace: large_ref l a2=l->a[2] n=l->n name=l->name:string
NOINLINE static long large_ref(const struct large *l)
{
	return l->a[2] * l->n + l->name[2];
}

// trace: large_ref_in a2=l->a[2] n=l->n name=l->name:string k
static inline long large_ref_in(const struct large *l, int k)
{
	return l->a[0] * l->n + l->name[3] * k;
}

// A reference to a structure that becomes scalars.
// trace: reference x=p->x y=p->y k
NOINLINE static long reference(const struct pair *p, long k)
{
	long r = p->x;

	for (int i = 0; i < 2; i++)
		sink = r = r * 3 + p->y + k;
	return r;
}

// trace: bits_of a=b.a b=b.b c=b.c d=b.d
NOINLINE static long bits_of(struct bits b)
{
	return b.a + b.b * b.c - (long)b.d;
}

// trace: bits_in a=b.a b=b.b c=b.c d=b.d k
static inline long bits_in(struct bits b, int k)
{
	return b.a * k + b.b - b.c + (long)b.d;
}

// trace: bits_ref a=p->a b=p->b c=p->c d=p->d
static inline long bits_ref(struct bits *p)
{
	long r = p->a + p->c;

	p->b = 3;
	return r + (long)p->d;
}

// A parameter that is changed in part.
// trace: changed x=p.x y=p.y
static inline long changed(struct pair p)
{
	p.x += 5;
	sink = p.x;
	p.y ^= p.x;
	return p.y;
}

// trace: swap x=p->x y=p->y
static inline void swap(struct pair *p)
{
	long t = p->x;

	p->x = p->y;
	p->y = t;
}

// trace: made%return $retval
NOINLINE struct small *made(struct small *s)
{
	s->a++;
	return s;
}

static struct small random_small(void)
{
	struct small s = {(int)truth_random(), (short)truth_random(), (unsigned char)truth_random(), (signed char)truth_random()};

	return s;
}

static void run_small(const char *label, struct small s, int k)
{
	truth_run(label);
	truth_bytes("s", &s, sizeof s);
	truth_int("a", (uint64_t)s.a);
	truth_int("b", (uint64_t)s.b);
	truth_int("c", (uint64_t)s.c);
	truth_int("d", (uint64_t)s.d);
	truth_int("k", (uint64_t)k);
}

static void run_pair(const char *label, struct pair p, long k)
{
	truth_run(label);
	truth_bytes("p", &p, sizeof p);
	truth_int("x", (uint64_t)p.x);
	truth_int("y", (uint64_t)p.y);
	truth_int("k", (uint64_t)k);
}

static void smalls(void)
{
	struct small s = random_small();
	int k = (int)truth_random();
	long r;

	truth_open();
	run_small("small_of", s, k);
	truth_start();
	HIDE(s.a), HIDE(s.b), HIDE(k);
	r = small_of(s, k);
	KEEP(r);
	truth_stop();

	truth_open();
	run_small("small_in", s, k);
	truth_start();
	HIDE(s.a), HIDE(s.c), HIDE(k);
	r = small_in(s, k);
	KEEP(r);
	truth_stop();

	s.b = 40, s.d = -3;
	truth_open();
	run_small("small_in", s, 7);
	truth_start();
	HIDE(s.a), HIDE(s.c);
	r = small_in(s, 7);
	KEEP(r);
	truth_stop();
}

static void pairs(void)
{
	struct pair p = {truth_random(), truth_random()};
	long k = truth_random(), r;

	truth_open();
	run_pair("pair_of", p, k);
	truth_start();
	HIDE(p.x), HIDE(p.y), HIDE(k);
	r = pair_of(p, k);
	KEEP(r);
	truth_stop();

	truth_open();
	run_pair("pair_in", p, k);
	truth_start();
	HIDE(p.x), HIDE(p.y), HIDE(k);
	r = pair_in(p, k);
	KEEP(r);
	truth_stop();

	p.y = 12;
	truth_open();
	run_pair("pair_in", p, k);
	truth_start();
	HIDE(p.x), HIDE(k);
	r = pair_in(p, k);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("reference"), truth_int("x", (uint64_t)p.x), truth_int("y", (uint64_t)p.y), truth_int("k", 3);
	truth_start();
	HIDE(p.x), HIDE(p.y);
	r = reference(&p, 3);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("changed"), truth_int("x", (uint64_t)p.x), truth_int("y", (uint64_t)p.y);
	truth_start();
	HIDE(p.x), HIDE(p.y);
	r = changed(p);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("swap"), truth_int("x", (uint64_t)p.x), truth_int("y", (uint64_t)p.y);
	truth_start();
	HIDE(p.x), HIDE(p.y);
	swap(&p);
	KEEP(p.x), KEEP(p.y);
	truth_stop();
}

static void mixeds(void)
{
	struct mixed m = {truth_random(), (double)truth_random()};
	int k = (int)truth_random();
	double r;

	truth_open();
	truth_run("mixed_of"), truth_int("n", (uint64_t)m.n), truth_bytes("d", &m.d, sizeof m.d), INT(k);
	truth_start();
	HIDE(m.n), HIDE(k);
	r = mixed_of(m, k);
	KEEPMEM(r);
	truth_stop();

	truth_open();
	truth_run("mixed_in"), truth_int("n", (uint64_t)m.n), truth_bytes("d", &m.d, sizeof m.d), INT(k);
	truth_start();
	HIDE(m.n), HIDE(k);
	r = mixed_in(m, k);
	KEEPMEM(r);
	truth_stop();
}

static void run_large(const char *label, const struct large *l, long k)
{
	truth_run(label);
	truth_bytes("l", l, sizeof *l);
	truth_int("a0", (uint64_t)l->a[0]);
	truth_int("a1", (uint64_t)l->a[1]);
	truth_int("a2", (uint64_t)l->a[2]);
	truth_int("n", (uint64_t)l->n);
	truth_str("name", l->name);
	truth_int("k", (uint64_t)k);
}

static void larges(void)
{
	struct large l = {{truth_random(), truth_random(), truth_random()}, (int)truth_random(), "no name"};
	long k = truth_random(), r;

	l.name[1] = (char)('a' + (k & 15));
	truth_open();
	run_large("large_of", &l, k);
	truth_start();
	HIDE(l.n), HIDE(k);
	r = large_of(l, k);
	KEEP(r);
	truth_stop();

	truth_open();
	run_large("large_in", &l, k);
	truth_start();
	HIDE(l.n), HIDE(k);
	r = large_in(l, k);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("large_ref"), truth_int("l", (uint64_t)&l), truth_int("a2", (uint64_t)l.a[2]), truth_int("n", (uint64_t)l.n), truth_str("name", l.name);
	truth_start();
	KEEPMEM(l);
	r = large_ref(&l);
	KEEP(r);
	truth_stop();

	truth_open();
	run_large("large_ref_in", &l, (int)k);
	truth_start();
	HIDE(k);
	r = large_ref_in(&l, (int)k);
	KEEP(r);
	truth_stop();
}

static void run_bits(const char *label, struct bits b, int k)
{
	truth_run(label);
	truth_int("a", b.a);
	truth_int("b", (uint64_t)(int)b.b);
	truth_int("c", b.c);
	truth_int("d", b.d);
	truth_int("k", (uint64_t)k);
}

static void bit_fields(void)
{
	struct bits b = {0};
	int k = (int)truth_random();
	long r;

	b.a = (unsigned)truth_random() & 7;
	b.b = (int)truth_random() % 16;
	b.c = (unsigned)truth_random() & 0xfff;
	b.d = (unsigned long)truth_random() & 0xffffffffff;
	truth_open();
	run_bits("bits_of", b, 0);
	truth_start();
	KEEPMEM(b);
	r = bits_of(b);
	KEEP(r);
	truth_stop();

	truth_open();
	run_bits("bits_in", b, k);
	truth_start();
	HIDE(k);
	r = bits_in(b, k);
	KEEP(r);
	truth_stop();

	truth_open();
	run_bits("bits_ref", b, 0);
	truth_start();
	KEEPMEM(b);
	r = bits_ref(&b);
	KEEP(r);
	KEEPMEM(b);
	truth_stop();
}

static void made_ones(void)
{
	struct small s = random_small(), *p;

	truth_open();
	truth_start();
	p = made(&s);
	KEEP(p);
	truth_stop();
	truth_run("made%return"), truth_int("retval", (uint64_t)p);
}

void structures(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		smalls();
		pairs();
		mixeds();
		larges();
		bit_fields();
		made_ones();
	}
}
