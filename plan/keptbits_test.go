package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestKeptBits: that a function out of line keeps what it is called with shows that no statement assigns it, and not that an inlined body computes all of its bits. Of "a - 1" that
// is shifted up clang 14 and 22 add 0x7fffffffffffffff.
func TestKeptBits(t *testing.T) {
	const source = `
volatile long sink;
typedef long (*op)(long, int);
static long shift(long a, int by) { sink = by; return a << 3; }
static long other(long a, int by) { return a + by; }
const op ops[] = {shift, other};
__attribute__((noinline)) long f(long s, int by) { return shift(s - 1, by) + s; }
int main(int argc, char **argv) { return (f(argc, 2) + ops[argc & 1](argc, 3)) & 1; }
`
	for _, compiler := range []string{"clang-14", "clang-22"} {
		img := built(t, compiler, "-O2", map[string]string{"a.c": source})
		p := plantest.New(t, img, "shift a", plan.Options{})
		for i := range p.Sites {
			site := &p.Sites[i]
			a := site.Args[0].Variable
			if sure := a.Loc.Doubt == reasons.None; !a.Located() || sure == (site.Kind == dwarfloc.SiteInline) {
				t.Errorf("%s: a at %v: %v, and the doubt is %v", compiler, site, a, a.Loc.Doubt)
			}
		}
	}
}
