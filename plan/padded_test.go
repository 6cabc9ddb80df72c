package plan_test

import (
	"slices"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestBeforePadding: GCC begins a body behind the padding in front of an aligned loop, and notes it at a label in front of that: of "while (i--)" with a caller's "b + 1", first what is passed, and then
// b, both at the label's address. The views of the rows behind the padding say which is first.
func TestBeforePadding(t *testing.T) {
	const source = `
volatile long sink;
unsigned char bytes[256];
static inline long down(long i)
{
	for (; i--; )
		sink += bytes[i & 255];
	return i;
}
__attribute__((noinline)) long downs(int a, long b)
{
	long r = down(a);
	r += down(b + 1);
	return r + down(a + 2);
}
int main(void) { return downs(3, 4); }
`
	for _, options := range []string{"-O2 -fwrapv", "-O3 -fwrapv"} {
		img := built(t, "gcc-12", options, map[string]string{"a.c": source})
		p := plantest.New(t, img, "down i", plan.Options{})
		var got []string
		for i := range p.Sites {
			if p.Sites[i].Symbol == "downs" {
				v := p.Sites[i].Args[0].Variable
				got = append(got, v.Loc.Text(img.Arch()))
			}
		}
		if want := []string{"%rdx", "%rdi", "%rsi+1"}; !slices.Equal(got, want) {
			t.Errorf("%s: what is passed is in %v, not in %v", options, got, want)
		}
	}
}
