package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestFed: GCC adds what the caller and the body add to one number at once, with the place of the body's sum, at the end of the only path on which the caller does. The run
// begins behind it, where the paths meet.
func TestFed(t *testing.T) {
	const source = `
static unsigned packed(unsigned m, int e) { return m | ((unsigned)(e + 128) << 24); }
__attribute__((noinline)) unsigned add(unsigned a, unsigned b)
{
	unsigned ma, mb, delta;
	int ea, eb;
	if (a < b) { unsigned c = a; a = b; b = c; }
	if (!b)
		return a;
	ea = a >> 24; ma = (a & 0xffffff) | 1 << 24; ea -= 128;
	eb = b >> 24; mb = (b & 0xffffff) | 1 << 24; eb -= 128;
	delta = ea - eb;
	if (delta < 32) mb >>= delta; else mb = 0;
	if (!mb)
		return a;
	ma += mb;
	if (ma & 1 << 25) {
		if (ea == 127)
			return 0xffffffff;
		ea++;
		ma >>= 1;
	}
	ma &= (1 << 24) - 1;
	return packed(ma, ea);
}
int main(int n, char **args)
{
	unsigned s = 0;
	for (int i = 1; i < 9; i++)
		s = add(s, packed(i << 20, i + n));
	return s & 1;
}
`
	for _, options := range []string{"-O2 -gno-statement-frontiers -gno-variable-location-views", "-O3 -gno-statement-frontiers", "-O2"} {
		p := plantest.New(t, built(t, "gcc-12", options, map[string]string{"a.c": source}), "packed", plan.Options{})
		sites := 0
		for i := range p.Sites {
			if s := &p.Sites[i]; s.Callers[0].Function == "add" {
				sites++
			}
		}
		if sites != 1 {
			t.Errorf("%s: %v", options, p.Sites)
		}
	}
}
