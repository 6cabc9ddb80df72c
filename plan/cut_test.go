package plan_test

import "testing"

// TestCut: the body uses the lowest byte of what is passed, so LLVM loads that byte alone, and notes the register as all of it. What has just a byte in memory, whether a
// variable's type says so or nothing says more, is what was passed.
func TestCut(t *testing.T) {
	const source = `
#define NOINLINE __attribute__((noinline))
#define INLINE static inline __attribute__((always_inline))
volatile unsigned long sink;
struct in { short b; int c; };
struct wide { int a; struct in in[4]; struct wide *next; };
struct slim { unsigned char a; unsigned short b; union { unsigned char c; long d; } u; };
struct pair { int x; long y; };
NOINLINE void put(unsigned long n) { sink ^= n; }
NOINLINE long number(void) { return sink * 0x123456789abcdfl; }
INLINE unsigned low_member(int n) { put(1); return n & 255; }
INLINE unsigned low_next(int n) { put(2); return (unsigned char)n; }
INLINE unsigned low_element(int n) { put(2); return (unsigned short)n; }
INLINE unsigned all_member(int n) { put(3); return n + 1; }
INLINE unsigned all_union(int n) { put(3); return n + 2; }
INLINE unsigned all_element(int n) { put(4); return n - 1; }
INLINE unsigned low_piece(struct pair n) { put(n.y & 7); return (unsigned char)n.x; }
NOINLINE unsigned a(struct wide *w) { return low_member(w->a); }
NOINLINE unsigned b(struct wide *w) { return low_next(w->next->a); }
NOINLINE unsigned c(struct wide *w, long k) { return low_element(w->in[k].c); }
NOINLINE unsigned d(struct slim *s) { return all_member(s->b); }
NOINLINE unsigned e(struct slim *s) { return all_union(s->u.c); }
NOINLINE unsigned f(unsigned char *s, long k) { return all_element(s[3 * k]); }
int main(int argc, char **argv)
{
	struct wide w = {argc * 77777, {{1}, {2}}, &w};
	struct slim s = {1, argc, {3}};
	struct pair p = {number(), number()};
	__asm__ volatile("" : "+m"(p), "+m"(w), "+m"(s));
	put(a(&w) + b(&w) + c(&w, argc) + d(&s) + e(&s) + f((unsigned char *)argv, argc));
	put(low_piece(p));
	return 0;
}
`
	for _, cc := range []string{"clang-14", "clang-16", "clang-19", "clang-22"} {
		exe := built(t, cc, "-O2", map[string]string{"a.c": source})
		for name, doubtful := range map[string]bool{
			"low_member": true, "low_next": true, "low_element": true, "low_piece": true,
			"all_member": false, "all_union": false, "all_element": false,
		} {
			hasDoubt(t, cc, exe, name+" n", contradictory(doubtful))
		}
	}
}
