#include <stdio.h>
#include <stdlib.h>

struct mask { unsigned long bits[4]; };
struct inner { long pad; unsigned long flags; long count; };
struct outer { long a, b; struct inner *in; struct mask m; };

extern struct mask global;
static const struct mask *const masks = &global;
extern struct outer *made;
extern volatile int sink;

#define ALWAYS static inline __attribute__((always_inline))

ALWAYS void set(unsigned long *addr) { __asm__ volatile("btsq $3,%0" : "+m"(*addr) : : "memory"); }
ALWAYS int get(const unsigned long *addr)
{
	int r;
	__asm__ volatile("btq $5,%1; setc %b0" : "=q"(r) : "m"(*addr) : "memory");
	return r & 1;
}
ALWAYS int mask_get(const struct mask *m) { return get(m->bits); }
ALWAYS void up(struct inner *in) { __asm__ volatile("incq %0" : "+m"(in->count) : : "memory"); }
/* GCC loads what is passed to this one in the body, where it is needed: o->in first, and then in->count. */
ALWAYS long level(struct inner *in)
{
	long count = in->count;
	return count * count;
}
/* What is volatile is read as a statement of its own, by this one or by what is inlined into it. */
ALWAYS int test(volatile const unsigned long *addr) { return (*addr & 8) != 0; }
ALWAYS int test_mask(const struct mask *m) { return test(&m->bits[1]); }
extern void hold(struct inner *in, int how);
ALWAYS void take(struct inner *in) { hold(in, 1); }

/* What the next function hands to a function that is inlined. */
extern void truth(const char *what, const volatile void *p);

#define CALLER(i) \
	__attribute__((noinline)) void caller##i(struct outer *o, long n) \
	{ \
		set(&o->m.bits[1]); \
		sink = get(&o->in->flags); \
		sink = mask_get(&o->m); \
		up(o->in); \
		if (n > i) { \
			sink = mask_get(masks); \
			set(&o->in->flags); \
			up(o[i % 4].in); \
			sink = level(o[i % 3].in); \
		} \
		for (long k = 0; k < 2; k++) { \
			set(&o[k].m.bits[0]); \
			sink = get(&made[k].in->flags); \
			take(o[k].in); \
		} \
		struct inner *kept = made[n & 1].in; \
		up(kept); \
		sink = mask_get(&made[1].m); \
		take(kept); \
		long last = level(kept); \
		__asm__ volatile("" : "+r"(last)); \
		sink = last + i; \
	} \
	void said##i(struct outer *o, long n) \
	{ \
		truth("set", &o->m.bits[1]); \
		truth("get", &o->in->flags); \
		truth("mask_get", &o->m); \
		truth("get", o->m.bits); \
		truth("up", o->in); \
		if (n > i) { \
			truth("mask_get", masks); \
			truth("get", masks->bits); \
			truth("set", &o->in->flags); \
			truth("up", o[i % 4].in); \
			truth("level", o[i % 3].in); \
		} \
		for (long k = 0; k < 2; k++) { \
			truth("set", &o[k].m.bits[0]); \
			truth("get", &made[k].in->flags); \
			truth("take", o[k].in); \
		} \
		truth("up", made[n & 1].in); \
		truth("mask_get", &made[1].m); \
		truth("get", made[1].m.bits); \
		truth("take", made[n & 1].in); \
		truth("level", made[n & 1].in); \
	}

#define READER(i) \
	__attribute__((noinline)) void reader##i(struct outer *o, long n) \
	{ \
		sink = test(&o->in->flags); \
		sink = test(&made[n & 1].m.bits[2]) + test(&o[n & 1].in->flags); \
		sink = test_mask(&o[1].m); \
		sink = test_mask(n > 40 ? masks : &o->m); \
	} \
	void saidby##i(struct outer *o, long n) \
	{ \
		truth("test", &o->in->flags); \
		truth("test", &made[n & 1].m.bits[2]); \
		truth("test", &o[n & 1].in->flags); \
		truth("test_mask", &o[1].m); \
		truth("test", &o[1].m.bits[1]); \
		truth("test_mask", n > 40 ? masks : &o->m); \
		truth("test", &(n > 40 ? masks : &o->m)->bits[1]); \
	}

#define HALF(x) x(0) x(1) x(2) x(3) x(4) x(5) x(6) x(7) x(8) x(9) x(10) x(11) x(12) x(13) x(14) x(15) x(16) x(17) x(18) x(19) x(20) x(21) x(22) x(23) x(24) x(25) x(26) x(27)
#define REST(x) x(30) x(31) x(32) x(33) x(34) x(35) x(36) x(37) x(38) x(39) x(40) x(41)
