// SPDX-License-Identifier: MIT
//
// A program that passes known values through known functions, once each, for tests
// that probe it while it runs. It needs no library: it waits for a byte on standard
// input, makes the calls, and exits with status 0.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long u64;
typedef u16 port_t;

#define NOINLINE __attribute__((noinline))
#define KEEP(x) __asm__ volatile("" : : "r"(x) : "memory")

enum color { RED = 1, GREEN, BLUE };
enum level { LOW = -2, HIGH = 7 };

struct opaque;

struct inner {
	short s;
	u8 uc;
	int arr[4];
	port_t port;
};

struct node {
	struct node *next;
	const char *name;
	char tag[8];
	u32 flags : 3, mode : 5, wide : 24;
	int sb : 4, sc : 12;
	u64 big : 40, rest : 24;
	struct inner in;
	struct inner *inp;
	union {
		long l;
		struct {
			int lo, hi;
		};
	};
	enum color color;
	enum level level;
	_Bool ok;
	signed char sc8;
	u32 matrix[2][3];
	const char *names[3];
	void *any;
	struct opaque *o;
	long (*fn)(long);
	u8 bytes[5];
	volatile const u16 *cvp;
};

struct pair {
	long a, b;
};

struct small {
	int a;
	short b;
	u8 c;
};

struct large {
	u64 v[6];
	char text[16];
};

static const u16 shorts[] = { 100, 200, 300, 400 };
static struct inner inners[3];
struct node root, leaf;
static long counter = -5;
u32 total = 0xfeedbeef;
volatile long seed = 40;

NOINLINE long twice(long v)
{
	KEEP(v);
	return 2 * v;
}

NOINLINE long scalars(signed char c, u8 uc, short s, u16 us, int i, u32 u)
{
	KEEP(c); KEEP(uc); KEEP(s); KEEP(us); KEEP(i); KEEP(u);
	return c + uc + s + us + i + u;
}

NOINLINE long words(long l, u64 ul, _Bool t, enum color e, enum level lv, const char *text)
{
	KEEP(l); KEEP(ul); KEEP(t); KEEP(e); KEEP(lv); KEEP(text);
	return l;
}

NOINLINE long many(long a, int b, u8 c, short d, u64 e, char f, long g, int h, struct pair i, u8 j)
{
	KEEP(a); KEEP(b); KEEP(c); KEEP(d); KEEP(e); KEEP(f); KEEP(g); KEEP(h); KEEP(i.a); KEEP(j);
	return a + i.b;
}

NOINLINE long walk(struct node *n, int i, struct node **list)
{
	KEEP(n); KEEP(i); KEEP(list);
	return n->l + i;
}

NOINLINE long take_pair(struct pair p, int x)
{
	KEEP(p.a); KEEP(p.b); KEEP(x);
	return p.a + x;
}

NOINLINE long take_small(struct small s, struct large big)
{
	KEEP(s.a); KEEP(&big);
	return s.a + big.v[1];
}

NOINLINE int negative(int v)
{
	KEEP(v);
	return -v;
}

NOINLINE u8 narrow(long v)
{
	KEEP(v);
	return v;
}

NOINLINE const char *label(int v)
{
	KEEP(v);
	return v ? "yes" : "no";
}

NOINLINE struct node *follow(struct node *n)
{
	KEEP(n);
	return n->next;
}

NOINLINE void nothing(long v)
{
	KEEP(v);
}

// Inlined twice, with different values.
static inline __attribute__((always_inline)) long mix(long key, struct inner *p, u32 k)
{
	long sum = key + k;

	KEEP(sum);
	sum += p->s;
	KEEP(sum);
	return sum;
}

static inline __attribute__((always_inline)) long add(struct pair lhs, struct pair rhs)
{
	long r = lhs.a + rhs.b;

	KEEP(r);
	return r;
}

NOINLINE long first(long v)
{
	long r = mix(v + 1, &inners[1], 7);

	KEEP(r);
	return r;
}

