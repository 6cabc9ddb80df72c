package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestOnlyJumps: a jump that ends a block has the position of the body in front of it, and shows nothing: a body that only computes does so there too. Each of seven copies of
// one in a loop of the caller's is a way in.
func TestOnlyJumps(t *testing.T) {
	const source = `
#define NOINLINE __attribute__((noinline))
static inline __attribute__((always_inline)) unsigned long tally(unsigned long n, signed char c)
{
	return n + (c >= -0x40);
}
NOINLINE unsigned long blocks(const signed char *text, unsigned long n) { return text[n & 8] == 'x'; }
NOINLINE unsigned long count(const signed char *text, unsigned long size)
{
	unsigned long n = 0;
	const signed char *rest = text + (size & ~7ul), *end = rest + (size & 7);
	for (; rest != end; rest++)
		n = tally(n, *rest);
	return n + blocks(text, size);
}
int main(int argc, char **argv)
{
	return count((signed char *)argv[0], 5 + argc) + count((signed char *)argv[0], 7);
}
`
	for _, cc := range []string{"clang-14", "clang-16", "clang-19", "clang-22"} {
		p := plantest.New(t, built(t, cc, "-O2", map[string]string{"a.c": source}), "tally", plan.Options{})
		ways := 0
		for i := range p.Sites {
			if s := &p.Sites[i]; s.Symbol == "count" && !s.Way.Again {
				ways++
			}
		}
		if ways != 7 {
			t.Errorf("%s: %d ways into seven copies", cc, ways)
		}
	}
}
