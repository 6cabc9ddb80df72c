// Runs that begin and end in C++'s ways: exceptions, destructors, lambdas, templates.
#include <algorithm>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#define DEFINE(name) volatile unsigned long runs_##name
#define RUN(name) (runs_##name = runs_##name + 1)
#define SHOW(name) std::printf(#name " %lu\n", runs_##name)
#define NOINLINE __attribute__((noinline))
#define INLINE inline __attribute__((always_inline))

volatile int sink;

extern "C" {
DEFINE(may_throw);
DEFINE(cleanup);
DEFINE(guarded);
DEFINE(catches);
DEFINE(method);
DEFINE(doubled);
DEFINE(each);
DEFINE(rethrows);
DEFINE(virtual_call);
DEFINE(of_vector);
DEFINE(swap_ends);
DEFINE(throws);
DEFINE(set_width);
DEFINE(narrower);
}

// Members that are defined outside of their class, far from where it declares them.
struct Box {
	int width, height;
	void set_width(int w);
	bool narrower(int than) const;
};

// trace: may_throw
NOINLINE int may_throw(int x)
{
	RUN(may_throw);
	if (x % 3 == 0)
		throw std::runtime_error("x");
	return x;
}

// trace: cleanup
static INLINE void cleanup(int v)
{
	RUN(cleanup);
	sink = sink + v;
}

struct Guard {
	int v;
	~Guard() { cleanup(v); }
};

// trace: guarded
static INLINE int guarded(int x)
{
	RUN(guarded);
	Guard d{x};
	return may_throw(x) + 1;
}

// trace: catches
static INLINE int catches(int x)
{
	RUN(catches);
	try {
		return may_throw(x);
	} catch (const std::exception &) {
		sink = x;
	}
	return -x;
}

// trace: throws
static INLINE int throws(int x)
{
	RUN(throws);
	if (x & 2)
		throw x;
	return x + sink;
}

// trace: rethrows
static INLINE int rethrows(int x)
{
	RUN(rethrows);
	try {
		return throws(x) * 2;
	} catch (int) {
		if (x & 1)
			throw;
	}
	return 3;
}

struct Counter {
	int n;
	// trace: method
	INLINE int method(int by)
	{
		RUN(method);
		n += by;
		return n > 5 ? n : -n;
	}
};

// trace: doubled*
template <class T> static INLINE T doubled(T v)
{
	RUN(doubled);
	return v + v;
}

// trace: each*
template <class F> static inline void each(int n, F f)
{
	for (int i = 0; i < n; i++)
		f(i);
	RUN(each);
}

struct Shape {
	virtual ~Shape() = default;
	virtual int area(int k) const = 0;
};
struct Square : Shape {
	int area(int k) const override { return k * k; }
};
struct Line : Shape {
	int area(int) const override { return 0; }
};

// trace: virtual_call
static INLINE int virtual_call(const Shape &s, int k)
{
	RUN(virtual_call);
	return s.area(k);
}

// trace: of_vector
static INLINE long of_vector(const std::vector<int> &v)
{
	long s = 0;

	for (int x : v)
		s += x ^ sink;
	RUN(of_vector);
	return s;
}

// trace: swap_ends
static INLINE void swap_ends(std::string &s)
{
	RUN(swap_ends);
	if (s.size() > 1)
		std::swap(s.front(), s.back());
}

static NOINLINE int exceptions(int k)
{
	int s = 0;

	for (int i = 0; i < k; i++) {
		try {
			s += guarded(i);
		} catch (const std::exception &) {
			sink = i;
		}
	}
	s += catches(k);
	s += catches(2);
	try {
		s += rethrows(k);
	} catch (int x) {
		s += x;
	}
	return s;
}

static NOINLINE int objects(int k)
{
	Counter c{k};
	std::vector<int> v;
	std::string text(k, 'a');
	Square square;
	Line line;
	const Shape &shape = k & 1 ? static_cast<const Shape &>(square) : line;

	for (int i = 0; i < k; i++) {
		v.push_back(i);
		c.method(i);
	}
	each(k, [&](int i) { sink = doubled(i); });
	each(3, [&](int i) { c.n += i; });
	swap_ends(text);
	sink = static_cast<int>(doubled(2.5) + static_cast<double>(of_vector(v)));
	sink = virtual_call(shape, k) + virtual_call(square, 3);
	return c.method(3) + text[0];
}

// trace: set_width
INLINE void Box::set_width(int w)
{
	RUN(set_width);
	if (w < 0)
		w = -w;
	width = w;
}

// trace: narrower
INLINE bool Box::narrower(int than) const
{
	RUN(narrower);
	return width < than && height > sink;
}

NOINLINE static int boxes(int k)
{
	Box b[4];
	int n = 0;
	for (int i = 0; i < 4; i++) {
		b[i].height = i + k;
		b[i].set_width(k - 2 * i);
		if (b[i].narrower(k))
			b[i].set_width(i);
		n += b[i].width;
	}
	return n;
}

int main()
{
	for (int k = 1; k < 14; k++) {
		sink = boxes(k);
		sink = exceptions(k);
		sink = objects(k);
	}
	SHOW(may_throw);
	SHOW(cleanup);
	SHOW(guarded);
	SHOW(catches);
	SHOW(throws);
	SHOW(rethrows);
	SHOW(method);
	SHOW(doubled);
	SHOW(each);
	SHOW(virtual_call);
	SHOW(of_vector);
	SHOW(swap_ends);
	SHOW(set_width);
	SHOW(narrower);
	return 0;
}
