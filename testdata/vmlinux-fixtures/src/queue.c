/* SPDX-License-Identifier: MIT */
/*
 * Build: make -C testdata/vmlinux-fixtures (see Makefile: this unit is compiled
 * with the flags of its image), for example
 *   gcc-12 -O2 -g -gdwarf-5 $(KERNEL_CFLAGS) -c queue.c
 *
 * A toy packet queue. README.md says which function shows which property.
 */
#include "toy.h"

struct ring ring_zero = { .name = "zero" };
static u64 ring_drops;
static int budget = 64; /* page.c has locals of this name */

/* my_func_*_abcd: out of line and inlined, arg1 in various places. */

inline __attribute__((always_inline)) long my_func_one_abcd(long arg1)
{
	toy_ticks += (u64)arg1;
	mark();
	return arg1 + 1;
}

inline __attribute__((always_inline)) long my_func_two_abcd(struct pkt *pkt, long arg1)
{
	pkt->len += (u32)arg1;
	mark();
	return pkt->len;
}

inline __attribute__((always_inline)) int my_func_three_abcd(const char *label, u8 kind, s32 arg1)
{
	use(label);
	mark();
	return arg1 > kind;
}

/* The name fits only the first half of the pattern. */
long noinline my_func_four_abce(long arg1)
{
	return (long)opaque_use((u64)arg1);
}

long noinline call_my_funcs(struct pkt *pkt, long arg, s32 narrow, u64 d, u64 e, u64 f, long on_stack)
{
	long sum = my_func_one_abcd(arg);

	sum += my_func_one_abcd(7);
	sum += my_func_one_abcd(on_stack);
	sum += my_func_two_abcd(pkt, arg * 24);
	sum += my_func_two_abcd(pkt, 3);
	sum += my_func_three_abcd(pkt->label, 1, narrow);
	sum += my_func_three_abcd("fixed", 2, (s32)(d + e + f));
	(void)my_func_three_abcd("unused", 3, (s32)opaque_pure(d));
	return sum;
}

/* Inlined three levels deep: ring_push > ring_reserve > ring_slot > ring_mask. */

static __always_inline u32 ring_mask(u32 index)
{
	return index & 7;
}

static __always_inline struct pkt **ring_slot(struct ring *ring, u32 index)
{
	return &ring->slot[ring_mask(index)];
}

static __always_inline struct pkt **ring_reserve(struct ring *ring, u32 want)
{
	if (unlikely(ring->tail - ring->head + want > 8))
		return 0;
	return ring_slot(ring, ring->tail);
}

static __always_inline bool ring_push(struct ring *ring, struct pkt *pkt)
{
	struct pkt **slot = ring_reserve(ring, 1);

	if (!slot) {
		ring->stats.drop++;
		ring_drops++;
		return 0;
	}
	*slot = pkt;
	ring->tail++;
	return 1;
}

/* Registers, constants, an address in the image, a register plus offset. */

static __always_inline void pkt_hold(struct pkt *pkt, int count)
{
	ref_get(&pkt->ref, count);
	mark();
}

bool noinline queue_send(struct ring *ring, struct pkt *pkt, int count)
{
	pkt_hold(pkt, count);
	pkt_hold(pkt, 4);
	ref_get(&ring_zero.ref, 1);
	ref_get(&ring->ref, 2);
	note_value(toy_ticks);
	return ring_push(ring, pkt);
}

/* Optimized out: the argument of the inlined call is computed nowhere. */
static __always_inline void pkt_audit(struct pkt *pkt, u64 digest, u32 level)
{
	(void)digest;
	pkt->hop_cost[1] = (s16)level;
	mark();
}

void noinline queue_audit(struct pkt *pkt, u32 level)
{
	u64 digest = opaque_pure(level);

	pkt_audit(pkt, digest, level);
}

/*
 * A later view only: the seed that is passed is computed nowhere, and then the
 * parameter is assigned at the same machine address.
 */
static __always_inline void seed_renew(u64 seed, u64 grace)
{
	seed = grace + 5;
	mark();
	(void)seed;
}

u64 noinline queue_renew(u64 token, u64 grace)
{
	u64 seed = opaque_pure(token);

	seed_renew(seed, grace);
	return token;
}

/* Entry value only: token is in no register any more when queue_expire calls note_value. */
u64 noinline queue_expire(struct pkt *pkt, u64 token, u32 grace)
{
	u64 left = opaque_ptr(pkt);

	note_value(token);
	note_value(grace);
	mark();
	left += opaque_use(left);
	note_value(token + 1);
	return left;
}

