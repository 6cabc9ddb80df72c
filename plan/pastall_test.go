package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestPastAll: of "while (t && !ok(t, a)) t = t->next;", where what ok tests first does not change, GCC lets the caller's test lead past all statements of the body to its second test, as in the
// kernel's t_next and in discount's loop over peek. Runs begin there too, and the first one comes there. Where the first test is made in each turn, a probe there is hit once for each run.
func TestPastAll(t *testing.T) {
	const source = `
struct tracer { struct tracer *next; int allowed; };
struct array { long flags; };
static int same(struct tracer *t, struct array *a) { return (a->flags & 1) || t->allowed; }
struct tracer *first(struct array *a, struct tracer *t)
{
	while (t && !same(t, a))
		t = t->next;
	return t;
}
struct other { volatile long flags; };
static int fresh(struct tracer *t, struct other *a) { return (a->flags & 1) || t->allowed; }
struct tracer *again(struct other *a, struct tracer *t)
{
	while (t && !fresh(t, a))
		t = t->next;
	return t;
}
`
	img := built(t, "gcc-12", "-O2 -shared -fPIC", map[string]string{"a.c": source})
	hasWays(t, plantest.New(t, img, "same t", plan.Options{}), 2, 1)
	hasWays(t, plantest.New(t, img, "fresh t", plan.Options{}), 1, 0)
}
