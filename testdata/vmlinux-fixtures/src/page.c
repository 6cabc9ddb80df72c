/* SPDX-License-Identifier: MIT */
/*
 * Build: make -C testdata/vmlinux-fixtures (see Makefile: this unit is compiled
 * with the flags of its image), for example
 *   gcc-12 -O2 -g -gdwarf-5 $(KERNEL_CFLAGS) -c page.c
 *
 * A toy page cache. README.md says which function shows which property.
 */
#include "toy.h"

static struct page *page_root;
u64 page_pins;

static __always_inline void page_pin(struct page *page, int count)
{
	ref_get(&page->ref, count);
	page_pins += (u64)count;
}

static __always_inline bool page_unpin(struct page *page)
{
	page_pins--;
	return ref_put(&page->ref);
}

/* The name of a function in queue.c, with other parameters. */
static noinline int slot_reset(struct page *page, s8 age, const char *why)
{
	page->age = age;
	page->dirty = 0;
	return (int)opaque_ptr(why);
}

/* Recursion, and an inlined call inside it. */
int noinline tree_depth(struct page *page, int depth)
{
	int left, right;

	if (!page)
		return depth;
	page_pin(page, depth);
	left = tree_depth(page->tree.left, depth + 1);
	right = tree_depth(page->tree.right, depth + 1);
	page_unpin(page);
	return left > right ? left : right;
}

/* Locals named as static variables of queue.c and of this unit. */
u64 noinline page_reclaim(struct page *page, u64 want)
{
	int budget = (int)opaque_use(want);
	u64 ring_drops = 0;

	page_pin(page, 1);
	while (budget-- > 0) {
		struct page *page_root = page->tree.left;

		ring_drops += opaque_ptr(page_root);
		note_value(ring_drops);
	}
	page_pin(page_root, 2);
	slot_reset(page, -5, "reclaim");
	slot_reset(page_root, (s8)want, "root");
	return ring_drops + page->map[1][2];
}

/* Across units: the same inline functions and my_func_* as in queue.c. */
long noinline page_account(struct page *page, struct pkt *pkt, s32 small)
{
	ref_get(&page->ref, 1);
	ref_get(&pkt->ref, small);
	ref_get(&ring_zero.ref, 3);
	toy_ticks += (u64)my_func_one_abcd(9);
	if (ref_put(&page->ref))
		return my_func_one_abcd(small);
	return my_func_two_abcd(pkt, small) + my_func_three_abcd(pkt->label, 3, small);
}

/* An inlined instance of two ranges: its unlikely half is moved away. */
static __always_inline u64 page_lookup(struct page *page, u64 index)
{
	if (unlikely(page->index != index)) {
		toy_log("%", 3, index);
		page->dirty = 1;
		index = opaque_use(index);
	}
	return page->cookie + index;
}

u64 noinline page_fault(struct page *page, u64 index, u32 flags)
{
	u64 v = page_lookup(page, index);

	if (flags & 4)
		v += page_lookup(page->tree.right, index + 1);
	return v + opaque_use(flags);
}

/* Sections in which a probe is refused. */

int __init page_cache_init(struct page *root, u32 order)
{
	page_root = root;
	page_pin(root, (int)order);
	return tree_depth(root, 0);
}

void __exit page_cache_exit(int code)
{
	page_pin(page_root, code);
	page_root = 0;
}

u64 noinstr page_enter(struct page *page, u64 error)
{
	page_pin(page, 1);
	return page->index + error;
}

u64 __entry page_gate(struct page *page, u64 frame)
{
	page_pin(page, 1);
	return page->index - frame;
}

u64 __kprobes page_trap(struct page *page, u64 vector)
{
	page_pin(page, 1);
	return page->index ^ vector;
}

u64 noinline page_forbidden(struct page *page, u64 why)
{
	page_pin(page, 1);
	return page->cookie + why;
}
NOKPROBE_SYMBOL(page_forbidden);
