// Rarer kinds of arguments: classes of the calling convention, other conventions, results,
// types given by the definition, parameters that are changed before they are used.
#include "program.h"

#include <complex.h>

static volatile long sink;

struct floats {
	float x, y;
};

struct both {
	long n;
	float f;
};

union either {
	long n;
	unsigned char bytes[8];
};

struct __attribute__((packed)) packed {
	char tag;
	int n;
	short s;
};

struct text {
	char s[16];
};

struct shorts {
	short v[5];
};

static __thread long of_thread = 4;
static struct node *head;
static long plain_global = 77;

// trace: float_pair f k
NOINLINE static long float_pair(struct floats f, long k)
{
	return (long)(f.x + f.y) + k;
}

// trace: long_float n=b.n k
NOINLINE static long long_float(struct both b, long k)
{
	return b.n * k + (long)b.f;
}

// trace: union_of n=u.n third=u.bytes[2] k
NOINLINE static long union_of(union either u, long k)
{
	return u.n ^ k;
}

// trace: union_in n=u.n third=u.bytes[2] k
static inline long union_in(union either u, long k)
{
	sink = u.bytes[1];
	return u.n + k;
}

// trace: packed_of tag=p.tag n=p.n s=p.s k
NOINLINE static long packed_of(struct packed p, long k)
{
	return p.tag + p.n * k + p.s;
}

// trace: packed_in tag=p.tag n=p.n s=p.s
static inline long packed_in(struct packed p)
{
	sink = p.tag;
	return p.n - p.s;
}

// trace: text_value s=t.s:string third=t.s[2] k
NOINLINE static long text_value(struct text t, long k)
{
	return t.s[0] * k + t.s[5];
}

// trace: text_value_in s=t.s:string third=t.s[2] k
static inline long text_value_in(struct text t, long k)
{
	sink = t.s[1];
	return t.s[0] + k;
}

// trace: shorts_of a=v.v[1] b=v.v[4] k
NOINLINE static long shorts_of(struct shorts v, long k)
{
	return v.v[0] + v.v[4] * k;
}

// Five numbers take five of six registers, so the structure is on the stack and the last
// number in the sixth.
// trace: around a e x=p.x y=p.y f
NOINLINE static long around(long a, long b, long c, long d, long e, struct pair p, long f)
{
	return a + b + c + d + e * p.x - p.y * f;
}

// trace: long_doubles d k
NOINLINE static long long_doubles(long double d, long k)
{
	return (long)d + k;
}

// trace: complex_of c k
NOINLINE static double complex_of(double complex c, long k)
{
	return creal(c) * (double)k;
}

// trace: microsoft a b c
NOINLINE static __attribute__((ms_abi)) long microsoft(long a, int b, long c)
{
	return a * b - c;
}

// Without a prototype.
// trace: old_style c s d
NOINLINE static long old_style(c, s, d)
	char c;
	short s;
	long d;
{
	return c * s + d;
}

// trace: variable n last=a[n] k
NOINLINE static long variable(int n, const long a[n + 1], long k)
{
	return a[n] * k;
}

// trace: picked i v=a[i]
static inline long picked(const long *a, int i)
{
	sink = i;
	return a[i];
}

// trace: typed low=v:u8 middle=v:s16 hex=v:x32 bits=v:b5@3/32
NOINLINE static long typed(long v)
{
	return v * 3 + sink;
}

// trace: typed_in low=v:u8 word=v:s16 k
static inline long typed_in(long v, long k)
{
	sink = k;
	return v - k;
}

// trace: all_of $params
NOINLINE static long all_of(int a, short b, const char *c, long d)
{
	return a + b + c[0] + d;
}

// trace: all_in $params
static inline long all_in(int a, short b, long d)
{
	sink = b;
	return a + d;
}

// trace: more_globals k thread=of_thread value=head->value next=head->next->value at=@plain_global:u64
NOINLINE static long more_globals(long k)
{
	of_thread += k;
	plain_global ^= k;
	return of_thread + head->value + plain_global;
}

// Parameters that are changed at once.
// trace: length s=t:string
static inline long length(const char *t)
{
	long n = 0;

	while (*t++)
		n++;
	sink = n;
	return n;
}

// trace: length_out s=t:string
NOINLINE static long length_out(const char *t)
{
	long n = 0;

	while (*t++)
		n += sink & 1;
	return n;
}

