package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestComparesForOthers: LLVM repeats a comparison of a body's for the branch of another, with what others choose by its result between the two. No run begins there.
func TestComparesForOthers(t *testing.T) {
	const source = `
#define NOINLINE __attribute__((noinline))
struct dfa { int last, kind; unsigned char map[256]; };
volatile int sink;
NOINLINE void work(int flags) { sink = flags; }
static inline __attribute__((always_inline)) int pick(struct dfa *d, int c)
{
	if (c == 256)
		return d->last;
	return d->map[c];
}
NOINLINE int next(struct dfa *d, int c, int *to, int flags)
{
	int n = to[pick(d, c)];
	if (n != 0)
		return n;
	for (int i = 0; i < d->kind; i++)
		work(i);
	work(n + d->kind);
	work(flags);
	int before = flags, after = 0;
	if (c == '\n')
		before |= 2;
	if (c == 256)
		before |= 10;
	int word = c != 256 && d->map[c & 0xdf];
	if (word == d->kind)
		after = 1;
	work(before);
	work(after);
	to[pick(d, c)] = before;
	return before;
}
struct dfa d;
int to[256];
int main(int argc, char **argv)
{
	int sum = next(&d, 256, to, argc);
	for (int i = 0; i < 3; i++)
		sum += next(&d, '\t' + i, to, argc);
	return sum & 1;
}
`
	for _, cc := range []string{"clang-14", "clang-16", "clang-19", "clang-22"} {
		// One for the first call, and one for each side of the second, of which the test before it decides.
		p := plantest.New(t, built(t, cc, "-O2", map[string]string{"a.c": source}), "pick", plan.Options{})
		if len(p.Sites) != 3 {
			t.Errorf("%s: probes: %v", cc, p.Sites)
		}
	}
}
