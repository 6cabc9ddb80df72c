// Bodies without loops of their own, in all kinds of callers.
#include "runs.h"

DEFINE(straight);
DEFINE(in_loop);
DEFINE(fixed_loop);
DEFINE(early);
DEFINE(chosen);
DEFINE(outer);
DEFINE(middle);
DEFINE(inner);
DEFINE(shared);
DEFINE(constant);
DEFINE(unused);
DEFINE(counted_last);
DEFINE(two_ways);
DEFINE(small);
DEFINE(locked);
DEFINE(unlocked);
DEFINE(argument);
DEFINE(returned);
DEFINE(peeled);

// trace: straight
INLINE void straight(int a, int b)
{
	RUN(straight);
	sink = a + b;
}

// trace: in_loop
INLINE void in_loop(int i, const char *s)
{
	RUN(in_loop);
	sink += i + s[0];
}

// trace: fixed_loop
INLINE void fixed_loop(int i)
{
	RUN(fixed_loop);
	numbers[i] += i;
}

// trace: early
INLINE int early(const int *p, int n)
{
	RUN(early);
	if (!p)
		return -1;
	if (n < 3)
		return 0;
	sink = p[n];
	return p[n - 1];
}

// trace: chosen
INLINE int chosen(const int *p)
{
	RUN(chosen);
	return p[1] + p[0] * 2;
}

// trace: inner
INLINE int inner(int x)
{
	RUN(inner);
	return x ^ sink;
}

// trace: middle
INLINE int middle(int x)
{
	int r = inner(x);

	RUN(middle);
	return r + inner(x + 1);
}

// trace: outer
INLINE int outer(int x)
{
	RUN(outer);
	if (x & 1)
		return middle(x);
	return middle(x * 2) - inner(x);
}

// trace: shared
static inline int shared(int a, int b)
{
	RUN(shared);
	return a > b ? a - b : b - a;
}

// Called with constants in one branch.
// trace: constant
static inline int constant(int mode, int x)
{
	RUN(constant);
	switch (mode) {
	case 0:
		return x;
	case 1:
		sink = x;
		return x + 1;
	}
	sink = mode;
	return x * mode;
}

// Its result is not used.
// trace: unused
static inline int unused(int x)
{
	int r = x * 3 + 5;

	RUN(unused);
	return r % 7;
}

// trace: counted_last
INLINE int counted_last(const int *p, int k)
{
	int a = p[k], b = p[k + 1];

	if (a > b)
		sink = a;
	else
		sink = b;
	RUN(counted_last);
	return a - b;
}

// Both callers lead to the same code.
// trace: two_ways
INLINE void two_ways(int x)
{
	RUN(two_ways);
	sink = x;
	sink = x + 1;
}

// trace: small
static inline void small(void)
{
	RUN(small);
}

// A lock and its end, as in a kernel.
// trace: locked
INLINE void locked(int *l)
{
	__asm__ volatile("" ::: "memory");
	RUN(locked);
	*l += 1;
}

// trace: unlocked
INLINE void unlocked(int *l)
{
	RUN(unlocked);
	*l -= 1;
	__asm__ volatile("" ::: "memory");
}

static NOINLINE int within_lock(int *l, int k)
{
	int r = -1;

	locked(l);
	if (k & 1)
		goto out;
	if (unlikely(k == 6)) {
		unlocked(l);
		return -6;
	}
	r = numbers[k];
	if (r == 3)
		sink = 3;
out:
	unlocked(l);
	return r;
}

// trace: argument
INLINE int argument(int a)
{
	RUN(argument);
	return a * sink + 1;
}

// trace: returned
INLINE int returned(int a)
{
	RUN(returned);
	return a;
}

// trace: peeled
INLINE void peeled(int i, int first)
{
	RUN(peeled);
	if (first)
		sink = -1;
	sink = i;
}

static NOINLINE int choose(int *p, int k)
{
	int other[2] = { k, 3 };
	int r = chosen(k & 1 ? p : other);

	r += early(k > 4 ? p : 0, k);
	r += early(p, k);
	if (k == 2)
		r += constant(0, r);
	else if (k == 3)
		r += constant(1, r);
	else
		r += constant(k, r);
	return r;
}

static NOINLINE void merged(int k)
{
	if (k < 4) {
		sink = 100;
		two_ways(k);
	} else {
		sink = 200;
		two_ways(k);
	}
	if (k & 2)
		two_ways(5);
}

static NOINLINE int nested(int k)
{
	int r = 0;

	for (int i = 0; i < k; i++)
		r += outer(i);
	return r + middle(k);
}

static NOINLINE int callers(int a, int b)
{
	int r = shared(a, b);

	if (r > 3)
		r += shared(r, 3);
	unused(a);
	for (int i = a; i < b; i++)
		unused(i);
	small();
	if (a)
		small();
	return r;
}

static int lock;

void bodies(int k)
{
	static const char *const texts[] = { "abc", "x" };

	straight(k, 3);
	for (int i = 0; i < 4 * k; i++)
		in_loop(i, texts[i & 1]);
	for (int i = 0; i < 24; i++)
		in_loop(i, i % 3 ? "a" : "b");
	for (int i = 0; i < 8; i++)
		fixed_loop(i);
	for (int i = 0; i < 3; i++)
		fixed_loop(i + k);
	sink = choose(numbers + 20, k);
	merged(k);
	sink = nested(k & 7);
	sink = callers(k, 5);
	sink = callers(5, k);
	counted_last(numbers, k);
	sink = counted_last(numbers + 3, k);
	sink = within_lock(&lock, k);
	sink = argument(returned(k)) + argument(argument(returned(sink)));
	for (int i = 0; i < k; i++)
		peeled(i, i == 0);
	if (k % 3 && far_body(k, 3) > 9)
		sink = (int)far_body(3, k);
	for (int i = 0; i < k; i++)
		sink = (int)far_body(i, i);
	sink = far_loop(numbers, k);
}

void show_bodies(void)
{
	SHOW(straight);
	SHOW(in_loop);
	SHOW(fixed_loop);
	SHOW(early);
	SHOW(chosen);
	SHOW(outer);
	SHOW(middle);
	SHOW(inner);
	SHOW(shared);
	SHOW(constant);
	SHOW(unused);
	SHOW(counted_last);
	SHOW(two_ways);
	SHOW(small);
	SHOW(locked);
	SHOW(unlocked);
	SHOW(argument);
	SHOW(returned);
	SHOW(peeled);
}
