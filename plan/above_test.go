package plan_test

import "testing"

// TestAbove: LLVM has a number's lowest bits in a register, and above them what is no part of it. Of a member of 16 bits it loads 32, if the body shifts the others out; of a
// truth value it sets the lowest byte, and above that is what the function was called with. A member, or a sum of bytes, that has 32 bits is what was passed.
func TestAbove(t *testing.T) {
	const source = `
#define NOINLINE __attribute__((noinline))
#define INLINE static inline __attribute__((always_inline))
struct slim { int k; short at; unsigned char of; };
struct node { int k; union { long v; int info; struct { short at; unsigned char of; } in; } u; int next; };
struct bytes { int k; unsigned char b[4]; };
struct hash { unsigned state[8]; int first; };
volatile unsigned sink;
NOINLINE int number(int *p) { return sink += *p; }
NOINLINE void add(struct hash *h, int n) { sink += h->state[n & 7] + h->first; }
INLINE void in_slim(int *p, int a, int b)
{
	int k = number(p);
	sink = 18 | a << 7 | b << 16 | *p << 24 | k << 15;
}
INLINE void in_union(int *p, int a, int b)
{
	int k = number(p);
	sink = 18 | a << 7 | b << 16 | *p << 24 | k << 15;
}
INLINE void whole(int *p, int b)
{
	int k = number(p);
	sink = 18 | b << 16 | *p << 24 | k << 15;
}
INLINE void array(int *p, int b)
{
	int k = number(p);
	sink = 18 | b << 16 | *p << 24 | k << 15;
}
INLINE int start(struct hash *h, int first)
{
	if (first == 0) {
		h->state[0] = 1; h->state[1] = 2; h->state[2] = 3; h->state[3] = 4;
		h->state[4] = 5; h->state[5] = 6; h->state[6] = 7; h->state[7] = 8;
	} else {
		h->state[0] = 9; h->state[1] = 8; h->state[2] = 7; h->state[3] = 6;
		h->state[4] = 5; h->state[5] = 4; h->state[6] = 3; h->state[7] = 2;
	}
	h->first = first;
	return 0;
}
NOINLINE void a(struct slim *s, int *p) { in_slim(p, s->of, s->at); }
NOINLINE void b(struct node *s, int *p) { in_union(p, s->u.in.of, s->u.in.at); }
NOINLINE void c(struct node *s, int *p) { whole(p, s->u.info); }
NOINLINE void d(struct bytes *s, int *p)
{
	int n;
	__builtin_memcpy(&n, s->b, 4);
	array(p, n);
}
NOINLINE int e(int loud)
{
	struct hash h = {{0}};
	int i, j, k, ret;
	for (i = 0; i < 6; i++) {
		j = i % 3;
		k = i < 3;
		if (loud)
			number(&j);
		if ((ret = start(&h, k)) != 0)
			return 1;
		if (j == 2)
			for (j = 0; j < 1000; j++)
				add(&h, j);
		else
			add(&h, sink);
		if ((int)sink == 32 - k * 4)
			return 2;
	}
	return 0;
}
int main(int argc, char **argv)
{
	struct slim s = {1, 2, 3};
	struct node n = {1, {.in = {2, 3}}};
	struct bytes m = {1, {2, 3}};
	a(&s, &argc);
	b(&n, &argc);
	c(&n, &argc);
	d(&m, &argc);
	return e(argc);
}
`
	for _, cc := range []string{"clang-14", "clang-16", "clang-19", "clang-22"} {
		exe := built(t, cc, "-O2", map[string]string{"a.c": source})
		for definition, doubtful := range map[string]bool{"in_slim b": true, "in_union b": true, "whole b": false, "array b": false, "start first": true} {
			if definition == "start first" && cc != "clang-22" {
				continue // which loses it, or unrolls the loop
			}
			hasDoubt(t, cc, exe, definition, contradictory(doubtful))
		}
	}
}
