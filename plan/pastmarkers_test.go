package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestPastMarkers: a block in which GCC has left a body's markers and a jump alone is left out, and what led to it leads past the body's first test, to an instruction of the body from which on no
// statement of it has code, as in picosat's new_clause. Runs begin there too, and runs of other ways come there. Where all of the markers are kept, no probe is hit without a run.
func TestPastMarkers(t *testing.T) {
	const source = `
struct lists { unsigned long *head, *end, *first, *last; int size; };
volatile unsigned long seen;
__attribute__((noipa)) void *make(struct lists *p, unsigned long n) { seen = n; return p; }
__attribute__((noipa)) unsigned long *grow(unsigned long *s, unsigned long n) { seen = n; return s; }
static inline __attribute__((always_inline)) unsigned long bytes(struct lists *p, unsigned size, unsigned learned)
{
	unsigned long out = 24;
	out += size * 8ul;
	if (learned && size > 2)
		out += 4;
	return out;
}
void *add(struct lists *p, unsigned learned)
{
	unsigned size = p->size;
	if (learned) {
		if (p->head == p->end)
			p->head = grow(p->head, 8);
	} else {
		if (p->first == p->last)
			p->first = grow(p->first, 8);
	}
	return make(p, bytes(p, size, learned));
}
`
	for options, want := range map[string][2]int{"-Os -shared -fPIC": {3, 1}, "-O1 -shared -fPIC": {2, 0}} {
		hasWays(t, plantest.New(t, built(t, "gcc-12", options, map[string]string{"a.c": source}), "bytes size", plan.Options{}), want[0], want[1])
	}
}