/* On the stack: the 7th and later arguments, and a structure passed by value. */

static __always_inline u64 window_clip(struct window win, u64 at)
{
	mark();
	return at > win.limit ? win.limit : at;
}

static __always_inline u64 slot_cost(u64 seventh, s16 eighth)
{
	mark();
	return seventh + (u64)eighth;
}

u64 noinline queue_route(u64 a, u64 b, u64 c, u64 d, u64 e, u64 f, u64 g, s16 h, char i, struct window win)
{
	u64 cost = slot_cost(g, h);

	note_value((u64)i);
	cost += window_clip(win, a);
	return cost + b * c + d * e + f;
}

/* On the stack because there are not enough registers, and because the address is taken. */
static __always_inline void scratch_note(u64 *slot, u64 spilled)
{
	(void)spilled;
	mark();
	opaque_ptr(slot);
}

u64 noinline queue_spill(u64 a, u64 b, u64 c, u64 d, u64 e, u64 f)
{
	u64 scratch = a + 1;
	u64 t0 = opaque_use(a), t1 = opaque_use(b), t2 = opaque_use(c);
	u64 t3 = opaque_use(d), t4 = opaque_use(e), t5 = opaque_use(f);

	scratch_note(&scratch, t0);
	scratch_note(&scratch, t5);
	note_value(scratch);
	return (t0 ^ a) + (t1 ^ b) + (t2 ^ c) + (t3 ^ d) + (t4 ^ e) + (t5 ^ f) + scratch;
}

/* Pieces: a structure by value in two registers. */
static __always_inline u64 span_end(struct span where)
{
	mark();
	return where.start + where.len;
}

u64 noinline queue_span(struct span where, u32 shift)
{
	struct span half = { where.start, where.len >> 1 };

	note_span(where);
	note_span(half);
	return (span_end(where) + span_end(half)) << shift;
}

/* An implicit pointer: the cursor lives in registers, its address is passed on. */
struct cursor {
	u64 at;
	u64 end;
	struct pkt *pkt;
};

static __always_inline u64 cursor_step(struct cursor *cur, u64 by)
{
	cur->at += by;
	mark();
	return cur->end - cur->at;
}

u64 noinline queue_walk(struct pkt *pkt, u64 start, u64 len)
{
	struct cursor cur = { start, start + len, pkt };
	u64 left = cursor_step(&cur, 2);

	left += cursor_step(&cur, pkt->len);
	return left;
}

/*
 * Arithmetic: values that exist only as an expression over registers. Several
 * of these instances share one machine address and differ by view.
 */
void noinline queue_figures(u64 a, u64 b, s32 c, u32 d, u8 e, s8 f)
{
	mark();
	note_value(a * 24);
	note_value(a << 3);
	note_value(b >> 5);
	note_value((u64)((s64)b >> 7));
	note_value(a & 0xff);
	note_value(a | b);
	note_value(a ^ b);
	note_value(a - b);
	note_value(~a);
	note_value(-a);
	note_value(a / (b | 1));
	note_value(a % (b | 1));
	note_value((u64)((s64)a / 10));
	note_value(a < b);
	note_value((s64)a >= (s64)b);
	note_value(a == b);
	note_value(a ? b : 5);
	note_value((u64)c);
	note_value((u64)(s64)f * d);
	note_value((u64)(d * 3u));
	note_value((u64)(e + 1));
	note_value((u64)(c > (s32)d));
	note_narrow((s8)a, (s16)b, c);
	note_narrow((s8)(c + 1), (s16)(a >> 16), (s32)(a * b));
	note_narrow(f, -2, -3);
	mark();
	use(a);
	use(b);
	use(c);
	use(d);
	use((u64)e);
	use((u64)f);
}

/* Narrow parameters, bool, enum, bit-fields, members, strings. */

s32 noinline prio_blend(s8 nice, s16 bias, s32 delta, bool traced, enum pkt_prio prio, enum page_zone zone)
{
	note_narrow(nice, bias, delta);
	note_kind(traced, prio, zone);
	mark();
	return nice + bias + delta + traced + prio + (s32)zone;
}

static __always_inline u32 flags_fold(struct pkt_flags *flags, u32 kind, s32 delta)
{
	mark();
	flags->hops += kind;
	return flags->kind + (u32)delta;
}

