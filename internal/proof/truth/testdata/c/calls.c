// Recursion, variable arguments, callbacks, functions of another unit, tail calls.
#include "program.h"

#include <stdarg.h>

static volatile long sink;

// trace: factorial n
NOINLINE static unsigned long factorial(unsigned n)
{
	return n < 2 ? 1 : n * factorial(n - 1);
}

// The recursion is a loop once it is optimized.
// trace: tail n sum
static unsigned long tail(unsigned n, unsigned long sum)
{
	sink = (long)sum;
	if (!n)
		return sum;
	return tail(n - 1, sum * 3 + n);
}

// trace: depth n level value=n->value
static long depth(const struct node *n, int level)
{
	sink = level;
	if (!n->next)
		return level + n->value;
	return depth(n->next, level + 1) ^ n->value;
}

static bool odd(unsigned n);

// trace: even n
static bool even(unsigned n)
{
	sink = n;
	return n == 0 || odd(n - 1);
}

// trace: odd n
NOINLINE static bool odd(unsigned n)
{
	sink = -(long)n;
	return n != 0 && even(n - 1);
}

// trace: sum_all count first
NOINLINE static long sum_all(int count, long first, ...)
{
	va_list list;
	long r = first;

	va_start(list, first);
	while (count--)
		r += va_arg(list, long);
	va_end(list);
	return r;
}

// trace: for_each n data
NOINLINE static void for_each(void (*f)(long item, void *data), const long *items, int n, void *data)
{
	for (int i = 0; i < n; i++)
		f(items[i], data);
}

// trace: count_item item data
static void count_item(long item, void *data)
{
	sink = item + *(long *)data;
}

// trace: compare x=a->x k=b->y
static int compare(const struct pair *a, const struct pair *b)
{
	return a->x < b->x ? -1 : a->y > b->y;
}

// trace: least n
static inline const struct pair *least(const struct pair *all, int n, int (*less)(const struct pair *, const struct pair *))
{
	const struct pair *r = all;

	for (int i = 1; i < n; i++)
		if (less(&all[i], r) < 0)
			sink = i;
	return r;
}

// trace: outer a b
static inline long outer(long a, long b);
// trace: middle a b
static inline long middle(long a, long b);
// trace: inner a b
static inline long inner(long a, long b)
{
	sink = a;
	return a - b;
}

static inline long middle(long a, long b)
{
	return inner(b, a + 1) * 3;
}

static inline long outer(long a, long b)
{
	return middle(a * 2, b) + inner(a, 4);
}

// trace: last_call k
NOINLINE static long last_call(long k)
{
	return factorial((unsigned)k & 3);
}

// trace: passed a b c
NOINLINE static long passed(long a, long b, long c)
{
	sink = a;
	return far_mode((int)b, c - a);
}

// trace: never code
static __attribute__((cold)) void never(int code)
{
	sink = code;
}

// trace: check v limit
static inline bool check(long v, long limit)
{
	if (__builtin_expect(v > limit, 0)) {
		never((int)v);
		return false;
	}
	return true;
}

