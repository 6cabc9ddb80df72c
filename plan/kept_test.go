package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestKeptArgument: a function out of line shows whether a number of an inlined body can be what a statement made of it.
func TestKeptArgument(t *testing.T) {
	const source = `
volatile long sink;
long other(long);
long kept(long n) { sink = n; other(n); return sink + n; }
long branches(long n) { if (sink > 3) other(n); while (sink) other(1); return sink + n; }
long counts(long n) { if (sink > 3) other(1); do sink = n; while (--n); return 5; }
long behind(long n) { n += 3; if (sink > 3) other(1); sink = n; return 5; }
long on_one_side(long n) { if (sink > 3) n = 7; sink = n; return 1; }
long table(long n) { if (n == 80) n = 254; long h = n & 255; while (sink) other(n); return h; }
long in_place(long n) { n >>= 3; sink = n; return 5; }
long elsewhere(long n, long m) { long k = other(m); n += k; sink = n; return k; }
long on_a_path(long n, long m) { if (m > 3) n = 7; sink = n + m; return 1; }
long in_the_end(long n) { long r = other(n); n = r * 2; return n; }
long from_another(long n, long m) { sink = n; n = m; sink = n; return m; }
__attribute__((noinline)) long other(long n) { sink = n; return n * sink; }
int main(void)
{
	long r = kept(80) + branches(80) + counts(80) + behind(80) + on_one_side(80) + table(80) + in_place(80) + elsewhere(80, 1) + on_a_path(80, 5) + in_the_end(80) + from_another(80, 2);
	return r == 0;
}
`
	for _, compiler := range []string{"clang-14", "clang-16", "clang-19", "clang-22"} {
		for _, option := range []string{"-O1", "-O2", "-Os", "-Og"} {
			img := built(t, compiler, option, map[string]string{"a.c": source})
			inlined := 0
			for _, name := range []string{"kept", "branches", "counts", "behind", "on_one_side", "table", "in_place", "elsewhere", "on_a_path", "in_the_end", "from_another"} {
				locatedInMain(t, img, name+" n", func(s *plan.Site, v *dwarfloc.Variable) {
					inlined++
					sure := v.Loc.Doubt == reasons.None
					if sure != (name == "kept" || name == "branches") || sure && v.Loc.Expr.K != 80 {
						t.Errorf("%s %s: %v: %v, sure %v", compiler, option, s, v.Loc.Text(img.Arch()), sure)
					}
				})
			}
			if inlined < 3 {
				t.Errorf("%s %s: %d are inlined", compiler, option, inlined)
			}
		}
	}
}
