package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestEnteredByCall: without markers of statements nothing is left of "n += table[5]" but what the caller has loaded, and outer is entered with the call of inner, which is behind that. Where the
// call is the first statement, the note is of what is passed.
func TestEnteredByCall(t *testing.T) {
	const source = `
volatile long sink;
unsigned long table[8];
static inline unsigned long inner(unsigned long *p)
{
	if (p[1])
		return 3;
	sink = p[2];
	return 1;
}
static inline unsigned outer(unsigned long n)
{
	n += table[5];
	n *= inner(table);
	sink = n;
	n <<= 1;
	return n & 1;
}
__attribute__((noinline)) unsigned early(unsigned long a)
{
	sink = table[5];
	return outer(0) + a;
}
__attribute__((noinline)) unsigned late(unsigned long a) { return outer(a) + outer(5); }
static inline unsigned at_once(unsigned long n)
{
	n *= inner(table);
	sink = n;
	n <<= 1;
	return n & 1;
}
__attribute__((noinline)) unsigned known(unsigned long a)
{
	sink = table[5];
	return at_once(table[5]) + a;
}
int main(int argc, char **argv) { return early(argc) + late(argc) + known(argc); }
`
	for _, compiler := range []string{"gcc-11", "gcc-12"} {
		img := built(t, compiler, "-O1 -gno-statement-frontiers", map[string]string{"a.c": source})
		isSure(t, compiler, img, "at_once n", 1, true)
		for _, s := range plantest.New(t, img, "outer n", plan.Options{}).Sites {
			v, early := s.Args[0].Variable, s.Symbol == "early"
			if early && (!v.Located() || v.Loc.Doubt == reasons.None) || s.Symbol == "late" && s.Offset == 0 && v.Loc.Doubt != reasons.None {
				t.Errorf("%s: outer n at %v: %v, and the doubt is %v", compiler, &s, v, v.Loc.Doubt)
			}
		}
	}
}
