/* SPDX-License-Identifier: MIT */
/*
 * Types and inline functions shared by the units of the toy kernel. The toy
 * has a packet queue (queue.c) and a page cache (page.c). Nothing in it runs:
 * it is compiled so that its DWARF has the shapes that a kernel's DWARF has.
 */
#ifndef TOY_H
#define TOY_H

typedef signed char s8;
typedef unsigned char u8;
typedef short s16;
typedef unsigned short u16;
typedef int s32;
typedef unsigned int u32;
typedef long long s64;
typedef unsigned long long u64;
typedef _Bool bool;
#include "cpu.h"
#define __always_inline inline __attribute__((__always_inline__))
#define noinline __attribute__((__noinline__))
#define __used __attribute__((__used__))
#define __section(s) __attribute__((__section__(s)))
#define __init __section(".init.text") noinline
#define __exit __section(".exit.text") noinline
#define noinstr __section(".noinstr.text") noinline
#define __entry __section(".entry.text") noinline
#define __kprobes __section(".kprobes.text") noinline
#define __cold __attribute__((__cold__))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* Keeps a value alive without saying where. */
#define use(x) asm volatile("" : : "r"(x) : "memory")
/* A marker without machine code. */
#define mark() asm volatile("" : : : "memory")

/* As the kernel does it: the address of a function that no probe may touch. */
#define NOKPROBE_SYMBOL(f) \
	static unsigned long __used __section("_kprobe_blacklist") \
		kbl_addr_##f = (unsigned long)f

enum pkt_prio { PRIO_LOW = -1, PRIO_NORMAL, PRIO_URGENT };
enum page_zone { ZONE_LOW, ZONE_NORMAL, ZONE_FAR = 200 };

struct link {
	struct link *next, *prev;
};

struct ref {
	int count;
};

/* Two registers' worth, passed by value. */
struct span {
	u64 start;
	u64 len;
};

/* Too large for registers, passed by value on the stack. */
struct window {
	u64 base;
	u64 limit;
	u32 scale;
};

struct pkt_flags {
	u32 kind : 3;
	u32 urgent : 1;
	s32 delta : 5;
	u32 hops : 12;
	u64 stamp : 40;
};

struct opaque; /* never defined */

struct pkt {
	struct link link;
	struct ref ref;
	union {
		struct {
			u16 src;
			u16 dst;
		};
		u32 pair;
	};
	struct pkt_flags flags;
	enum pkt_prio prio;
	char tag[16];
	const char *label;
	u8 *payload;
	u32 len;
	s16 hop_cost[4];
	bool traced;
	int (*deliver)(struct pkt *pkt, int budget);
	struct opaque *owner;
};

struct ring {
	struct pkt *slot[8];
	u32 head;
	u32 tail;
	struct {
		u64 in;
		u64 drop;
	} stats;
	struct ref ref;
	const char *name;
};

struct page {
	u64 index;
	struct ref ref;
	enum page_zone zone;
	struct {
		struct page *left;
		struct page *right;
	} tree;
	union {
		void *private;
		u64 cookie;
	};
	s8 age;
	bool dirty;
	u8 map[2][4];
};

/* opaque.c: the compiler cannot see into these. */
u64 opaque_use(u64 value);
u64 opaque_ptr(const void *p);
u64 opaque_pure(u64 value) __attribute__((__const__));
u32 port_read(u32 port);
void toy_panic(const char *why, u64 value) __cold __attribute__((__noreturn__));

int toy_log(const char *fmt, ...);
long my_func_one_abcd(long arg1);
long my_func_two_abcd(struct pkt *pkt, long arg1);
int my_func_three_abcd(const char *label, u8 kind, s32 arg1);

extern u64 toy_ticks;
extern struct ring ring_zero;

/*
 * Inline functions without machine code. What remains of a call is an inlined
 * instance with an empty address range, whose parameters say where the caller
 * had the values.
 */
static __always_inline void note_value(u64 value)
{
	(void)value;
	mark();
}

static __always_inline void note_narrow(s8 tiny, s16 small, s32 plain)
{
	(void)tiny;
	(void)small;
	(void)plain;
	mark();
}

static __always_inline void note_kind(bool traced, enum pkt_prio prio, enum page_zone zone)
{
	(void)traced;
	(void)prio;
	(void)zone;
	mark();
}

static __always_inline void note_text(const char *text, u32 len)
{
	(void)text;
	(void)len;
	mark();
}

static __always_inline void note_span(struct span where)
{
	(void)where;
	mark();
}

/* The same inline function from one header, inlined into two units. */
static inline void ref_get(struct ref *ref, int by)
{
	atomic_add(ref->count, by);
}

static inline bool ref_put(struct ref *ref)
{
	bool zero;

	atomic_dec_and_test(ref->count, zero);
	return zero;
}

#endif
