// References: to numbers, structures, arrays, pointers; to what the compiler keeps in a register.
#include "program.h"

#include <string>

static volatile long sink;

// trace: add_to r by
NOINLINE static void add_to(long &r, long by)
{
	r += by;
}

// trace: add_to_in r by
static inline void add_to_in(long &r, long by)
{
	r += by;
	sink = r;
}

// trace: read_point x=p.x y=p.y k
NOINLINE static long read_point(const Point &p, int k)
{
	return p.x * k + p.y;
}

// trace: read_point_in x=p.x y=p.y k
static inline long read_point_in(const Point &p, int k)
{
	sink = k;
	return p.x - p.y;
}

// trace: read_wide a2=w.a[2] n=w.n
static inline long read_wide(const Wide &w)
{
	sink = w.n;
	return w.a[2];
}

// trace: read_array first=a[0] third=a[2] k
NOINLINE static long read_array(int (&a)[4], int k)
{
	return a[0] * a[2] + k;
}

// trace: read_array_in first=a[0] third=a[2] k
static inline long read_array_in(int (&a)[4], int k)
{
	a[1] = k;
	sink = a[2];
	return a[0] + a[3];
}

// trace: set_pointer x=p->x
static inline void set_pointer(Point *&p, Point *to)
{
	p = to;
	sink = p->y;
}

// trace: read_flag flag c
NOINLINE static long read_flag(const bool &flag, const short &c)
{
	return flag ? c : -c;
}

// trace: moved v
static inline long moved(long &&v)
{
	v++;
	sink = v;
	return v;
}

// trace: read_text text=s._M_dataplus._M_p:string size=s._M_string_length
NOINLINE static long read_text(const std::string &s)
{
	return (long)s.size() + s[0];
}

// trace: far_away x=p.x n
long far_away(const Point &p, int n)
{
	return p.x * n;
}

static void numbers()
{
	long r = truth_random(), by = truth_random(), q;
	bool flag = by & 1;
	short c = (short)truth_random();

	truth_open();
	truth_run("add_to"), INT(r), INT(by);
	truth_start();
	HIDE(r), HIDE(by);
	add_to(r, by);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("add_to_in"), INT(r), INT(by);
	truth_start();
	HIDE(r), HIDE(by);
	add_to_in(r, by);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("add_to_in"), INT(r), truth_int("by", 9);
	truth_start();
	KEEPMEM(r);
	add_to_in(r, 9);
	KEEPMEM(r);
	truth_stop();

	truth_open();
	truth_run("read_flag"), INT(flag), INT(c);
	truth_start();
	HIDE(flag), HIDE(c);
	q = read_flag(flag, c);
	KEEP(q);
	truth_stop();

	truth_open();
	truth_run("moved"), truth_int("v", (uint64_t)by + 1);
	truth_start();
	HIDE(by);
	q = moved(by + 1);
	KEEP(q);
	truth_stop();
}

static void objects()
{
	Point p = {truth_random(), truth_random()}, other = {3, truth_random()}, *at = &p;
	Wide w = {{1, truth_random(), truth_random(), 4}, (int)truth_random()};
	int k = (int)truth_random(), a[4] = {(int)truth_random(), 2, (int)truth_random(), 4};
	long r;
	std::string text = k & 1 ? "short" : "a text that does not fit into the object";

	truth_open();
	truth_run("read_point"), truth_int("x", (uint64_t)p.x), truth_int("y", (uint64_t)p.y), INT(k);
	truth_start();
	HIDE(p.x), HIDE(k);
	r = read_point(p, k);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("read_point_in"), truth_int("x", (uint64_t)p.x), truth_int("y", (uint64_t)p.y), INT(k);
	truth_start();
	HIDE(p.x), HIDE(p.y), HIDE(k);
	r = read_point_in(p, k);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("read_point_in"), truth_int("x", (uint64_t)p.x), truth_int("y", (uint64_t)p.y), INT(k);
	truth_start();
	HIDE(at), HIDE(k);
	r = read_point_in(*at, k);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("read_wide"), truth_int("a2", (uint64_t)w.a[2]), truth_int("n", (uint64_t)w.n);
	truth_start();
	KEEPMEM(w);
	r = read_wide(w);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("read_array"), truth_int("first", (uint64_t)a[0]), truth_int("third", (uint64_t)a[2]), INT(k);
	truth_start();
	HIDE(k);
	r = read_array(a, k);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("read_array_in"), truth_int("first", (uint64_t)a[0]), truth_int("third", (uint64_t)a[2]), INT(k);
	truth_start();
	KEEPMEM(a);
	HIDE(k);
	r = read_array_in(a, k);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("set_pointer"), truth_int("x", (uint64_t)p.x);
	truth_start();
	HIDE(at);
	set_pointer(at, &other);
	KEEP(at);
	truth_stop();

	truth_open();
	truth_run("read_text"), truth_str("text", text.c_str()), truth_int("size", text.size());
	truth_start();
	KEEPMEM(text);
	r = read_text(text);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("far_away"), truth_int("x", (uint64_t)p.x), truth_int("n", 6);
	truth_start();
	HIDE(p.x);
	r = far_away(p, 6);
	KEEP(r);
	truth_stop();
}

void references()
{
	for (int i = 0; i < ROUNDS; i++) {
		numbers();
		objects();
	}
}
