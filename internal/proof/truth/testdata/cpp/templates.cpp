// Templates, lambdas, and the standard library's.
#include "program.h"

#include <functional>
#include <string>
#include <vector>

static volatile long sink;

// trace greater: greater* a b
template <class T> static inline T greater(T a, T b)
{
	sink = (long)a;
	return a > b ? a : b;
}

// trace mixed: mixed_up* a b n
template <class A, class B, int N> NOINLINE static long mixed_up(A a, B b, int n)
{
	return (long)a * N + (long)b - n;
}

// trace power: power* x
template <int N> static inline long power(long x)
{
	return x * power<N - 1>(x);
}

template <> inline long power<0>(long x)
{
	sink = x;
	return 1;
}

// trace each: each* n
template <class F> static inline void each(const long *items, int n, F f)
{
	for (int i = 0; i < n; i++)
		f(items[i]);
}

// trace called: called v k
static inline void called(long v, long k)
{
	sink = v + k;
}

// trace stack_push: push v top=this->top
template <class T, int N> struct Stack {
	T items[N];
	int top = 0;

	void push(T v)
	{
		items[top++] = v;
		sink = top;
	}
};

// trace: through n
NOINLINE static long through(const std::function<long(long)> &f, long n)
{
	return f(n);
}

// trace: sum_of n
static inline long sum_of(const std::vector<long> &all, int n)
{
	long r = n;

	for (long v : all)
		r += v;
	return r;
}

static void generics()
{
	int a = (int)truth_random(), b = (int)truth_random(), i;
	long x = truth_random(), y = truth_random(), r;
	short s = (short)truth_random();

	truth_open();
	truth_run("greater"), INT(a), INT(b);
	truth_start();
	HIDE(a), HIDE(b);
	i = greater(a, b);
	KEEP(i);
	truth_stop();

	truth_open();
	truth_run("greater"), truth_int("a", (uint64_t)x), truth_int("b", (uint64_t)y);
	truth_start();
	HIDE(x), HIDE(y);
	r = greater(x, y);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("mixed"), truth_int("a", (uint64_t)s), truth_int("b", (uint64_t)y), truth_int("n", (uint64_t)b);
	truth_start();
	HIDE(s), HIDE(y), HIDE(b);
	r = mixed_up<short, long, 3>(s, y, b);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("mixed"), truth_int("a", (uint64_t)x), truth_int("b", (uint64_t)(signed char)s), truth_int("n", 8);
	truth_start();
	HIDE(x), HIDE(s);
	r = mixed_up<long, signed char, 7>(x, (signed char)s, 8);
	KEEP(r);
	truth_stop();

	truth_open();
	for (int k = 0; k < 4; k++)
		truth_run("power"), INT(x);
	truth_start();
	HIDE(x);
	r = power<3>(x);
	KEEP(r);
	truth_stop();
}

static void closures()
{
	long items[3] = {truth_random(), truth_random(), truth_random()}, k = truth_random(), r, v = truth_random();
	int n = 3;
	std::vector<long> all(items, items + 3);
	Stack<int, 4> stack;

	truth_open();
	truth_run("each"), INT(n);
	for (int i = 0; i < 3; i++)
		truth_run("called"), truth_int("v", (uint64_t)items[i]), INT(k);
	truth_start();
	HIDE(n), HIDE(k);
	each(items, n, [k](long v) { called(v, k); });
	truth_stop();

	truth_open();
	truth_run("through"), truth_int("n", (uint64_t)v);
	truth_run("called"), INT(v), INT(k);
	truth_start();
	HIDE(v), HIDE(k);
	r = through([&k](long n) { called(n, k); return n; }, v);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("sum_of"), INT(n);
	truth_start();
	HIDE(n);
	r = sum_of(all, n);
	KEEP(r);
	truth_stop();

	for (int i = 0; i < 3; i++) {
		truth_open();
		truth_run("stack_push"), truth_int("v", (uint64_t)(int)items[i]), truth_int("top", (uint64_t)i);
		int item = (int)items[i];
		truth_start();
		HIDE(item);
		stack.push(item);
		KEEPMEM(stack);
		truth_stop();
	}
}

void templates()
{
	for (int i = 0; i < ROUNDS; i++) {
		generics();
		closures();
	}
}
