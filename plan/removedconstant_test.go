package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestRemovedConstant: GCC without views writes the only note of a parameter as its constant in the whole clone: that is what all callers pass, or, of a parameter that
// the clone is not passed, what a statement assigns (p3 of f7 in the generated program of seed 9111, at -O2). That the clone is also made for callers that pass one number
// does not tell the two apart. Views do: a list then has both.
func TestRemovedConstant(t *testing.T) {
	const source = `
volatile unsigned long sink;
unsigned long cells[8];
struct pair { long x, y; };
static __attribute__((noinline)) long made(unsigned a, struct pair p, int c)
{
	unsigned i = a & 3;
	do {
		sink += p.y * c;
		cells[i] ^= sink >> c;
	} while (i-- > 0);
	return p.y + cells[a & 7];
}
int main(int argc, char **argv)
{
	struct pair p = {argc, argc * 3};
	long r = made(argc, p, 7);
	p.y = sink;
	return (r + made(sink, p, 7)) & 1;
}
`
	for _, cc := range []string{"gcc-11", "gcc-12"} {
		for flags, want := range map[string]loc.ReasonCode{"-gno-variable-location-views": reasons.Reassigned, "-gvariable-location-views": reasons.None} {
			p := plantest.New(t, built(t, cc, "-O2 "+flags, map[string]string{"a.c": source}), "made c", plan.Options{})
			if len(p.Sites) != 1 {
				t.Fatalf("%s %s: %v", cc, flags, p.Sites)
			}
			if c := p.Sites[0].Args[0].Variable; !c.Located() || c.Loc.Doubt != want {
				t.Errorf("%s %s: c of %v is doubtful for %q, and not %q", cc, flags, &p.Sites[0], c.Loc.Doubt, want)
			}
		}
	}
}
