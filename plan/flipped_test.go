package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestFlipped: GCC's note of "!b" is all bits of ~b, and so is that of the lower bits of ~b. Of a truth value the lowest bit is fetched; of a number that is passed which bits it has
// is not known, also where b is noted in the register that it was moved from. ~b of an int has 32 bits.
func TestFlipped(t *testing.T) {
	const source = `
#define NOINLINE __attribute__((noinline))
#define INLINE static inline __attribute__((always_inline))
volatile unsigned sink;
NOINLINE int get(int a) { return a + sink; }
INLINE int truth(_Bool n) { sink = 1; int k = get(3); sink = k; return n; }
INLINE int byte(unsigned char n) { sink = 2; int k = get(4); sink = k; return n + k; }
INLINE int shifted(unsigned char n) { sink = 3; int k = get(5); sink = k; return n + k; }
INLINE int whole(int n) { sink = 4; int k = get(6); sink = k; return n + k; }
INLINE int other(unsigned char n) { sink = 5; int k = get(7); sink = k; return n + k; }
NOINLINE int a(_Bool b) { return truth(!b) + sink + b; }
NOINLINE int b(_Bool b) { return byte(!b) + sink + b; }
NOINLINE int c(_Bool b) { return shifted(b ? 0 : 32) + sink + b; }
NOINLINE int d(_Bool b) { return whole(~b) + sink + b; }
NOINLINE int e(unsigned char b) { return other(~b) + sink + b; }
int main(int argc, char **argv) { return a(argc & 1) + b(argc & 1) + c(argc & 1) + d(argc & 1) + e(argc); }
`
	for _, cc := range []string{"gcc-11", "gcc-12"} {
		exe := built(t, cc, "-O2", map[string]string{"a.c": source})
		for name, want := range map[string]string{
			"truth": reasons.None.String(), "byte": reasons.Contradictory.String(), "shifted": reasons.Contradictory.String(),
			"whole": reasons.None.String(), "other": reasons.None.String(),
		} {
			p := plantest.New(t, exe, name+" n", plan.Options{})
			if len(p.Sites) != 1 {
				t.Fatalf("%s: probes of %s: %v", cc, name, p.Sites)
			}
			if a := p.Sites[0].Args[0].Variable; !a.Located() || a.Loc.Doubt.String() != want {
				t.Errorf("%s: n of %s is doubtful for %q, and not %q: %v", cc, name, a.Loc.Doubt, want, a)
			}
		}
	}
}
