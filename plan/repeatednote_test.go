package plan_test

import (
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestRepeatedNote: GCC notes for a call whose argument is a choice, and is not passed, what the call before it passes. Behind a call that passes another number the note is its own.
func TestRepeatedNote(t *testing.T) {
	const source = `
volatile long sink;
long values[8];
static __attribute__((noinline)) long kept(unsigned long unused, long used) { sink = used; return sink + 100; }
static __attribute__((noinline)) long own(unsigned long unused, long used) { sink = used; return sink + 101; }
static inline long first(long n) { return kept(100, n + 1); }
static inline long second(long n)
{
	n += sink;
	n += first(n);
	n += kept(values[n & 7] ? (_Bool)n : n - 7, n ^ 3);
	return n;
}
__attribute__((noinline)) long both(long n) { return second(n) + 1; }
__attribute__((noinline)) long three(long n) { n += own(100, n + 1); n += own(102, n ^ 3); return n + own(100, n + 5); }
int main(void)
{
	for (int i = 0; i < 9; i++)
		sink = both(i) + three(i);
	return 0;
}
`
	for _, option := range []string{"-O2", "-Os"} {
		img := built(t, "gcc-12", option, map[string]string{"a.c": source})
		for definition, calls := range map[string]int{"kept unused": 1, "own unused": 3} {
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
