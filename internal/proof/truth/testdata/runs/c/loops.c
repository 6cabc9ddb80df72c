// Bodies with loops of their own.
#include "runs.h"

DEFINE(loop_first);
DEFINE(loop_last);
DEFINE(loop_middle);
DEFINE(do_loop);
DEFINE(break_loop);
DEFINE(pointer_loop);
DEFINE(loop_of_bodies);
DEFINE(turn);
DEFINE(nested_loop);
DEFINE(search);
DEFINE(fixed_turns);
DEFINE(back_to_back);

// trace: loop_first
INLINE int loop_first(int n)
{
	int s = 0;

	RUN(loop_first);
	while (n--)
		s += sink;
	return s;
}

// trace: loop_last
INLINE int loop_last(const int *p, int n)
{
	int s = 0;

	while (n--)
		s += *p++ ^ n;
	RUN(loop_last);
	return s;
}

// trace: loop_middle
INLINE int loop_middle(int n)
{
	int s = source;

	for (int i = 0; i < n; i++)
		s += numbers[i] * sink;
	sink = s;
	RUN(loop_middle);
	return s + n;
}

// trace: do_loop
INLINE int do_loop(int n)
{
	do {
		sink = n;
		n /= 2;
	} while (n);
	RUN(do_loop);
	return n;
}

// trace: break_loop
INLINE int break_loop(int n)
{
	for (;;) {
		if (sink == n)
			break;
		sink = numbers[n & 63] + n;
		if (n-- <= 0)
			break;
	}
	RUN(break_loop);
	return n;
}

// trace: pointer_loop
INLINE int pointer_loop(const char *s)
{
	const char *p = s;

	RUN(pointer_loop);
	while (*p)
		p++;
	return (int)(p - s);
}

// trace: turn
INLINE void turn(int i)
{
	RUN(turn);
	sink = i;
}

// trace: loop_of_bodies
INLINE void loop_of_bodies(int n)
{
	for (int i = 0; i < n; i++)
		turn(i);
	RUN(loop_of_bodies);
}

// trace: nested_loop
INLINE int nested_loop(int n)
{
	int s = 0;

	for (int i = 0; i < n; i++)
		for (int j = 0; j < i; j++)
			s += sink;
	RUN(nested_loop);
	return s;
}

// trace: search
static inline int search(const int *p, int n, int v)
{
	RUN(search);
	for (int i = 0; i < n; i++)
		if (p[i] == v)
			return i;
	return -1;
}

// trace: fixed_turns
INLINE int fixed_turns(int k)
{
	int s = 0;

	for (int i = 0; i < 4; i++)
		s += numbers[i + k] * sink;
	RUN(fixed_turns);
	return s;
}

// trace: back_to_back
INLINE int back_to_back(int n)
{
	int s = 0;

	RUN(back_to_back);
	while (n-- > 0)
		s += sink;
	return s;
}

static NOINLINE int in_loops(int k)
{
	int s = 0;

	for (int i = 0; i < k; i++)
		s += loop_first(i);
	for (int i = 0; i < k; i++)
		s += loop_last(numbers, i);
	for (int i = 0; i < k; i++)
		s ^= do_loop(i);
	for (int i = 0; i < k; i++)
		s ^= fixed_turns(i);
	return s;
}

static NOINLINE int one_after_the_other(int k)
{
	int s = back_to_back(k);

	s += back_to_back(k + 1);
	s += back_to_back(2);
	return s;
}

void loops(int k)
{
	static const char *const texts[] = { "", "a", "abc", "abcdef" };

	sink = in_loops(k);
	sink = loop_first(k);
	sink = loop_last(numbers, k);
	sink = loop_middle(k);
	sink = loop_middle(5);
	do_loop(k);
	sink = break_loop(k);
	sink = pointer_loop(texts[k & 3]);
	sink = pointer_loop("abc");
	loop_of_bodies(k);
	loop_of_bodies(3);
	sink = nested_loop(k & 3);
	sink = search(numbers, 10, k);
	if (search(numbers, k, 7) >= 0)
		sink = search(numbers + 1, k, 7);
	sink = fixed_turns(k);
	sink = one_after_the_other(k);
	if (k & 1)
		sink = loop_last(numbers, 3);
}

void show_loops(void)
{
	SHOW(loop_first);
	SHOW(loop_last);
	SHOW(loop_middle);
	SHOW(do_loop);
	SHOW(break_loop);
	SHOW(pointer_loop);
	SHOW(turn);
	SHOW(loop_of_bodies);
	SHOW(nested_loop);
	SHOW(search);
	SHOW(fixed_turns);
	SHOW(back_to_back);
}
