package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestMovedUp: clang 14 does not pass a parameter that a function only assigns, and says so nowhere: those behind it are passed a place earlier. Its note is of what the body
// assigns it. Of a parameter that the first instruction alone reads the note begins behind that too, and it is passed.
func TestMovedUp(t *testing.T) {
	const source = `
volatile long sink;
static __attribute__((noinline)) int none(int x) { sink = x; return 0; }
static __attribute__((noinline)) int gone(int *p, int n, signed char c)
{
	c <<= 2;
	n &= none(c + *p);
	c &= none(n + *p);
	return p[1];
}
static __attribute__((noinline)) int passed(int n, int *p, signed char c)
{
	n *= 5;
	sink = n + *p;
	n ^= 77;
	sink = n + c;
	return p[1] - n;
}
int main(int argc, char **argv)
{
	int a[] = {argc, 2 * argc};
	int r = 0;
	for (int i = 0; i < argc; i++)
		r += gone(a, argc * i, i) + gone(a + i, argc - i, argc) + passed(i, a, argc) + passed(argc, a + i, i);
	return r & 1;
}
`
	for _, options := range []string{"-O2", "-O1", "-Os"} {
		img := built(t, "clang-14", options, map[string]string{"a.c": source})
		for _, definition := range []string{"gone p", "gone c", "passed n", "passed p", "passed c"} {
			isSure(t, "clang-14 "+options, img, definition, 1, true)
		}
		if n := plantest.New(t, img, "gone n", plan.Options{}).Sites[0].Args[0].Variable; n.Reason.Code != reasons.NotAtSite {
			t.Errorf("clang-14 %s: n, which is not passed, is %v", options, n)
		}
	}
}
