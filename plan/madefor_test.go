package plan_test

import (
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestMadeFor: what GCC without markers makes ahead of tests and loops, for several parts of bodies, begins no run, or none that is sure.
func TestMadeFor(t *testing.T) {
	for _, tt := range []struct {
		name           string
		source         string
		definition     string
		probes, marked int
		none           string // where the probe was once
	}{
		{"an address that several bodies need", `
short prices[512];
struct model { int probability; };
static int price0(const struct model m) { return prices[m.probability >> 2]; }
static int price1(const struct model m) { return prices[(2048 - m.probability) >> 2]; }
static int price(const struct model m, _Bool bit) { return bit ? price1(m) : price0(m); }
__attribute__((noipa)) int symbol(const struct model m[], int s)
{
	s |= 4;
	_Bool bit = s & 1;
	s >>= 1;
	int sum = price(m[s], bit);
	bit = s & 1;
	s >>= 1;
	sum += price(m[s], bit);
	return sum + price(m[1], s & 1);
}
int main(void) { struct model m[8] = {{1}, {2}, {3}, {4}}; return symbol(m, 2) & 1; }
`, "price1", 3, 0, "symbol+0x12"},
		{"parts of what is computed ahead of a loop", `
struct tab { int pad[7], a[16][5], b[16][5]; };
static int mix(const struct tab *t, int k, int l, int m) { return t->a[k][1] - t->b[l][2]; }
__attribute__((noipa)) int all(const struct tab *t, int n, int k, int l, int m, int *out)
{
	int sum = 0, o = l * 5, p = k * m;
	for (int i = 0; i < n; i++) {
		if (out[i] < o)
			sum ^= k * 7 + l * 9;
		else
			sum += mix(t, k, l, m) * p;
		out[i] = sum;
	}
	return sum;
}
struct tab t;
int main(void) { int o[8] = {0}; return all(&t, 7, 1, 2, 3, o) & 1; }
`, "mix", 1, 0, ""},
		{"what two sides of a test compute alike", `
struct state { int st; };
static inline void set_match(struct state *s) { s->st = s->st < 7 ? 7 : 10; }
static inline void set_rep(struct state *s) { s->st = s->st < 7 ? 8 : 11; }
struct trial { struct state state; int reps[4]; } trials[16];
__attribute__((noipa)) void next(int i, int rep, int d)
{
	struct trial *t = &trials[i];
	struct state s = trials[i - 1].state;
	if (rep < 4) {
		set_rep(&s);
		t->reps[rep] = d;
	} else {
		set_match(&s);
		t->reps[0] = d;
		t->reps[1] = 0;
	}
	t->state = s;
}
int main(void) { next(1, 2, 3); next(2, 5, 3); return trials[1].reps[2] & 1; }
`, "set_rep", 1, 1, ""},
	} {
		for _, compiler := range []string{"gcc-11", "gcc-12"} {
			t.Run(tt.name+" "+compiler, func(t *testing.T) {
				options := "-O2 -gno-statement-frontiers -gno-variable-location-views"
				p := plantest.New(t, built(t, compiler, options, map[string]string{"a.c": tt.source}), tt.definition, plan.Options{})
				hasWays(t, p, tt.probes, tt.marked)
				if tt.none != "" && len(p.Sites) > 0 && strings.HasSuffix(p.Sites[0].Place(), tt.none) {
					t.Errorf("a run begins at %s", p.Sites[0].Place())
				}
			})
		}
	}
}