// trace: ordered a b
static inline long ordered(long a, long b)
{
	if (a > b) {
		long t = a;

		a = b;
		b = t;
	}
	sink = a;
	return b;
}

// trace: ordered_out a b
NOINLINE static long ordered_out(long a, long b)
{
	if (a > b) {
		long t = a;

		a = b;
		b = t;
	}
	sink = a;
	return b;
}

// trace: defaulted n value
static inline long defaulted(const struct node *n, long value)
{
	if (!n)
		n = head;
	value *= 2;
	sink = value;
	return n->value + value;
}

// trace: rounded v to
static inline unsigned long rounded(unsigned long v, unsigned long to)
{
	v += to - 1;
	v &= -to;
	return v;
}

// trace: rounded_out v to
NOINLINE static unsigned long rounded_out(unsigned long v, unsigned long to)
{
	v += to - 1;
	v &= -to;
	return v;
}

// trace: twice_used a b
static inline long twice_used(long a, long b)
{
	sink = a;
	return a * b;
}

// trace: decided yes k
static inline long decided(bool yes, int k)
{
	if (yes)
		sink = k;
	return k;
}

// trace: shifted a b c
static inline int shifted(unsigned char a, unsigned short b, int c)
{
	sink = a;
	return b + c;
}

// trace: bytes_of p=x[0] q=x[3] n
NOINLINE static unsigned bytes_of(const unsigned char *x, unsigned n)
{
	unsigned r = 0;

	while (n--)
		r = r * 31 + *x++;
	return r;
}

// trace: retry n
static inline long retry(long n)
{
again:
	sink = n;
	n -= 3;
	if (n > 0)
		goto again;
	return n;
}

// Results.
// trace: small_made%return $retval
NOINLINE static struct small small_made(int a, short b)
{
	struct small s = {a, b, 7, -7};

	return s;
}

// trace: large_made a b
NOINLINE static struct large large_made(long a, int b)
{
	struct large l = {{a, 2, 3}, b, "made"};

	return l;
}

// trace: byte_made%return $retval
NOINLINE static unsigned char byte_made(long a)
{
	return (unsigned char)(a * 3);
}

// trace: text_made%return $retval:string
NOINLINE static const char *text_made(long a)
{
	return a & 1 ? "odd text" : "even text";
}

// trace: last_of%return $retval
NOINLINE static long last_of(long a)
{
	return byte_made(a);
}

#ifndef __clang__
// trace: within v k
// A function in a function uses variables of the outer one.
static NOINLINE long around_within(long k, long v)
{
	NOINLINE long within(long v)
	{
		sink = v;
		return v * k;
	}
	return within(v) + within(k);
}
#endif

static void classes(void)
{
	long k = truth_random(), r;
	struct floats f = {1.5f, 2.5f};
	struct both b = {truth_random(), 3.0f};
	union either u = {truth_random()};
	struct packed p = {(char)truth_random(), (int)truth_random(), (short)truth_random()};
	struct text t = {"fifteen letters"};
	struct shorts v = {{1, (short)truth_random(), 3, 4, (short)truth_random()}};
	struct pair at = {truth_random(), truth_random()};
	long double ld = 12.5L;
	double complex c = 2.0 + 3.0 * I;
	double d;

	t.s[2] = (char)('a' + (k & 7));
	truth_open();
	truth_run("float_pair"), truth_bytes("f", &f, sizeof f), INT(k);
	truth_start();
	HIDE(k);
	r = float_pair(f, k);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("long_float"), truth_int("n", (uint64_t)b.n), INT(k);
	truth_start();
	HIDE(b.n), HIDE(k);
	r = long_float(b, k);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("union_of"), truth_int("n", (uint64_t)u.n), truth_int("third", u.bytes[2]), INT(k);
	truth_start();
	HIDE(u.n), HIDE(k);
	r = union_of(u, k);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("union_in"), truth_int("n", (uint64_t)u.n), truth_int("third", u.bytes[2]), INT(k);
	truth_start();
	HIDE(u.n), HIDE(k);
	r = union_in(u, k);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("packed_of"), truth_int("tag", (uint64_t)p.tag), truth_int("n", (uint64_t)p.n), truth_int("s", (uint64_t)p.s), INT(k);
	truth_start();
	KEEPMEM(p);
	HIDE(k);
	r = packed_of(p, k);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("packed_in"), truth_int("tag", (uint64_t)p.tag), truth_int("n", (uint64_t)p.n), truth_int("s", (uint64_t)p.s);
	truth_start();
	KEEPMEM(p);
	r = packed_in(p);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("text_value"), truth_str("s", t.s), truth_int("third", (uint64_t)t.s[2]), INT(k);
	truth_start();
	KEEPMEM(t);
	HIDE(k);
	r = text_value(t, k);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("text_value_in"), truth_str("s", t.s), truth_int("third", (uint64_t)t.s[2]), INT(k);
	truth_start();
	HIDE(k);
	r = text_value_in(t, k);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("shorts_of"), truth_int("a", (uint64_t)v.v[1]), truth_int("b", (uint64_t)v.v[4]), INT(k);
	truth_start();
	KEEPMEM(v);
	HIDE(k);
	r = shorts_of(v, k);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("around"), truth_int("a", (uint64_t)k), truth_int("e", 5), truth_int("x", (uint64_t)at.x), truth_int("y", (uint64_t)at.y), truth_int("f", (uint64_t)b.n);
	truth_start();
	HIDE(k), HIDE(at.x), HIDE(b.n);
	r = around(k, 2, 3, 4, 5, at, b.n);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("long_doubles"), truth_bytes("d", &ld, 10), INT(k);
	truth_start();
	HIDE(k);
	r = long_doubles(ld, k);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("complex_of"), truth_bytes("c", &c, sizeof c), INT(k);
	truth_start();
	HIDE(k);
	d = complex_of(c, k);
	KEEPMEM(d);
	truth_stop();
}

