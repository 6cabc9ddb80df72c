package plan_test

import "testing"

// TestTakenForCopy: LLVM takes the "movl %edi, %eax" that makes a long of a number without a sign for a copy, and notes both as %rdi; and so of the first of two members that it loads at
// one go, of which the second is in the upper half. A number that was there first is what the register holds, whatever is made of its lower half; and so is one in the register that has the
// long.
func TestTakenForCopy(t *testing.T) {
	const source = `
typedef unsigned long number;
#define INLINE static inline __attribute__((always_inline))
volatile number seen;
volatile unsigned low;
number cells[8];
struct match { unsigned distance, length; };
struct node { unsigned length, distance, code; float cost; };
INLINE void of_half(number n) { low = n; }
INLINE void of_whole(number n) { low = n; }
INLINE void update(struct node *n, number at, number dist, float cost) { n[at].distance = dist; n[at].cost = cost; }
INLINE number length(const struct match *m) { return m->length >> 5; }
number half(unsigned n)
{
	number more = n;
	if (more > 4) seen = cells[more + 2 & 7] + more;
	of_half(more);
	return more * 3;
}
number whole(number n)
{
	unsigned less = n;
	number more = less;
	if (more > 4) seen = cells[more + 2 & 7] + more;
	of_whole(n);
	return more * 3 + (n >> 3);
}
number nodes(struct node *n, const struct match *all, number count, number start, number limit, float base)
{
	number result = 0;
	for (number j = 0; j < count; j++) {
		struct match match = all[j];
		number dist = match.distance;
		int far = dist > start;
		float cost = base + (float)__builtin_clzl(dist + 15);
		number most = length(&match);
		number len = start;
		if (len < most && (far || most > limit))
			len = most;
		for (; len <= most; ++len) {
			float c = cost + (float)((far ? match.length & 31 : len) & 7);
			if (c < n[len].cost) {
				update(n, len, dist, c);
				if (len > result)
					result = len;
			}
		}
	}
	return result;
}
`
	for _, cc := range []string{"clang-14", "clang-16", "clang-19", "clang-22"} {
		img := built(t, cc, "-O2 -shared -fPIC", map[string]string{"a.c": source})
		hasDoubt(t, cc, img, "of_half n", contradictory(true))
		hasDoubt(t, cc, img, "of_whole n", contradictory(false))
		switch cc {
		case "clang-19": // goes on with the long's register
			hasDoubt(t, cc, img, "update dist", contradictory(false))
		case "clang-22":
			hasDoubt(t, cc, img, "update dist", contradictory(true))
		}
	}
}
