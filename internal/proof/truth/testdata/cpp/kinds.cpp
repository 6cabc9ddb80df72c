// More of C++: several bases, virtual bases, views, optionals, members by pointer, defaults,
// objects that only move, results.
#include "program.h"

#include <memory>
#include <optional>
#include <string_view>
#include <utility>

static volatile long sink;

struct Left {
	virtual ~Left() {}
	virtual long left(long k) = 0;
	long a = 1;
};

struct Right {
	virtual ~Right() {}
	virtual long right(long k) = 0;
	long b = 2;
};

struct Child : Left, Right {
	explicit Child(long own) : own(own) {}

	// trace: left own=this->own k
	long left(long k) override
	{
		sink = k;
		return own + k;
	}

	// Called through the second base, by a thunk that moves this.
	// trace: right own=this->own k
	long right(long k) override
	{
		sink = b;
		return own - k;
	}

	long own;
};

struct Base {
	long shared = 5;
};

struct Virtual : virtual Base {
	// trace: through_base mine=this->mine k
	NOINLINE long through_base(long k) { return shared + mine + k; }

	long mine = 9;
};

// trace: view_of length=v._M_len at=v._M_str k
NOINLINE static long view_of(std::string_view v, long k)
{
	return (long)v.size() * k + v[0];
}

// trace: view_in length=v._M_len k
static inline long view_in(std::string_view v, long k)
{
	sink = k;
	return (long)v.size() + v[1];
}

// trace: optional_of k
NOINLINE static long optional_of(std::optional<long> v, long k)
{
	return v.value_or(k);
}

// trace: pair_of first=p.first second=p.second
static inline long pair_of(std::pair<long, int> p)
{
	sink = p.second;
	return p.first;
}

// trace: owned x=p->x k
static inline long owned(Point *p, long k)
{
	sink = p->x;
	return k;
}

// trace: unique k
NOINLINE static long unique(std::unique_ptr<Point> p, long k)
{
	return p->y + k;
}

// trace: defaults a b c
NOINLINE static long defaults(long a, int b = 7, short c = -3)
{
	return a * b + c;
}

// trace: by_member k
NOINLINE static long by_member(Point p, long Point::*m, long k)
{
	return p.*m + k;
}

// trace constant: constant* n
template <int N> constexpr static inline long constant(long n)
{
	sink = N;
	return n * N;
}

// trace accumulate: accumulate* n sum
template <int N> static long accumulate(int n, long sum)
{
	sink = sum;
	return n == 0 ? sum : accumulate<N>(n - 1, sum * N + n);
}

// trace variadic: variadic* first
template <class... Rest> static inline long variadic(long first, Rest... rest)
{
	sink = first;
	return (first + ... + (long)rest);
}

// trace: nothing_thrown k
static inline long nothing_thrown(long k) noexcept
{
	sink = k;
	return k;
}

// trace: wide_of a1=w.a[1] n=w.n k
NOINLINE static long wide_of(Wide w, long k)
{
	return w.a[1] + w.n * k;
}

// trace: made_point%return $retval
NOINLINE static Point *made_point(Point &p, long k)
{
	p.y = k;
	return &p;
}

// trace: is_even%return $retval
NOINLINE bool is_even(long v)
{
	return v % 2 == 0;
}

static void inheritance()
{
	long own = truth_random(), k = truth_random(), r;
	Child child(own);
	Left *first = &child;
	Right *second = &child;
	Virtual object;
	Virtual *v = &object;

	truth_open();
	truth_run("left"), INT(own), INT(k);
	truth_start();
	HIDE(first), HIDE(k);
	r = first->left(k);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("right"), INT(own), INT(k);
	truth_start();
	HIDE(second), HIDE(k);
	r = second->right(k);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("right"), INT(own), INT(k);
	truth_start();
	KEEPMEM(child);
	HIDE(k);
	r = child.right(k);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("through_base"), truth_int("mine", 9), INT(k);
	truth_start();
	HIDE(v), HIDE(k);
	r = v->through_base(k);
	KEEP(r);
	truth_stop();
}

static void library()
{
	long k = truth_random(), x = truth_random(), r;
	int n = (int)truth_random();
	std::string_view text = "a view";
	Point p = {x, k};
	long Point::*member = &Point::y;

	truth_open();
	truth_run("view_of"), truth_int("length", text.size()), truth_int("at", (uint64_t)text.data()), INT(k);
	truth_start();
	HIDE(k);
	r = view_of(text, k);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("view_in"), truth_int("length", text.size()), INT(k);
	truth_start();
	HIDE(k);
	r = view_in(text, k);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("optional_of"), INT(k);
	truth_start();
	HIDE(x), HIDE(k);
	r = optional_of(x, k);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("pair_of"), truth_int("first", (uint64_t)x), truth_int("second", (uint64_t)n);
	truth_start();
	HIDE(x), HIDE(n);
	r = pair_of(std::make_pair(x, n));
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("owned"), truth_int("x", (uint64_t)p.x), INT(k);
	truth_start();
	HIDE(p.x), HIDE(k);
	r = owned(&p, k);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("unique"), INT(k);
	truth_start();
	HIDE(k);
	r = unique(std::make_unique<Point>(p), k);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("defaults"), truth_int("a", (uint64_t)x), truth_int("b", 7), truth_int("c", (uint64_t)-3);
	truth_start();
	HIDE(x);
	r = defaults(x);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("defaults"), truth_int("a", (uint64_t)x), truth_int("b", (uint64_t)n), truth_int("c", (uint64_t)-3);
	truth_start();
	HIDE(x), HIDE(n);
	r = defaults(x, n);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("by_member"), INT(k);
	truth_start();
	HIDE(member), HIDE(k);
	r = by_member(p, member, k);
	KEEP(r);
	truth_stop();
}

static void others()
{
	long k = truth_random(), x = truth_random(), sum = 1, r;
	int n = (int)(k & 3);
	Wide w = {{1, truth_random(), 3, 4}, (int)truth_random()};
	Point p = {1, 2}, *made;
	bool yes;

	truth_open();
	truth_run("variadic"), truth_int("first", (uint64_t)x);
	truth_start();
	HIDE(x), HIDE(n);
	r = variadic(x, n, (short)4, true);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("nothing_thrown"), INT(k);
	truth_start();
	HIDE(k);
	r = nothing_thrown(k);
	KEEP(r);
	truth_stop();

	truth_open();
	for (int i = n;; i--) {
		truth_run("accumulate"), truth_int("n", (uint64_t)i), INT(sum);
		sum = sum * 3 + i;
		if (!i)
			break;
	}
	sum = 1;
	truth_start();
	HIDE(n), HIDE(sum);
	r = accumulate<3>(n, sum);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("constant"), truth_int("n", (uint64_t)k);
	truth_start();
	HIDE(k);
	r = constant<6>(k);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("wide_of"), truth_int("a1", (uint64_t)w.a[1]), truth_int("n", (uint64_t)w.n), INT(k);
	truth_start();
	KEEPMEM(w);
	HIDE(k);
	r = wide_of(w, k);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_start();
	HIDE(k);
	made = made_point(p, k);
	KEEP(made);
	truth_stop();
	truth_run("made_point%return"), truth_int("retval", (uint64_t)made);

	truth_open();
	truth_start();
	HIDE(k);
	yes = is_even(k);
	KEEP(yes);
	truth_stop();
	truth_run("is_even%return"), truth_int("retval", yes);
}

void kinds()
{
	for (int i = 0; i < ROUNDS; i++) {
		inheritance();
		library();
		others();
	}
}
