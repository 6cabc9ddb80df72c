package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestPassedRest: LLVM merges the last call of two runs of a function, on two paths, into code of line 0, where what both runs pass is in registers. Other runs of it on one of the paths have that call
// themselves. No run begins where the call is: what is passed there the runs have begun with.
func TestPassedRest(t *testing.T) {
	const source = `
#include <string.h>
#define NOINLINE __attribute__((noinline))
#define INLINE static inline __attribute__((always_inline))
struct printer {
	void (*write)(struct printer *, const char *, unsigned long);
	volatile int depth;
	char just;
};
volatile unsigned long sink;
NOINLINE void count(struct printer *p, const char *text, unsigned long size) { sink += size + *text; }
INLINE void put(struct printer *p, const char *text) { p->write(p, text, strlen(text)); }
NOINLINE void finish(struct printer *p, const char *name)
{
	p->depth--;
	if (p->just) {
		put(p, "/>");
	} else {
		if (p->depth < 0)
			sink++;
		put(p, "</");
		put(p, name);
		put(p, ">");
	}
	p->depth++;
	p->just = 0;
}
int main(int argc, char **argv)
{
	struct printer p = {count, argc, 1};
	finish(&p, argv[0]);
	finish(&p, argv[0]);
	return 0;
}
`
	for _, cc := range []string{"clang-16", "clang-19", "clang-22"} {
		exe := built(t, cc, "-O2", map[string]string{"a.c": source})
		if p := plantest.New(t, exe, "put", plan.Options{}); len(p.Sites) != 4 {
			t.Errorf("%s: %d probes of put: %v", cc, len(p.Sites), p.Sites)
		}
	}
}
