package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestInRest: without markers of statements, execution comes from one body to the end of another one, with which GCC has merged its own: there no run of that begins.
func TestInRest(t *testing.T) {
	const source = `
#define INLINE static inline __attribute__((always_inline))
struct node { int type, line; struct node *parent, *next, *last; const char *text; double number; };
struct state { int line, ahead; struct node *all; const char *text; double number; };
__attribute__((noipa)) struct node *get(struct state *s) { static struct node n[64]; static int k; return &n[k++ & 63]; }
__attribute__((noipa)) void next(struct state *s) { s->ahead++; }
INLINE struct node *node(struct state *s, int type)
{
	struct node *n = get(s);
	n->type = type;
	n->line = s->line;
	n->parent = 0;
	n->number = 0;
	n->text = 0;
	n->last = 0;
	n->next = s->all;
	s->all = n;
	return n;
}
INLINE struct node *text(struct state *s, int type, const char *x)
{
	struct node *n = node(s, type);
	n->text = x;
	return n;
}
__attribute__((noipa)) struct node *primary(struct state *s)
{
	struct node *a;
	if (s->ahead == 3) {
		a = text(s, 1, s->text);
		next(s);
		return a;
	}
	if (s->ahead == 4) {
		a = text(s, 2, s->text);
		next(s);
		return a;
	}
	if (s->ahead == 5) {
		a = text(s, 3, s->text);
		next(s);
		return a;
	}
	next(s);
	return 0;
}
int main(int argc, char **argv) { struct state s = {1, 3}; return primary(&s) == 0; }
`
	for _, cc := range []string{"gcc-11", "gcc-12"} {
		p := plantest.New(t, built(t, cc, "-O2 -gno-statement-frontiers", map[string]string{"a.c": source}), "node", plan.Options{})
		hitOnce(t, cc, p, func(s *plan.Site) int { return int(s.Callers[0].CallLine) })
	}
}
