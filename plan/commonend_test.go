package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestCommonEnd: GCC stores once, with the place of one run's end, what a run and its caller's code store alike, and may then give both paths a copy of that. It is the lowest instruction of
// the run, which is where code without markers says that it begins, and what comes from the caller is no run.
func TestCommonEnd(t *testing.T) {
	const source = `
struct info { long *func, *base, *top; int results, tails; };
struct state { struct info *ci, *end; int size; long *base, *top; };
__attribute__((noinline)) void resize(struct state *s, int size) { s->size = size; s->ci = __builtin_realloc(s->ci, size); }
__attribute__((noinline, noreturn)) void fail(struct state *s) { __builtin_exit(s->size); }
static inline __attribute__((always_inline)) struct info *grow(struct state *s)
{
	if (s->size > 20000)
		fail(s);
	else {
		resize(s, 2 * s->size);
		if (s->size > 20000)
			fail(s);
	}
	return ++s->ci;
}
__attribute__((noinline)) int call(struct state *s, long *func, int results)
{
	struct info *ci = s->ci == s->end ? grow(s) : ++s->ci;
	ci->func = func;
	s->base = ci->base = func + 1;
	ci->top = s->base + results;
	ci->tails = 0;
	ci->results = results;
	return ci->top > s->top;
}
struct value { long v; int type; };
struct stack { long pad[2]; struct value *top; };
__attribute__((noinline)) static void check(struct stack *s) { s->pad[0]++; }
__attribute__((noinline)) static long made(struct stack *s, const char *text, unsigned long n) { return n + s->pad[0] + *text; }
static inline __attribute__((always_inline)) void nothing(struct stack *s)
{
	s->top->type = 0;
	s->top++;
}
static inline __attribute__((always_inline)) void text(struct stack *s, const char *t, unsigned long n)
{
	if (s->pad[0] >= s->pad[1])
		check(s);
	struct value *to = s->top;
	to->v = made(s, t, n);
	to->type = 4;
	s->top++;
}
__attribute__((noinline)) void push(struct stack *s, const char *t)
{
	if (t == 0)
		nothing(s);
	else
		text(s, t, __builtin_strlen(t));
}
int main(int argc, char **argv)
{
	struct info infos[4];
	struct value values[4];
	struct stack stack = {{0, 1}, values};
	struct state s = {infos, infos + 4, 1, 0, 0};
	push(&stack, argv[0]);
	push(&stack, argv[argc]);
	return call(&s, &stack.pad[0], 1);
}
`
	for _, cc := range []string{"gcc-11", "gcc-12"} {
		img := built(t, cc, "-O2 -gno-statement-frontiers", map[string]string{"a.c": source})
		for _, name := range []string{"grow", "nothing"} {
			p := plantest.New(t, img, name, plan.Options{})
			hitOnce(t, cc, p, func(s *plan.Site) int { return int(s.CallLine) })
			if len(p.Sites) == 0 || p.Sites[len(p.Sites)-1].Way.Again {
				t.Errorf("%s: no run of %s is known: %v", cc, name, p.Sites)
			}
		}
	}
}
