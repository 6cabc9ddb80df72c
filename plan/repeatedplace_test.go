package plan_test

import (
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestRepeatedPlace: GCC notes for a call whose argument is a choice or a sum with memory, and is not passed, the register that has what the call before it passes, also where that
// one has been copied since. What is made between the calls is a note of its own.
func TestRepeatedPlace(t *testing.T) {
	const source = `
volatile long sink;
long values[8];
static __attribute__((noinline)) long kept(unsigned long unused, long used) { sink = used; return sink + 100; }
static __attribute__((noinline)) long own(unsigned long unused, long used) { sink = used; return sink + 101; }
static __attribute__((noinline)) long sum(unsigned long unused, long used) { sink = used; return sink + 102; }
static inline long first(long n, _Bool b) { b ^= values[n & 3]; return kept(b, n + 1) + values[b] + b; }
static inline long second(long n, short b) { return n + kept((b ? 0 : -3000) * (short)0x10001, n ^ 3); }
__attribute__((noinline)) long both(long n, short b)
{
	long x = 0;
	for (int i = 0; i < 3; i++) {
		x += first(n + i, sink);
		n = second(n, b);
	}
	return x + n;
}
__attribute__((noinline)) long two(long n)
{
	long a = sink, b;
	n += own(a, n + 1);
	b = sink;
	return own(b, n ^ 3) + a * b;
}
__attribute__((noinline)) long lost(long n)
{
	long a = n * 3, b;
	n += sum(a, n + 1);
	b = values[n & 7] + n;
	return sum(b, n ^ 3) + a + b;
}
int main(void)
{
	for (int i = 0; i < 9; i++)
		sink = both(i, i) + two(i) + lost(i);
	return 0;
}
`
	for _, option := range []string{"-O2", "-O3"} {
		img := built(t, "gcc-12", option, map[string]string{"a.c": source})
		for definition, calls := range map[string]int{"kept unused": 1, "own unused": 2, "sum unused": 1} {
			p := plantest.New(t, img, definition, plan.Options{})
			for i := range p.Sites {
				text := p.Sites[i].Args[0].Variable.Loc.Text(img.Arch())
				if n := strings.Count(text, "@"); n != calls {
					t.Errorf("%s %s: %s", option, definition, text)
				}
			}
			if len(p.Sites) != 1 {
				t.Errorf("%s %s: %d sites", option, definition, len(p.Sites))
			}
		}
	}
}
