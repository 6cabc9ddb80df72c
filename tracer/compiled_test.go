package tracer_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/tracer"
)

// Two inlined functions: the body of one begins with the head of its loop, which is
// turned five times in each call, the other's does not.
// Aligned, the first would begin with a NOP.
const loopSource = `
static volatile int sink, left;

static inline __attribute__((always_inline)) void turns(void)
{
	do {
		left = left - 1;
	} while (left > 0);
}

static inline __attribute__((always_inline)) void once(int n)
{
	sink = n;
	if (n > 100)
		sink = 2;
}

__attribute__((noinline)) void caller(int n)
{
	left = n;
	turns();
	sink = 1;
	once(n);
}

int main(void)
{
	caller(5);
	caller(5);
	return 0;
}
`

// compiled is a program that gcc makes of a source.
func compiled(t *testing.T, text string, options ...string) (path string, img *dwarfloc.Image) {
	t.Helper()
	return build(t, "gcc-12", "source.c", text, options...)
}

// TestReturns: a return probe is at a function's first instruction, also where the
// function's site is after that: it would take something else for the return address.
func TestReturns(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	const source = `
__attribute__((noinline)) int twice(int n) { return 2 * n; }
int main(void) { return twice(21) != 42; }
`
	for _, options := range [][]string{{"-O0"}, {"-O2"}, {"-O2", "-fpatchable-function-entry=8"}} {
		path, img := compiled(t, source, options...)
		p := plans(t, img, "twice n", "force=yes;twice%return $retval")
		got := traced(t, p, "", path)
		if want := []string{p[0].Sites[0].SymbolOffset() + " n=21", "twice retval=42"}; !cmp.Equal(got, want) {
			t.Errorf("%v: %q, want %q", options, got, want)
		}
	}
}

// TestOneRefused: the kernel has no uprobe at HLT. Other definitions are traced all the same.
func TestOneRefused(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	path, img := compiled(t, `
void halt(void) { __asm__ volatile("hlt"); }
__attribute__((noinline)) int twice(int n) { return 2 * n; }
int main(int argc, char **argv) { if (argc > 9) halt(); return twice(21) != 42; }
`, "-O2")
	p := plans(t, img, "inlines=no;halt", "twice n")
	if got, want := traced(t, p, "", path), []string{"twice n=21"}; !cmp.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	_, err := tracer.Open(context.Background(), inFile(t, img), plans(t, img, "inlines=no;halt", "inlines=no;x=halt"), tracer.Options{})
	if !errors.Is(err, instances.ErrRefused) || strings.Count(err.Error(), "the first is halt") != 2 {
		t.Errorf("nothing is attached: %v", err)
	}
}

// TestRepeats: a body begins with its own loop, at an address where a statement of its caller is
// too. A branch there may be the loop's or one of a loop of the caller, so a probe is hit on
// every turn, and the plan says so. As a span it is one run.
func TestRepeats(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	path, img := compiled(t, loopSource, "-O2", "-fno-align-loops")
	p := plans(t, img, "turns", "once")
	again := make(map[string]bool)
	for _, plan := range p {
		for i := range plan.Sites {
			if s := &plan.Sites[i]; s.Inlined() && s.Callers[0].Function == "caller" {
				again[s.Function] = again[s.Function] || s.Way.Again
			}
		}
	}
	if diff := cmp.Diff(map[string]bool{"turns": true, "once": false}, again); diff != "" {
		t.Errorf("which fire again (-want +got):\n%s", diff)
	}
	hits := make(map[string]int)
	run(t, p, "", []string{path}, func(pid int, h *tracer.Hit) {
		if h.PID == pid {
			hits[h.Plan.Sites[h.Site].Function]++
		}
	})
	if diff := cmp.Diff(map[string]int{"turns": 10, "once": 2}, hits); diff != "" {
		t.Errorf("hits of two calls (-want +got):\n%s", diff)
	}
	clear(hits)
	runSpans(t, spans(t, img, "turns", "once"), []string{path}, func(h *tracer.Hit) { hits[h.Plan.Sites[h.Site].Function]++ })
	if diff := cmp.Diff(map[string]int{"turns": 2, "once": 2}, hits); diff != "" {
		t.Errorf("runs of two calls (-want +got):\n%s", diff)
	}
}
