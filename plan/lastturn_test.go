package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestLastTurn: of the last turn of a loop that GCC unrolls, a body can be left that is a statement without code in front of what all turns lead to behind the loop. Their tests come
// there behind the body, which they have run: the probe there may fire without a run of it. In a loop that is not unrolled the test leads to a run.
func TestLastTurn(t *testing.T) {
	const source = `
struct vec { float x, y; };
struct move { struct vec p; float s, c; };
struct box { struct vec lower, upper; };
struct shape { struct vec v[8]; int count; float radius; };
static inline float most(float a, float b) { return a > b ? a : b; }
static inline float least(float a, float b) { return a < b ? a : b; }
static inline struct vec at(float x, float y) { struct vec v; v.x = x; v.y = y; return v; }
static inline struct vec upper(const struct vec *a, const struct vec *b) { return at(most(a->x, b->x), most(a->y, b->y)); }
static inline struct vec lower(const struct vec *a, const struct vec *b) { return at(least(a->x, b->x), least(a->y, b->y)); }
static inline struct vec moved(const struct move *m, const struct vec *v)
{
	float x = (m->c * v->x - m->s * v->y) + m->p.x;
	float y = (m->s * v->x + m->c * v->y) + m->p.y;
	return at(x, y);
}
__attribute__((noinline)) void around(const struct shape *s, struct box *b, const struct move *m)
{
	struct vec lo = moved(m, &s->v[0]), hi = lo;
	for (int i = 1; i < s->count; i++) {
		struct vec v = moved(m, &s->v[i]);
		lo = lower(&lo, &v);
		hi = upper(&hi, &v);
	}
	b->lower = at(lo.x - s->radius, lo.y - s->radius);
	b->upper = at(hi.x + s->radius, hi.y + s->radius);
}
int main(int n, char **args)
{
	struct shape s = {{{1, 2}, {3, 4}, {5, 6}, {7, 8}}, 2 + n, 1};
	struct move m = {{1, 1}, 0.5f, 0.5f};
	struct box b;
	around(&s, &b, &m);
	return b.lower.x > b.upper.x;
}
`
	for _, tt := range []struct {
		options string
		marked  map[string]int
	}{
		{"-O3", map[string]int{"most": 1, "least": 0, "moved": 0}},
		{"-O3 -funroll-loops", map[string]int{"most": 1, "least": 0, "moved": 0}},
		{"-O2", map[string]int{"most": 0, "least": 0, "moved": 0}},
	} {
		img := built(t, "gcc-12", tt.options, map[string]string{"a.c": source})
		for function, marked := range tt.marked {
			p := plantest.New(t, img, function, plan.Options{})
			again := 0
			for i := range p.Sites {
				if p.Sites[i].Way.Again {
					again++
				}
			}
			if again != marked {
				t.Errorf("%s: %d sites of %s may be hit without a run, not %d: %v", tt.options, again, function, marked, p.Sites)
			}
		}
	}
}
