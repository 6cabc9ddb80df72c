package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestMasked: where both sides of a test differ by bits that GCC can mask, it makes a number of the condition, and the body of one side is hit without a run of it. No other body of
// the function has a condition. A body that has one itself says nothing of the kind.
func TestMasked(t *testing.T) {
	const source = `
struct cell { unsigned flag; struct cell *car, *cdr; };
static inline void immutable(struct cell *c) { c->flag |= 0x2000; }
static inline unsigned kind(struct cell *c, unsigned was) { return c->car ? was | 0x400 : was & 0x800; }
__attribute__((noinline)) struct cell *get(struct cell *from) { asm volatile("" ::: "memory"); return from->cdr; }
__attribute__((noinline)) struct cell *cons(struct cell *a, struct cell *b, int fixed)
{
	struct cell *c = get(a);
	c->flag = 5;
	if (fixed)
		immutable(c);
	c->car = a;
	c->cdr = b;
	return c;
}
__attribute__((noinline)) void fix(struct cell *c, struct cell *d)
{
	immutable(c->car);
	immutable(get(d));
	c->flag = kind(c, d->flag);
	d->flag = kind(d, c->flag);
}
int main(int n, char **args)
{
	struct cell a[4] = {{1, a + 1, a + 2}, {2, a, a + 3}, {3, a, a}, {4, a + 1, a + 1}};
	for (int i = 0; i < 8; i++)
		cons(a, a + 1, i == n);
	fix(a, a + 1);
	return a[0].flag & 1;
}
`
	for _, options := range []string{"-O2", "-O3", "-Os"} {
		image := built(t, "gcc-12", options, map[string]string{"a.c": source})
		for function, again := range map[string]bool{"immutable": true, "kind": false} {
			p := plantest.New(t, image, function, plan.Options{})
			seen := make(map[string]bool)
			for i := range p.Sites {
				s := &p.Sites[i]
				caller := s.Callers[len(s.Callers)-1].Function
				seen[caller] = true
				if s.Way.Again != (again && caller == "cons") {
					t.Errorf("%s: %v may be hit without a run: %v", options, s.Site, s.Way.Again)
				}
			}
			if !seen["fix"] || again && !seen["cons"] {
				t.Errorf("%s: %v", options, p.Sites)
			}
		}
	}
}
