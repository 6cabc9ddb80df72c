package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestSunk: LLVM loads an argument in the midst of the body, in front of what needs it, with the line of the call and no column: the body goes on behind that. Where all of
// the body is one macro, what goes on there has the position with which runs begin.
func TestSunk(t *testing.T) {
	const source = `
#define NOINLINE __attribute__((noinline))
#define PUT(to, c) do { if ((c) == '\n') lines++; out(c, to); } while (0)
int lines, sink, *code;
const char *text;
NOINLINE int get(void) { return *text ? *text++ : -1; }
NOINLINE void out(int c, int *to) { *to += c; }
static inline __attribute__((always_inline)) void put(int *to, int c)
{
	PUT(to, c);
}
NOINLINE int trailing(void)
{
	int c = 'x', last = 0;
	do {
		put(code, c);
		last = c;
	} while ((c = get()) >= 0);
	return last;
}
NOINLINE void thrice(int c)
{
	for (int i = 0; i < 3; i++)
		put(code, c + i);
}
int main(void)
{
	code = &sink;
	text = "some\ntext\n";
	thrice('a');
	return trailing() & 1;
}
`
	for _, cc := range []string{"clang-14", "clang-16", "clang-19", "clang-22"} {
		p := plantest.New(t, built(t, cc, "-O2", map[string]string{"a.c": source}), "put", plan.Options{})
		ways := make(map[string]int)
		for i := range p.Sites {
			ways[p.Sites[i].Symbol]++
		}
		if ways["trailing"] != 1 || ways["thrice"] == 0 {
			t.Errorf("%s: probes by function: %v", cc, ways)
		}
	}
}