static void recursions(void)
{
	unsigned n = 1 + ((unsigned)truth_random() & 3);
	unsigned long r, sum = 1;
	struct node nodes[3] = {{&nodes[1], truth_random(), "", {0, 0}}, {&nodes[2], truth_random(), "", {0, 0}}, {NULL, truth_random(), "", {0, 0}}}, *head = nodes;
	long q;
	bool yes;

	truth_open();
	for (unsigned i = n; i > 0; i--)
		truth_run("factorial"), truth_int("n", i);
	truth_start();
	HIDE(n);
	r = factorial(n);
	KEEP(r);
	truth_stop();

	truth_open();
	for (unsigned i = n;; i--) {
		truth_run("tail"), truth_int("n", i), INT(sum);
		sum = sum * 3 + i;
		if (!i)
			break;
	}
	sum = 1;
	truth_start();
	HIDE(n), HIDE(sum);
	r = tail(n, sum);
	KEEP(r);
	truth_stop();

	truth_open();
	for (int i = 0; i < 3; i++)
		truth_run("depth"), truth_int("n", (uint64_t)&nodes[i]), truth_int("level", (uint64_t)i), truth_int("value", (uint64_t)nodes[i].value);
	truth_start();
	HIDE(head);
	q = depth(head, 0);
	KEEP(q);
	truth_stop();

	truth_open();
	for (unsigned i = 0; i <= n; i++)
		truth_run(i % 2 ? "odd" : "even"), truth_int("n", n - i);
	truth_start();
	HIDE(n);
	yes = even(n);
	KEEP(yes);
	truth_stop();

	truth_open();
	truth_run("last_call"), truth_int("k", n);
	for (unsigned i = n & 3;; i--) {
		truth_run("factorial"), truth_int("n", i);
		if (i < 2)
			break;
	}
	truth_start();
	HIDE(n);
	q = last_call(n);
	KEEP(q);
	truth_stop();
}

static void functions(void)
{
	long items[4] = {truth_random(), truth_random(), truth_random(), truth_random()}, data = truth_random(), a = truth_random(), b = truth_random(), r;
	struct pair pairs[2] = {{a, b}, {b, a}}, *all = pairs;
	const struct pair *p;
	int count = 3, n = 4;
	bool yes;

	truth_open();
	truth_run("sum_all"), INT(count), truth_int("first", (uint64_t)a);
	truth_start();
	HIDE(count), HIDE(a);
	r = sum_all(count, a, b, 2L, data);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("for_each"), INT(n), truth_int("data", (uint64_t)&data);
	for (int i = 0; i < n; i++)
		truth_run("count_item"), truth_int("item", (uint64_t)items[i]), truth_int("data", (uint64_t)&data);
	truth_start();
	HIDE(n);
	for_each(count_item, items, n, &data);
	truth_stop();

	n = 2;
	truth_open();
	truth_run("least"), INT(n);
	truth_run("compare"), truth_int("x", (uint64_t)b), truth_int("k", (uint64_t)b);
	truth_start();
	HIDE(n), HIDE(all);
	p = least(all, n, compare);
	KEEP(p);
	truth_stop();

	truth_open();
	truth_run("outer"), INT(a), INT(b);
	truth_run("middle"), truth_int("a", (uint64_t)a * 2), INT(b);
	truth_run("inner"), truth_int("a", (uint64_t)b), truth_int("b", (uint64_t)a * 2 + 1);
	truth_run("inner"), INT(a), truth_int("b", 4);
	truth_start();
	HIDE(a), HIDE(b);
	r = outer(a, b);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("passed"), INT(a), INT(b), truth_int("c", 9);
	truth_run("far_mode"), truth_int("mode", (uint64_t)(int)b), truth_int("x", 9 - (uint64_t)a);
	truth_start();
	HIDE(a), HIDE(b);
	r = passed(a, b, 9);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("check"), truth_int("v", (uint64_t)a), truth_int("limit", 1000);
	if (a > 1000)
		truth_run("never"), truth_int("code", (uint64_t)(int)a);
	truth_start();
	HIDE(a);
	yes = check(a, 1000);
	KEEP(yes);
	truth_stop();
}

static void far(void)
{
	struct node last = {NULL, truth_random(), "", {0, 0}}, first = {&last, truth_random(), "", {0, 0}}, *n = &first;
	long x = truth_random(), r;

	truth_open();
	truth_run("far_sum"), INT(n), truth_int("value", (uint64_t)n->value), truth_int("depth", 2);
	truth_start();
	HIDE(n);
	r = far_sum(n, 2);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("far_mode"), truth_int("mode", 4), INT(x);
	truth_start();
	HIDE(x);
	r = far_mode(4, x);
	KEEP(r);
	truth_stop();
}

void calls(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		recursions();
		functions();
		far();
	}
}