u32 noinline queue_classify(struct pkt *pkt, char *text)
{
	u32 r = flags_fold(&pkt->flags, pkt->flags.kind, pkt->flags.delta);

	note_kind(pkt->traced, pkt->prio, ZONE_FAR);
	note_text(pkt->tag, sizeof(pkt->tag));
	note_text(pkt->label, pkt->len);
	note_text("literal", 7);
	note_text(text, pkt->dst);
	pkt->tag[0] = text[0];
	return r + pkt->pair + (u32)pkt->hop_cost[2];
}

/* A loop whose header is an inlined site: the back edge lands on it. */
static __always_inline u32 port_poll(u32 port)
{
	u32 v;

	port_input(v, port);
	return v;
}

u32 noinline queue_wait(u32 port, u32 mask)
{
	u32 v;

	do {
		v = port_poll(port);
	} while (!(v & mask));
	return v;
}

/* A function pointer and an opaque pointer as parameters. */
int noinline ring_for_each(struct ring *ring, int (*visit)(struct pkt *pkt, void *arg), void *arg, struct opaque *owner)
{
	int sum = 0;
	u32 i;

	use(owner);
	for (i = ring->head; i != ring->tail; i++)
		sum += visit(*ring_slot(ring, i), arg);
	return sum;
}

/* Shadowed locals in nested blocks, and a static inside a function. */
u64 noinline queue_shadow(u64 value, u32 depth)
{
	static u64 calls;
	u64 level = value + 1;

	calls++;
	if (depth) {
		u64 level = opaque_use(value) + 2;

		note_value(level);
		{
			s16 level = (s16)opaque_use(depth);

			note_value((u64)level);
			mark();
			value += (u64)level;
		}
		value += level;
	}
	return value + level;
}

/* A variadic function. */
int toy_log(const char *fmt, ...)
{
	__builtin_va_list ap;
	int sum = 0;

	__builtin_va_start(ap, fmt);
	while (*fmt++ == '%')
		sum += __builtin_va_arg(ap, int);
	__builtin_va_end(ap);
	return sum;
}

/* page.c has another slot_reset. */
static noinline u64 slot_reset(struct ring *ring, u32 index)
{
	return opaque_use(ring->stats.in) + ring->stats.drop + index;
}

/* Clones. ring_fill.isra.0: ring is only read through, the clone gets the two members. */
static noinline u64 ring_fill(struct ring *ring, u32 spare)
{
	return opaque_use(ring->head * 8u + ring->tail + spare);
}

/* pkt_scale.constprop.0: factor is 12 at each call. */
static noinline u64 pkt_scale(struct pkt *pkt, u64 factor, u64 extra)
{
	pkt->len += (u32)(opaque_use(extra) * factor);
	return pkt->len / factor;
}

/* pkt_drain.part.0: the early return is inlined, the rest is not. */
static u64 pkt_drain(struct pkt *pkt, u64 quota)
{
	u64 sum = 0;

	if (likely(!pkt))
		return 0;
	while (quota--) {
		sum += opaque_ptr(pkt->payload + sum);
		sum += opaque_use(quota);
		pkt->len -= (u32)opaque_use(sum);
		toy_log("%", 1, pkt->label, quota);
	}
	return sum;
}

/* queue_check.cold: the unlikely half, with an inlined instance, moves to .text.unlikely. */
static __always_inline void pkt_blame(struct pkt *pkt, u64 limit)
{
	pkt->traced = limit > 3;
	pkt->prio = PRIO_LOW;
}

u64 noinline queue_check(struct pkt *pkt, u64 limit)
{
	if (unlikely(pkt->len > limit)) {
		pkt_blame(pkt, limit + 1);
		toy_panic("packet too long", limit);
	}
	return opaque_use(limit) + pkt->len;
}

u64 noinline queue_clones(struct ring *ring, struct pkt *pkt, u64 n)
{
	u64 sum = slot_reset(ring, (u32)n);

	sum += slot_reset(ring + 1, 3);
	sum += ring_fill(ring, 1) - ring_fill(&ring_zero, (u32)n);
	sum += pkt_scale(pkt, 12, n);
	sum += pkt_scale(pkt, 12, n + 9);
	sum += pkt_drain(pkt, n);
	sum += pkt_drain((struct pkt *)pkt->payload, n + 1);
	sum += pkt_drain((struct pkt *)pkt->label, n + 2);
	sum += (u64)my_func_four_abce((long)sum);
	return sum + (u64)(budget--) + ring_drops;
}
