// Methods, virtual methods, constructors, objects that are passed by a hidden reference.
#include "program.h"

static volatile long sink;

class Counter {
public:
	// trace: Counter start step
	Counter(long start, int step) : value(start), by(step) { sink = start; }

	// trace: advance value=this->value by=this->by times
	long advance(int times)
	{
		value += by * times;
		sink = value;
		return value;
	}

	// trace: peek this value=this->value k
	NOINLINE long peek(long k) const { return value ^ k; }

	// trace: limit v most
	static long limit(long v, long most) { return v > most ? most : v; }

	// trace: drain n
	static inline unsigned drain(unsigned n)
	{
		unsigned r = 0;

		while (n-- > 0)
			sink = r += n;
		return r;
	}

private:
	long value;
	int by;
};

class Shape {
public:
	explicit Shape(int sides) : sides(sides) {}
	virtual ~Shape() {}
	virtual long area(long unit) const = 0;

protected:
	int sides;
};

class Square : public Shape {
public:
	explicit Square(long side) : Shape(4), side(side) {}

	// trace: area side=this->side sides=this->sides unit
	long area(long unit) const override { return side * side * unit + sides; }

private:
	long side;
};

// Objects with a copy constructor are passed by reference.
class Handle {
public:
	explicit Handle(long id) : id(id) {}
	Handle(const Handle &other) : id(other.id) { sink = id; }
	~Handle() { sink = -id; }
	long id;
};

// trace: use_handle id=h.id k
NOINLINE static long use_handle(Handle h, long k)
{
	return h.id * k;
}

// trace: use_handle_in id=h.id k
static inline long use_handle_in(Handle h, long k)
{
	sink = k;
	return h.id - k;
}

// trace: paint c on glyph
static inline long paint(Colour c, bool on, char16_t glyph)
{
	sink = (long)c;
	return on ? glyph : -1;
}

// trace: paint_out c on glyph
NOINLINE static long paint_out(Colour c, bool on, char16_t glyph)
{
	return on ? glyph + (long)c : -1;
}

namespace deep {
namespace inside {

// trace: nested x y=p.y
static inline long nested(long x, Point p)
{
	sink = p.x;
	return x * p.y;
}

} // namespace inside
} // namespace deep

// Two functions of one name.
// trace: twin v
NOINLINE static long twin(int v) { return v + sink; }
NOINLINE static long twin(short v) { return v - sink; }

// trace: thrower n
NOINLINE static int thrower(int n)
{
	if (n & 1)
		throw n;
	return n;
}

// trace: catcher n
static inline int catcher(int n)
{
	try {
		return thrower(n);
	} catch (int) {
		return -1;
	}
}

static void counters()
{
	long start = truth_random(), k = truth_random(), r;
	int step = (int)truth_random(), times = (int)truth_random();

	truth_open();
	truth_run("Counter"), INT(start), INT(step);
	truth_run("advance"), truth_int("value", (uint64_t)start), truth_int("by", (uint64_t)step), INT(times);
	truth_start();
	HIDE(start), HIDE(step), HIDE(times);
	{
		Counter c(start, step);
		r = c.advance(times);
	}
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("Counter"), INT(start), truth_int("step", 3);
	truth_start();
	HIDE(start);
	Counter c(start, 3);
	KEEPMEM(c);
	truth_stop();

	truth_open();
	truth_run("peek"), truth_int("this", (uint64_t)&c), truth_int("value", (uint64_t)start), INT(k);
	truth_start();
	HIDE(k);
	KEEPMEM(c);
	r = c.peek(k);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("limit"), truth_int("v", (uint64_t)k), truth_int("most", 500);
	truth_start();
	HIDE(k);
	r = Counter::limit(k, 500);
	KEEP(r);
	truth_stop();

	unsigned n = (unsigned)times % 4;
	truth_open();
	truth_run("drain"), INT(n);
	truth_start();
	HIDE(n);
	n = Counter::drain(n);
	KEEP(n);
	truth_stop();
}

static void shapes()
{
	long side = truth_random(), unit = truth_random(), r;
	Square square(side);
	Shape *any = &square;

	truth_open();
	truth_run("area"), INT(side), truth_int("sides", 4), INT(unit);
	truth_start();
	HIDE(any), HIDE(unit);
	r = any->area(unit);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("area"), INT(side), truth_int("sides", 4), INT(unit);
	truth_start();
	HIDE(side), HIDE(unit);
	r = Square(side).area(unit);
	KEEP(r);
	truth_stop();
}

static void others()
{
	long id = truth_random(), k = truth_random(), r;
	Colour c = k & 1 ? Colour::red : Colour::green;
	bool on = k & 2;
	char16_t glyph = (char16_t)truth_random();
	Point p = {truth_random(), truth_random()};
	int v = (int)truth_random(), n = (int)truth_random(), q;

	truth_open();
	truth_run("use_handle"), INT(id), INT(k);
	truth_start();
	HIDE(id), HIDE(k);
	r = use_handle(Handle(id), k);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("use_handle_in"), INT(id), INT(k);
	truth_start();
	HIDE(id), HIDE(k);
	r = use_handle_in(Handle(id), k);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("paint"), INT(c), INT(on), INT(glyph);
	truth_start();
	HIDE(c), HIDE(on), HIDE(glyph);
	r = paint(c, on, glyph);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("paint_out"), INT(c), INT(on), INT(glyph);
	truth_start();
	HIDE(c), HIDE(on), HIDE(glyph);
	r = paint_out(c, on, glyph);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("nested"), truth_int("x", (uint64_t)k), truth_int("y", (uint64_t)p.y);
	truth_start();
	HIDE(k), HIDE(p.x), HIDE(p.y);
	r = deep::inside::nested(k, p);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("twin"), INT(v);
	truth_start();
	HIDE(v);
	r = twin(v);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("twin"), truth_int("v", (uint64_t)(short)v);
	truth_start();
	HIDE(v);
	r = twin((short)v);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("catcher"), INT(n);
	truth_run("thrower"), INT(n);
	truth_start();
	HIDE(n);
	q = catcher(n);
	KEEP(q);
	truth_stop();
}

void classes()
{
	for (int i = 0; i < ROUNDS; i++) {
		counters();
		shapes();
		others();
	}
}
