// Bodies whose code is not in one piece: jumps, switches, cold parts, recursion.
#include <stdlib.h>

#include "runs.h"

DEFINE(checked);
DEFINE(with_goto);
DEFINE(by_table);
DEFINE(in_case);
DEFINE(factorial);
DEFINE(walk);
DEFINE(tail_caller);
DEFINE(after_cold);
DEFINE(before_tail);
DEFINE(both_sides);
DEFINE(put);
DEFINE(indirect);

static NOINLINE __attribute__((cold, noreturn)) void fail(int x)
{
	exit(x);
}

static NOINLINE __attribute__((cold)) void warn(int x)
{
	sink = x;
}

// trace: checked
INLINE int checked(int x)
{
	RUN(checked);
	if (unlikely(x < 0))
		fail(x);
	if (unlikely(x == 7))
		warn(x);
	return x + sink;
}

// trace: with_goto
INLINE int with_goto(int x)
{
	int n = 0;

	RUN(with_goto);
again:
	sink = x;
	if (x > 8)
		goto end;
	x += 3;
	if (n++ < 4)
		goto again;
	sink = n;
end:
	return x;
}

// trace: by_table
INLINE int by_table(int x)
{
	RUN(by_table);
	switch (x) {
	case 0: sink = 3; return 1;
	case 1: sink += 9; return 5;
	case 2: return sink;
	case 3: sink = 17; break;
	case 4: sink ^= 4; return 2;
	case 5: warn(5); break;
	case 6: sink = 1; sink = 2; break;
	case 7: return 77;
	}
	return x * 2;
}

// trace: in_case
INLINE void in_case(int x)
{
	RUN(in_case);
	sink = x;
}

static NOINLINE int cases(int x)
{
	switch (x) {
	case 0: in_case(1); return 3;
	case 1: return 9;
	case 2: in_case(x * sink); return 1;
	case 3: return 17;
	case 4: in_case(4); /* fall through */
	case 5: sink++; in_case(5); return 2;
	case 6: warn(6); return 8;
	case 7: in_case(sink); in_case(3); break;
	}
	return 0;
}

// trace: factorial
static long factorial(int n)
{
	RUN(factorial);
	if (n < 2)
		return 1;
	return n * factorial(n - 1);
}

// trace: walk
static int walk(int n, int d)
{
	int s = 0;

	RUN(walk);
	if (n <= 0)
		return d;
	for (int i = 1; i <= 2; i++)
		s += walk(n - i, d + 1);
	return s;
}

// trace: before_tail
INLINE int before_tail(int x)
{
	RUN(before_tail);
	return x + 1;
}

static NOINLINE int tail_target(int x)
{
	return x ^ sink;
}

// trace: tail_caller
static NOINLINE int tail_caller(int x)
{
	RUN(tail_caller);
	if (x & 1)
		return tail_target(before_tail(x));
	before_tail(x);
	return tail_target(3);
}

// trace: after_cold
INLINE int after_cold(int x)
{
	int r = x;

	if (unlikely(x == 5)) {
		warn(x);
		r = sink;
	}
	RUN(after_cold);
	return r;
}

// trace: both_sides
INLINE void both_sides(int x)
{
	RUN(both_sides);
	if (x & 1)
		sink = x;
	else
		sink = -x;
}

// As fdput: a call only if a bit is set.
// trace: put
INLINE void put(int flags)
{
	RUN(put);
	if (flags & 1)
		warn(flags);
}

// trace: indirect
INLINE int indirect(int (*f)(int), int x)
{
	RUN(indirect);
	return f ? f(x) : x;
}

static NOINLINE int with_put(int k)
{
	int r = 0;

	if (k == 3)
		return -1;
	if (k > 5) {
		r = numbers[k];
		if (r < 0)
			goto out;
		sink = r;
	} else if (unlikely(k == 2)) {
		r = -2;
	}
out:
	put(k);
	return r;
}

void paths(int k)
{
	sink = checked(k);
	sink = with_goto(k);
	for (int i = 0; i < 3; i++)
		sink = with_goto(i * k);
	sink = by_table(k);
	for (int i = 0; i < k; i++)
		sink = by_table(i + source);
	sink = cases(k);
	sink = (int)factorial(k);
	sink = walk(k & 3, source);
	sink = tail_caller(k);
	sink = after_cold(k) + checked(sink & 255);
	both_sides(k);
	both_sides(k + 1);
	for (int i = 0; i < k; i++)
		both_sides(i);
	sink = with_put(k);
	sink = indirect(k & 1 ? tail_target : 0, k);
	sink = indirect(0, k);
}

void show_paths(void)
{
	SHOW(checked);
	SHOW(with_goto);
	SHOW(by_table);
	SHOW(in_case);
	SHOW(factorial);
	SHOW(walk);
	SHOW(tail_caller);
	SHOW(before_tail);
	SHOW(after_cold);
	SHOW(both_sides);
	SHOW(put);
	SHOW(indirect);
}
