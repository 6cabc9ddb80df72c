package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestEarly: without markers of statements, GCC loads in front of the caller's tests what a body behind one of them, and others, begin with. A hit there need not be a run of that body.
func TestEarly(t *testing.T) {
	const source = `
int quiet, used;
char out[256];
static __attribute__((noinline)) void add(int c) { out[used++ & 255] = c; }
static inline void put(int c)
{
	if (quiet)
		return;
	add(c);
}
static inline void puts4(unsigned c)
{
	while (c) {
		put(c);
		c = c >> 8;
	}
}
static __attribute__((noinline)) void more(int v) { if (quiet) return; used += v; put(v); put(v >> 8); }
__attribute__((noipa)) void encode(int op, int r, int s, int v)
{
	op = op << 3 & 0x38;
	if ((r & 63) == 48) {
		puts4(op | 5);
		more(v);
	} else if ((r & 63) == 50) {
		if (v == (signed char)v) {
			puts4(op | 0x45);
			put(v);
		} else {
			put(op | 0x85);
			more(v);
		}
	} else if (r & 32 && v) {
		put(op | r & 7 | 0x80);
		more(v);
	} else
		put(op | r & 7);
}
int main(int argc, char **argv) { encode(1, 48, 0, 1); encode(1, 50, 0, 1); encode(1, 32, 0, 1); encode(1, 1, 0, 1); return 0; }
`
	p := plantest.New(t, built(t, "gcc-12", "-O2 -gno-statement-frontiers", map[string]string{"a.c": source}), "put*", plan.Options{})
	var first *plan.Site
	for i := range p.Sites {
		if s := &p.Sites[i]; s.Symbol == "encode" && s.Function == "put" && (first == nil || s.Addr < first.Addr) {
			first = s
		}
	}
	if first == nil || !first.Way.Again {
		t.Errorf("%v is not said to be hit without a run", first)
	}
}
