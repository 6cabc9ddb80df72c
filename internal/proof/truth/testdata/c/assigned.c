// Bodies that assign their parameter at once, by each of C's operators, so that an optimized body holds the assigned value from its
// first instruction on; and bodies that assign nothing, to which the caller passes what it computes in the same way.
#include "program.h"

static volatile unsigned long sink;

// trace: set_shl n
static ALWAYS void set_shl(unsigned long n)
{
	n <<= 1;
	sink = n + n;
}

// trace: set_shr n
static ALWAYS void set_shr(unsigned long n)
{
	n >>= 12;
	sink = n >> 1;
}

// trace: set_shra n
static ALWAYS void set_shra(long n)
{
	n >>= 3;
	sink = (unsigned long)(n >> 2);
}

// trace: set_and n
static ALWAYS void set_and(unsigned long n)
{
	n &= ~0xffful;
	sink = n & ~0x1ffful;
}

// trace: set_or n
static ALWAYS void set_or(unsigned long n)
{
	n |= 0x7f0;
	sink = n | 0xf;
}

// trace: set_xor n
static ALWAYS void set_xor(unsigned long n)
{
	n ^= 0x55;
	sink = n ^ 0x33;
}

// trace: set_add n
static ALWAYS void set_add(unsigned long n)
{
	n += 7;
	sink = n + 9;
}

// trace: set_less n
static ALWAYS void set_less(unsigned long n)
{
	n--;
	sink = n - 9;
}

// trace: set_mul n
static ALWAYS void set_mul(unsigned long n)
{
	n *= 3;
	sink = n * 5;
}

// trace: set_neg n
static ALWAYS void set_neg(unsigned long n)
{
	n = -n;
	sink = -n;
}

// trace: set_not n
static ALWAYS void set_not(unsigned long n)
{
	n = ~n;
	sink = ~n;
}

// trace: set_cut n
static ALWAYS void set_cut(unsigned long n)
{
	n = (unsigned char)n;
	sink = n & 0xf;
}

// trace: set_small n
static ALWAYS void set_small(unsigned n)
{
	n <<= 1;
	sink = n + n;
}

// trace: hash_of n
static ALWAYS void hash_of(unsigned n)
{
	sink = n;
}

// trace: unset n
static ALWAYS void unset(unsigned long n)
{
	sink = n + n;
}

// trace: unset_at p
static ALWAYS void unset_at(long *p)
{
	sink = (unsigned long)p + 8;
}

#define CALLER(f, type)                      \
	NOINLINE static void call_##f(type a, long b) \
	{                                    \
		sink = (unsigned long)b;     \
		f(a);                        \
		sink = (unsigned long)a;     \
	}

CALLER(set_shl, unsigned long)
CALLER(set_shr, unsigned long)
CALLER(set_shra, long)
CALLER(set_and, unsigned long)
CALLER(set_or, unsigned long)
CALLER(set_xor, unsigned long)
CALLER(set_add, unsigned long)
CALLER(set_less, unsigned long)
CALLER(set_mul, unsigned long)
CALLER(set_neg, unsigned long)
CALLER(set_not, unsigned long)
CALLER(set_cut, unsigned long)
CALLER(set_small, unsigned)

#define PASSED(name, what)                          \
	NOINLINE static void pass_##name(unsigned long a) \
	{                                           \
		sink = 0;                           \
		unset(what);                        \
		sink = a;                           \
	}

PASSED(shl, a << 1)
PASSED(and, a & 0x7f0)
PASSED(add, a + 7)
PASSED(sub, a - 7)
PASSED(xor, a ^ 0x55)

struct locked {
	long x, lock;
};

NOINLINE static void pass_member(struct locked *s)
{
	sink = 0;
	unset_at(&s->lock);
	sink = 1;
}

// Arithmetic of 32 bits in registers of 64.
#define HASHED(name, what)                              \
	NOINLINE static void name(const unsigned *p)    \
	{                                               \
		sink = 0;                               \
		hash_of(what);                          \
		sink = 1;                               \
	}

HASHED(hash_mul, (*p * 0x9e3779b1u) >> 19)
HASHED(hash_wide, (unsigned)(((unsigned long)*p * 0xcccccccdul) >> 35))
HASHED(hash_neg, (unsigned)(-(int)*p >> 3))

#define HASH(name, p, value)                                           \
	do {                                                           \
		truth_open();                                          \
		truth_run("hash_of"), truth_int("n", (unsigned)(value)); \
		truth_start();                                         \
		HIDE(p);                                               \
		name(p);                                               \
		truth_stop();                                          \
	} while (0)

#define CALL(f, a, value)                                          \
	do {                                                       \
		truth_open();                                      \
		truth_run(#f), truth_int("n", (uint64_t)(value));  \
		truth_start();                                     \
		HIDE(a);                                           \
		call_##f(a, 2);                                    \
		truth_stop();                                      \
	} while (0)

#define PASS(name, a, value)                                       \
	do {                                                       \
		truth_open();                                      \
		truth_run("unset"), truth_int("n", (uint64_t)(value)); \
		truth_start();                                     \
		HIDE(a);                                           \
		pass_##name(a);                                    \
		truth_stop();                                      \
	} while (0)

void assigned(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		unsigned long a = (unsigned long)truth_random();
		unsigned small = (unsigned)a, *p = &small;
		long s = (long)a;
		struct locked object = {s, i}, *o = &object;

		CALL(set_shl, a, a);
		CALL(set_shr, a, a);
		CALL(set_shra, s, s);
		CALL(set_and, a, a);
		CALL(set_or, a, a);
		CALL(set_xor, a, a);
		CALL(set_add, a, a);
		CALL(set_less, a, a);
		CALL(set_mul, a, a);
		CALL(set_neg, a, a);
		CALL(set_not, a, a);
		CALL(set_cut, a, a);
		CALL(set_small, small, small);
		PASS(shl, a, a << 1);
		PASS(and, a, a & 0x7f0);
		PASS(add, a, a + 7);
		PASS(sub, a, a - 7);
		PASS(xor, a, a ^ 0x55);

		truth_open();
		truth_run("unset_at"), truth_int("p", (uint64_t)&object.lock);
		truth_start();
		HIDE(o);
		pass_member(o);
		truth_stop();

		HASH(hash_mul, p, (small * 0x9e3779b1u) >> 19);
		HASH(hash_wide, p, ((unsigned long)small * 0xcccccccdul) >> 35);
		HASH(hash_neg, p, -(int)small >> 3);
	}
}