static void conventions(void)
{
	long a = truth_random(), d = truth_random(), items[5] = {a, d, truth_random(), 4, truth_random()}, r;
	const long *at = items;
	int b = (int)truth_random(), n = 1 + (b & 3);
	char c = (char)truth_random();
	short s = (short)truth_random();

	truth_open();
	truth_run("microsoft"), INT(a), INT(b), truth_int("c", (uint64_t)d);
	truth_start();
	HIDE(a), HIDE(b), HIDE(d);
	r = microsoft(a, b, d);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("old_style"), INT(c), INT(s), INT(d);
	truth_start();
	HIDE(c), HIDE(s), HIDE(d);
	r = old_style(c, s, d);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("variable"), INT(n), truth_int("last", (uint64_t)items[n]), truth_int("k", (uint64_t)a);
	truth_start();
	HIDE(n), HIDE(a);
	r = variable(n, items, a);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("picked"), truth_int("i", (uint64_t)n), truth_int("v", (uint64_t)items[n]);
	truth_start();
	HIDE(n), HIDE(at);
	r = picked(at, n);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("typed"), truth_int("low", (uint8_t)a), truth_int("middle", (uint64_t)(int16_t)a), truth_int("hex", (uint32_t)a), truth_int("bits", (uint32_t)a >> 3 & 31);
	truth_start();
	HIDE(a);
	r = typed(a);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("typed_in"), truth_int("low", (uint8_t)a), truth_int("word", (uint64_t)(int16_t)a), truth_int("k", (uint64_t)d);
	truth_start();
	HIDE(a), HIDE(d);
	r = typed_in(a, d);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("all_of"), truth_int("a", (uint64_t)b), truth_int("b", (uint64_t)s), truth_int("d", (uint64_t)d);
	truth_start();
	HIDE(b), HIDE(s), HIDE(d);
	r = all_of(b, s, "text", d);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("all_in"), truth_int("a", (uint64_t)b), truth_int("b", (uint64_t)s), truth_int("d", 8);
	truth_start();
	HIDE(b), HIDE(s);
	r = all_in(b, s, 8);
	KEEP(r);
	truth_stop();
#ifndef __clang__
	truth_open();
	truth_run("within"), truth_int("v", (uint64_t)d), truth_int("k", (uint64_t)a);
	truth_run("within"), truth_int("v", (uint64_t)a), truth_int("k", (uint64_t)a);
	truth_start();
	HIDE(a), HIDE(d);
	r = around_within(a, d);
	KEEP(r);
	truth_stop();
#endif
}

