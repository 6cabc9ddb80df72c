package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestKeptElsewhere: a function out of line in another unit shows whether a number of an inlined body can be what a statement made of it.
func TestKeptElsewhere(t *testing.T) {
	const header = `
extern volatile long sink;
long other(long);
static inline void nothing(long n) { (void)n; }
static inline long kept(long n, long m) { nothing(n); sink = n; other(n + m); return sink + n; }
static inline long branches(long n, long m) { nothing(n); if (sink > 3) other(m); sink = n; while (sink) other(1); return sink + n; }
static inline long counts(long n, long m) { nothing(n); if (sink > 3) other(m); do sink = n; while (--n); return 5; }
static inline long behind(long n, long m) { n += 3; sink = n; if (sink > 3) other(m); sink = n; return 5; }
static inline long on_one_side(long n, long m) { nothing(n); if (sink > 3) n = 7; sink = n; return m; }
static inline long in_place(long n, long m) { n >>= 3; sink = n; return m; }
static inline long from_another(long n, long m) { n = m; nothing(n); sink = n; other(1); sink = n; return m; }
static inline long in_both(long n, long m) { nothing(n); sink = n; n = m; other(sink); return n; }
`
	const (
		inlined = `
#include "h.h"
volatile long sink;
__attribute__((noipa)) long other(long n) { sink = n; return n * sink; }
long outside(void);
int main(void)
{
	long r = kept(80, 5) + branches(80, 5) + counts(80, 5) + behind(80, 5) + on_one_side(80, 5) + in_place(80, 5) + from_another(80, 5) + in_both(80, 5);
	return r + outside() == 0;
}
`
		outOfLine = `
#include "h.h"
long (*volatile of[])(long, long) = {kept, branches, counts, behind, on_one_side, in_place, from_another, in_both};
long outside(void) { long r = 0; for (int i = 0; i < 8; i++) r += of[i](80, 5); return r; }
`
	)
	for _, build := range []struct{ compiler, options string }{
		{"gcc-11", "-O2 -gno-variable-location-views"}, {"gcc-12", "-O2 -gno-variable-location-views"}, {"gcc-12", "-Os -gno-variable-location-views"},
		{"gcc-12", "-O2 -gno-statement-frontiers"}, {"gcc-11", "-O2 -gno-statement-frontiers -flto"}, {"gcc-12", "-O2 -gno-statement-frontiers -flto"},
	} {
		img := built(t, build.compiler, build.options, map[string]string{"h.h": header, "a.c": inlined, "b.c": outOfLine})
		shown := 0
		for _, name := range []string{"kept", "branches", "counts", "behind", "on_one_side", "in_place", "from_another", "in_both"} {
			locatedInMain(t, img, name+" n", func(s *plan.Site, v *dwarfloc.Variable) {
				sure := v.Loc.Doubt == reasons.None
				if sure && v.Loc.Text(img.Arch()) != "80" {
					t.Errorf("%s %s: %v: %v", build.compiler, build.options, s, v.Loc.Text(img.Arch()))
				}
				if sure && name == "kept" {
					shown++
				}
			})
		}
		if shown != 1 {
			t.Errorf("%s %s: %d are sure", build.compiler, build.options, shown)
		}
	}
}