NOINLINE long second(long v, struct pair p)
{
	struct pair q = { v, 3 };
	long r = mix(v * 2, &inners[2], v + 9);

	KEEP(r);
	r += add(p, q);
	return r;
}

NOINLINE long lines(long n)
{
	long sum = 0;

	KEEP(n);
	sum = n + 2;
	KEEP(sum);
	if (n > 3) {
		long odd = sum * 3;

		KEEP(odd);
		sum += odd;
	}
	KEEP(sum);
	return sum;
}

static void fill(void)
{
	struct node *n = &root;

	for (int i = 0; i < 3; i++) {
		inners[i].s = -10 - i;
		inners[i].port = 8000 + i;
	}
	n->next = &leaf;
	n->name = "root-node";
	__builtin_memcpy(n->tag, "tagged!", 8);
	n->flags = 5; n->mode = 17; n->wide = 0xabcdef;
	n->sb = -3; n->sc = -1000;
	n->big = 0x123456789aull; n->rest = 0xbcdef0;
	n->in.s = -300; n->in.uc = 250; n->in.port = 443;
	for (int i = 0; i < 4; i++)
		n->in.arr[i] = i * 11 - 20;
	n->inp = &inners[1];
	n->lo = 0x11111111; n->hi = -2;
	n->color = BLUE; n->level = LOW; n->ok = 1; n->sc8 = -7;
	for (int i = 0; i < 6; i++)
		n->matrix[i / 3][i % 3] = 1000 + i;
	n->names[0] = "zero"; n->names[1] = "one"; n->names[2] = "a string that is longer than the others, so that it is cut";
	n->any = &counter;
	n->fn = twice;
	for (int i = 0; i < 5; i++)
		n->bytes[i] = 0xa0 + i;
	n->cvp = &shorts[2];
	leaf.name = "leaf";
	leaf.l = 77;
	leaf.inp = 0;
	__builtin_memcpy(leaf.tag, "12345678", 8);
}

static void calls(void)
{
	long s = seed;
	struct node *list[2] = { &root, &leaf };
	struct pair p = { s + 1, -s };
	struct small sm = { -s, 513, 9 };
	struct large big = { { s, s + 1, s + 2, s + 3, s + 4, s + 5 }, "large by value" };

	scalars(-s, s + 200, -s * 100, s * 1000, -s * 100000, 0xf0000000u + s);
	words(-s * 1000000007l, 0xfedcba9876543210ul + s, s > 3, s > 3 ? GREEN : RED, s > 3 ? LOW : HIGH, "hello");
	many(s, -s, s + 1, -s - 1, s + 2, 'x', s + 3, -s - 3, p, 255);
	walk(&root, s / 20, list);
	take_pair(p, s);
	take_small(sm, big);
	negative(s);
	narrow(s + 256 * 3);
	label(s);
	follow(&root);
	nothing(s);
	first(s);
	second(s, p);
	lines(s);
	twice(s);
	counter += total;
}

static long syscall3(long n, long a, long b, long c)
{
	long r;

	__asm__ volatile("syscall" : "=a"(r) : "a"(n), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
	return r;
}

void *memcpy(void *to, const void *from, u64 n)
{
	for (u64 i = 0; i < n; i++)
		((volatile char *)to)[i] = ((const char *)from)[i];
	return to;
}

void *memset(void *to, int c, u64 n)
{
	for (u64 i = 0; i < n; i++)
		((volatile char *)to)[i] = c;
	return to;
}

void start(void)
{
	char go;

	fill();
	syscall3(1, 1, (long)"\n", 1); // ready
	syscall3(0, 0, (long)&go, 1);
	calls();
	syscall3(60, 0, 0, 0);
	__builtin_unreachable();
}

__asm__(".globl _start\n_start:\n\txor %ebp, %ebp\n\tand $-16, %rsp\n\tcall start\n");

// Another symbol of the same code, as libraries have them.
long doubled(long v) __attribute__((alias("twice")));