static void changes(void)
{
	long a = truth_random(), b = truth_random(), r;
	unsigned long v = (unsigned long)truth_random(), to = 64;
	const char *words[] = {"one", "fifteen", "a longer text of this"}, *t = words[(unsigned long)a % 3];
	struct node second = {NULL, truth_random(), "", {0, 0}}, first = {&second, truth_random(), "", {0, 0}};
	unsigned n = 4 + ((unsigned)a & 1), q;
	unsigned char x[6] = {(unsigned char)a, 2, 3, (unsigned char)b, 5, 6}, *at = x;
	int i;

	head = &first;
	truth_open();
	truth_run("more_globals"), truth_int("k", (uint64_t)a), truth_int("thread", (uint64_t)of_thread), truth_int("value", (uint64_t)first.value), truth_int("next", (uint64_t)second.value), truth_int("at", (uint64_t)plain_global);
	truth_start();
	KEEPMEM(first);
	HIDE(a);
	r = more_globals(a);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("length"), truth_str("s", t);
	truth_start();
	HIDE(t);
	r = length(t);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("length_out"), truth_str("s", t);
	truth_start();
	HIDE(t);
	r = length_out(t);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("ordered"), INT(a), INT(b);
	truth_start();
	HIDE(a), HIDE(b);
	r = ordered(a, b);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("ordered_out"), INT(a), INT(b);
	truth_start();
	HIDE(a), HIDE(b);
	r = ordered_out(a, b);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("defaulted"), truth_int("n", 0), truth_int("value", (uint64_t)b);
	truth_start();
	HIDE(b);
	r = defaulted(NULL, b);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("rounded"), INT(v), INT(to);
	truth_start();
	HIDE(v);
	v = rounded(v, 64);
	KEEP(v);
	truth_stop();

	truth_open();
	truth_run("rounded_out"), INT(v), INT(to);
	truth_start();
	HIDE(v), HIDE(to);
	v = rounded_out(v, to);
	KEEP(v);
	truth_stop();

	truth_open();
	truth_run("twice_used"), truth_int("a", (uint64_t)a + 1), truth_int("b", (uint64_t)a + 1);
	truth_start();
	HIDE(a);
	r = twice_used(a + 1, a + 1);
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("decided"), truth_int("yes", a > 3), truth_int("k", (uint64_t)(int)(b >> 32));
	truth_start();
	HIDE(a), HIDE(b);
	r = decided(a > 3, (int)(b >> 32));
	KEEP(r);
	truth_stop();

	truth_open();
	truth_run("shifted"), truth_int("a", (unsigned char)(a >> 8)), truth_int("b", (unsigned short)(b >> 4)), truth_int("c", (uint64_t)(int)(a & 0xffff));
	truth_start();
	HIDE(a), HIDE(b);
	i = shifted((unsigned char)(a >> 8), (unsigned short)(b >> 4), (int)(a & 0xffff));
	KEEP(i);
	truth_stop();

	truth_open();
	truth_run("bytes_of"), truth_int("p", x[0]), truth_int("q", x[3]), INT(n);
	truth_start();
	KEEPMEM(x);
	HIDE(at), HIDE(n);
	q = bytes_of(at, n);
	KEEP(q);
	truth_stop();

	a = n;
	truth_open();
	truth_run("retry"), truth_int("n", (uint64_t)a);
	truth_start();
	HIDE(a);
	r = retry(a);
	KEEP(r);
	truth_stop();
}

static void results(void)
{
	long a = truth_random(), r;
	int b = (int)truth_random();
	short s = (short)a;
	struct small made;
	struct large large;
	unsigned char byte;
	const char *t;

	truth_open();
	truth_start();
	HIDE(b), HIDE(s);
	made = small_made(b, s);
	KEEPMEM(made);
	truth_stop();
	truth_run("small_made%return"), truth_bytes("retval", &made, sizeof made);

	truth_open();
	truth_run("large_made"), INT(a), INT(b);
	truth_start();
	HIDE(a), HIDE(b);
	large = large_made(a, b);
	KEEPMEM(large);
	truth_stop();

	truth_open();
	truth_start();
	HIDE(a);
	byte = byte_made(a);
	KEEP(byte);
	truth_stop();
	truth_run("byte_made%return"), truth_int("retval", byte);

	truth_open();
	truth_start();
	HIDE(a);
	t = text_made(a);
	KEEP(t);
	truth_stop();
	truth_run("text_made%return"), truth_str("retval", t);

	truth_open();
	truth_start();
	HIDE(a);
	r = last_of(a);
	KEEP(r);
	truth_stop();
	truth_run("last_of%return"), truth_int("retval", (uint64_t)r);
	truth_run("byte_made%return"), truth_int("retval", (uint64_t)r);
}

void kinds(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		classes();
		conventions();
		changes();
		results();
	}
}
