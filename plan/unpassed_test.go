package plan_test

import "testing"

// TestUnpassed: without markers GCC's note of a clone's parameter begins behind a statement or not. What calls of the clone name by its entry is not passed: the register has
// what a statement makes.
func TestUnpassed(t *testing.T) {
	const source = `
struct n { int id; struct n *next; long v[3]; };
__attribute__((noipa)) long g(long a, long b) { return a * 3 + b; }
static __attribute__((noinline)) long last(struct n *p, long k) { return g(p->v[0], k); }
static __attribute__((noinline)) long parts(struct n *p, long k) { k = p->v[2]; p = p->next; return last(p, k); }
static __attribute__((noinline)) long taken(struct n *p, long k, long unused) { p->v[1] = k; return g(p->v[0], k); }
__attribute__((noipa)) long f(struct n *p, long x, long y) { return parts(p, x) + parts(p->next, y) + taken(p, x, y) + taken(p->next, y, x); }
int main(int c, char **v)
{
	static struct n n[3] = {{1, n + 1}, {2, n + 2}, {3, n}};
	return f(n, c, c + 1) & 1;
}
`
	// With -flto GCC passes p here, and leaves out k alone.
	for options, p := range map[string]bool{"-O2 -flto": true, "-O2 -gno-statement-frontiers": false} {
		img := built(t, "gcc-12", options, map[string]string{"a.c": source})
		for definition, sure := range map[string]bool{"parts p": p, "parts k": false, "taken p": true, "taken k": true} {
			isSure(t, "gcc-12 "+options, img, definition, 1, sure)
		}
	}
}
