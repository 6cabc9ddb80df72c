package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestComparesBoth: both sides of a comparison in a macro have one position, and LLVM loads something of the caller's between them, as in duktape's duk__json_enc_quote_string: the second load is not another
// run. Runs of a caller's loop that was unrolled compare one by one.
func TestComparesBoth(t *testing.T) {
	const source = `
typedef unsigned long size;
struct text { unsigned a, b, c, length; const char *bytes; };
struct writer { char *p, *base, *limit; };
struct context { void *thread; struct writer w; };
__attribute__((noinline)) char *resize(void *thread, char *base, size n) { asm volatile("" : : "r"(thread), "r"(n) : "memory"); return base; }
static char *grow(void *thread, struct writer *w, size n)
{
	size old = w->limit - w->base, off = w->p - w->base, more = old + (old >> 2) + n + 64;
	if (more < old)
		__builtin_trap();
	char *to = resize(thread, w->base, more);
	w->base = to;
	w->p = to + off;
	w->limit = to + more;
	return w->p;
}
#define PUT(c, ch) do { if ((size)((c)->w.limit - (c)->w.p) < 1) grow((c)->thread, &(c)->w, 1); *(c)->w.p++ = (ch); } while (0)
static void emit(struct context *c, int ch) { PUT(c, ch); }
__attribute__((noinline)) void quote(struct context *c, struct text *t)
{
	void *thread = c->thread;
	unsigned n = t->length;
	emit(c, '"');
	resize(thread, 0, n);
	for (const char *s = t->bytes, *end = s + n; s < end; s++)
		emit(c, *s);
	emit(c, '"');
}
int main(void)
{
	static char room[256];
	struct context c = { 0, { room, room, room } };
	struct text t = { 0, 0, 0, 3, "abc" };
	quote(&c, &t);
	return room[0] & 1;
}

static int most(int a, int b) { return a > b ? a : b; }
__attribute__((noinline)) int highest(const int *a)
{
	int top = a[0];
	for (int i = 1; i < 5; i++)
		top = most(a[i], top);
	return top;
}
`
	for _, cc := range []string{"clang-14", "clang-16", "clang-19", "clang-22"} {
		img := built(t, cc, "-O2", map[string]string{"a.c": source})
		hasWays(t, plantest.New(t, img, "emit", plan.Options{}), 3, 0)
		if p := plantest.New(t, img, "most", plan.Options{}); len(p.Sites) != 4 {
			t.Errorf("%s: %v", cc, p.Sites)
		}
	}
}
