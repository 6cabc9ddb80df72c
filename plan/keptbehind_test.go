package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestKeptBehind: a function out of line keeps what it was called with behind calls in a register that these preserve, from the last byte of the first of them on, or in its frame, to which it
// stores nothing else; or where its caller has stored it. Where its registers are put back, it is noted elsewhere.
func TestKeptBehind(t *testing.T) {
	const header = `
extern volatile long sink;
long other(long);
static inline void nothing(long n) { (void)n; }
static inline long after_call(long n, long a) { nothing(n); sink = n; other(a); sink = n + a; other(n); return n + a; }
static inline __attribute__((always_inline)) long spilled(long a, long b, long c, long d, long n, long e)
{
	nothing(n); long f = sink, g = sink, h = sink; other(a); other(b + c); other(f); sink = a + f; sink = b + g; sink = c + h; sink = a * b * c; sink = f * g * h; sink = d; sink = e; sink = n;
	return 0;
}
static inline long stacked(long a, long b, long c, long d, long e, long f, long n) { nothing(n); sink = n; other(a); sink = n + b + c + d + e + f; return n + a; }
struct node { long kind, line; struct node *up; };
struct node *fresh(void);
static inline struct node *made(long n, long line, struct node *up)
{
	nothing(n); sink = n; struct node *x = fresh(); x->kind = n; x->line = line; x->up = up; if (up) sink = up->line; return x;
}
static inline __attribute__((always_inline)) long spilled_set(long a, long b, long c, long d, long n, long e)
{
	nothing(n); if (sink > 3) n = 7; long f = sink, g = sink, h = sink; other(a); other(b + c); other(f); sink = a + f; sink = b + g; sink = c + h; sink = a * b * c; sink = f * g * h; sink = d; sink = e; sink = n;
	return 0;
}
static inline long stacked_set(long a, long b, long c, long d, long e, long f, long n) { nothing(n); n += 5; sink = n; other(a); sink = n + b + c + d + e + f; return n + a; }
static inline long set_behind(long n, long a) { nothing(n); n -= 6; sink = n; other(a); sink = n; n = other(n); return n + a; }
`
	const (
		inlined = `
#include "h.h"
volatile long sink;
__attribute__((noipa)) long other(long n) { sink = n; return n * sink; }
struct node nodes[4];
__attribute__((noipa)) struct node *fresh(void) { return nodes + (sink & 3); }
long outside(void);
int main(void)
{
	long r = after_call(80, 5) + spilled(1, 2, 3, 4, 80, 5) + stacked(1, 2, 3, 4, 5, 6, 80) + made(80, 3, nodes)->line;
	r += spilled_set(1, 2, 3, 4, 80, 5) + stacked_set(1, 2, 3, 4, 5, 6, 80) + set_behind(80, 5);
	return r + outside() == 0;
}
`
		outOfLine = `
#include "h.h"
void *volatile of[] = {after_call, spilled, stacked, made, spilled_set, stacked_set, set_behind};
long outside(void)
{
	return ((long (*)(long, long))of[0])(80, 5) + ((long (*)(long, long, long, long, long, long))of[1])(1, 2, 3, 4, 80, 5) +
		((long (*)(long, long, long, long, long, long, long))of[2])(1, 2, 3, 4, 5, 6, 80) + ((struct node *(*)(long, long, struct node *))of[3])(80, 3, 0)->line +
		((long (*)(long, long, long, long, long, long))of[4])(1, 2, 3, 4, 80, 5) + ((long (*)(long, long, long, long, long, long, long))of[5])(1, 2, 3, 4, 5, 6, 80) +
		((long (*)(long, long))of[6])(80, 5);
}
`
	)
	for _, build := range []struct {
		compiler, options string
		stacked           bool // else it is nowhere in main
	}{
		{"gcc-11", "-O2 -gno-variable-location-views", true}, {"gcc-12", "-O2 -gno-variable-location-views", true},
		{"gcc-12", "-O2 -gno-statement-frontiers", false}, {"gcc-11", "-O2 -gno-statement-frontiers -flto", false}, {"gcc-12", "-O2 -gno-statement-frontiers -flto", false},
	} {
		img := built(t, build.compiler, build.options, map[string]string{"h.h": header, "a.c": inlined, "b.c": outOfLine})
		shown := ""
		for _, x := range []struct{ definition, is string }{
			{"after_call n", "80"}, {"spilled a", "1"}, {"spilled b", "2"}, {"spilled c", "3"}, {"spilled d", "4"}, {"spilled n", "80"}, {"spilled e", "5"}, {"stacked n", "80"}, {"made n", "80"},
			{"spilled_set n", "80"}, {"stacked_set n", "80"}, {"set_behind n", "80"},
		} {
			locatedInMain(t, img, x.definition, func(s *plan.Site, v *dwarfloc.Variable) {
				if v.Loc.Doubt != reasons.None {
					return
				}
				shown += ", " + x.definition
				if v.Loc.Text(img.Arch()) != x.is {
					t.Errorf("%s %s: %v: %v", build.compiler, build.options, s, v.Loc.Text(img.Arch()))
				}
			})
		}
		stacked := ""
		if build.stacked {
			stacked = ", stacked n"
		}
		if shown != ", after_call n, spilled a, spilled b, spilled c, spilled d, spilled n, spilled e"+stacked+", made n" {
			t.Errorf("%s %s: sure are%s", build.compiler, build.options, shown)
		}
	}
}
