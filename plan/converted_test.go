package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestConverted: where GCC makes one of both sides of a test, and an instruction chooses between their values, the body of one side is hit without a run of it.
// Elsewhere its probes say nothing of the kind.
func TestConverted(t *testing.T) {
	const source = `
static inline int turned(int lit) { return lit ^ 1; }
struct list { int n, size; int *at; };
__attribute__((noinline)) int room(struct list *l) { return l->n < l->size; }
__attribute__((noinline)) void put(struct list *l, int parsed)
{
	int v = __builtin_abs(parsed) - 1;
	if (room(l))
		l->at[l->n++] = parsed > 0 ? v + v : turned(v + v);
}
__attribute__((noinline)) void both(struct list *l, int lit)
{
	room(l);
	l->at[0] = turned(lit);
	l->at[1] = lit;
}
int main(int n, char **args)
{
	int at[9];
	struct list l = {0, 9, at};
	for (int i = 0; i < 8; i++)
		put(&l, i & 1 ? n + i : -n - i);
	both(&l, n);
	return at[2];
}
`
	for _, options := range []string{"-O2", "-O3", "-O2 -gno-variable-location-views"} {
		p := plantest.New(t, built(t, "gcc-12", options, map[string]string{"a.c": source}), "turned", plan.Options{})
		seen := make(map[string]bool)
		for i := range p.Sites {
			s := &p.Sites[i]
			seen[s.Callers[len(s.Callers)-1].Function] = true
			if again := s.Callers[len(s.Callers)-1].Function == "put"; s.Way.Again != again {
				t.Errorf("%s: %v may be hit without a run: %v", options, s.Site, s.Way.Again)
			}
		}
		if !seen["put"] || !seen["both"] {
			t.Errorf("%s: %v", options, p.Sites)
		}
	}
}
