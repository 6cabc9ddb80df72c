package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestOtherPlace: a jump to a function at the end of another one has no row of the line table in GCC's code, but what stands before it has: the caller's end. Where other paths come to that too, it is no
// beginning of the body.
func TestOtherPlace(t *testing.T) {
	const source = `
struct pool { struct pool *next; char *from, *to; int n; };
__attribute__((noipa)) void *got(int n) { static int x[8]; return n ? &x : 0; }
struct pool one, two;
__attribute__((noipa)) int work(int a, int b) { return a * 3 > b; }
static void given(struct pool *p, void *m)
{
	if (!m)
		return;
	while (p->from > (char *)m || p->to < (char *)m) {
		work(p->n, 1);
		work(p->n, 2);
		work(p->n, 3);
		work(p->n, 4);
		work(p->n, 5);
		work(p->n, 6);
		if (!(p = p->next))
			return;
	}
	p->n--;
	work(p->n, 7);
	work(p->n, 8);
	work(p->n, 9);
	work(p->n, 10);
}
void give(struct pool *p, void *m) { given(p, m); }
__attribute__((noipa)) void subst(int a, int b, int c, int d)
{
	void *m = got(a), *n = got(b);
	if (work(b, c)) {
		work(c, d);
		given(&one, n);
		return;
	}
	work(a, d);
	work(d, a);
	if (work(d, c)) {
		given(&one, m);
		work(d, c);
		return;
	}
	given(&two, m);
}
int main(int argc, char **argv) { subst(argc, 2, 3, 4); subst(argc, 2, 300, 4); give(&two, 0); return 0; }
`
	for _, cc := range []string{"gcc-11", "gcc-12"} {
		p := plantest.New(t, built(t, cc, "-O2 -gno-statement-frontiers", map[string]string{"a.c": source}), "given", plan.Options{})
		hitOnce(t, cc, p, func(s *plan.Site) int { return int(s.CallLine) })
	}
}
