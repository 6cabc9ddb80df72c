package tracer_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/tracer"
)

func spans(t *testing.T, img *dwarfloc.Image, texts ...string) (out []*plan.Span) {
	t.Helper()
	for _, text := range texts {
		def, err := probe.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		p, err := plan.NewSpan(context.Background(), img, def, plan.Options{})
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, p)
	}
	return out
}

// runSpans runs a command under spans, and calls f for each run of the command's process.
func runSpans(t *testing.T, p []*plan.Span, command []string, f func(h *tracer.Hit)) tracer.Unpaired {
	t.Helper()
	s, err := tracer.OpenSpans(context.Background(), inFile(t, p[0].Begin.Image), p, tracer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	hits(t, s, "", command, func(pid int, h *tracer.Hit) {
		if h.PID == pid {
			f(h)
		}
	})
	u, err := s.Unreported()
	if err != nil {
		t.Fatal(err)
	}
	return u.Unpaired
}

// Bodies that compilers unroll, peel, enter in the middle and split. one is in a loop, and in a
// branch; str is passed one of two constants; whil has a loop, and sum begins with one.
const bodies = `
volatile int counted[4];
volatile int sink;
int numbers[100];
#define INLINE static inline __attribute__((always_inline))
INLINE void one(int i, const char *s) { counted[0]++; sink += i + s[0]; }
INLINE void str(int i, const char *s) { counted[1]++; sink += i + s[0]; }
INLINE int whil(int n) { counted[2]++; int s = 0; while (n--) s += sink; return s; }
INLINE int sum(const int *p, int n) { int s = 0; while (n--) s += *p++ ^ n; counted[3]++; return s; }
__attribute__((noinline)) void work(int k) {
	for (int i = 0; i < 1000; i++) one(i, "abc");
	for (int i = 0; i < 12; i++) str(i, i % 3 ? "a" : "b");
	for (int i = 0; i < k; i++) sink = whil(i);
	sink = sum(numbers, k);
	if (k & 1) one(k, "x");
}
int main(void) { work(7); work(10); return counted[0] != 2001 || counted[1] != 24 || counted[2] != 17 || counted[3] != 2; }
`

var bodiesRun = map[string]int{"one": 2001, "str": 24, "whil": 17, "sum": 2}

// TestRuns: each run of an inlined body is seen once where it begins, once where it ends, and once
// as a span, whatever the compiler made of it. The debug information's own entry sees all of
// them in few of these programs.
func TestRuns(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	for _, c := range []struct{ compiler, options string }{
		{"gcc-12", "-O0"}, {"gcc-12", "-O2"}, {"gcc-12", "-O3 -funroll-loops"}, {"gcc-12", "-Os"}, {"gcc-12", "-O2 -flto"},
		{"gcc-12", "-O2 -gno-statement-frontiers"}, {"gcc-12", "-O2 -gno-variable-location-views"},
		{"clang-14", "-O1"}, {"clang-14", "-O3"}, {"clang-16", "-O3"},
	} {
		t.Run(c.compiler+" "+c.options, func(t *testing.T) {
			path, img := build(t, c.compiler, "s.c", bodies, strings.Fields(c.options)...)
			for _, suffix := range []string{"", "%exit"} {
				got := make(map[string]int)
				var texts []string
				for _, name := range slices.Sorted(maps.Keys(bodiesRun)) {
					texts = append(texts, name+suffix)
				}
				p := plans(t, img, texts...)
				for _, p := range p {
					for i := range p.Sites {
						if p.Sites[i].Way.Unknown != "" {
							t.Errorf("%v: %s", &p.Sites[i], p.Sites[i].Way.Unknown)
						}
					}
				}
				run(t, p, "", []string{path}, func(pid int, h *tracer.Hit) {
					if h.PID == pid {
						got[h.Plan.Sites[h.Site].Function]++
					}
				})
				if suffix != "" && strings.Contains(c.options, "-flto") {
					delete(got, "sum") // its last instructions are among those of its caller
				}
				for name, n := range got {
					if n != bodiesRun[name] {
						t.Errorf("%s%s: %d hits of %d runs", name, suffix, n, bodiesRun[name])
					}
				}
			}
			got := make(map[string]int)
			runSpans(t, spans(t, img, "one i", "str i", "whil n", "sum n"), []string{path}, func(h *tracer.Hit) {
				got[h.Plan.Sites[h.Site].Function]++
				if h.Duration <= 0 || h.Duration > time.Second {
					t.Errorf("%v: %v", &h.Plan.Sites[h.Site], h.Duration)
				}
			})
			if diff := cmp.Diff(bodiesRun, got); diff != "" {
				t.Errorf("spans (-want +got):\n%s", diff)
			}
		})
	}
}

// TestExceptions: bodies that end by exceptions, and run while one is thrown.
func TestExceptions(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	const source = `
#include <stdexcept>
volatile int begun, cleaned, sink;
struct D { int v; ~D(); };
static inline __attribute__((always_inline)) void cleanup(int v) { cleaned++; sink += v; }
D::~D() { cleanup(v); }
__attribute__((noinline)) int may(int x) { if (x % 3 == 0) throw std::runtime_error("x"); return x; }
static inline __attribute__((always_inline)) int body(int x) { begun++; D d{x}; return may(x) + 1; }
__attribute__((noinline)) int work(int k) { int s = 0; for (int i = 0; i < k; i++) try { s += body(i); } catch (std::exception &e) { sink++; } return s; }
__attribute__((noinline)) int choose(int x) {
	switch (x) { case 0: cleanup(1); return 3; case 1: return 9; case 2: cleanup(x * sink); return 1; case 3: return 17;
	case 4: cleanup(4); case 5: sink++; cleanup(5); return 2; case 6: return may(1); }
	return 0;
}
int main() { work(10); work(20); for (int i = 0; i < 9; i++) choose(i); return begun != 30 || cleaned != 35; }
`
	for _, c := range []struct{ compiler, options string }{{"g++-12", "-O0"}, {"g++-12", "-O2"}, {"g++-12", "-O2 -flto"}, {"clang++-14", "-O2"}} {
		path, img := build(t, c.compiler, "s.cc", source, strings.Fields(c.options)...)
		got := make(map[string]int)
		u := runSpans(t, spans(t, img, "body x", "cleanup v"), []string{path}, func(h *tracer.Hit) { got[h.Plan.Sites[h.Site].Function]++ })
		if diff := cmp.Diff(map[string]int{"body": 30, "cleanup": 35}, got); diff != "" || u.Open != 0 {
			t.Errorf("%s %s: %+v (-want +got):\n%s", c.compiler, c.options, u, diff)
		}
	}
}

// TestUnpaired: recursion is paired by its frames, and a run that longjmp ends has no end, and is counted too.
func TestUnpaired(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	const source = `
#include <setjmp.h>
jmp_buf back;
volatile int sink;
__attribute__((noinline)) int down(int n) { return n == 0 ? 0 : down(n - 1) + n; }
__attribute__((noinline)) void leap(int n) { sink = n; if (n & 1) longjmp(back, 1); sink++; }
__attribute__((noinline)) void try(int n) { if (!setjmp(back)) leap(n); }
int main(void) { for (int i = 0; i < 4; i++) try(i); return down(5) != 15; }
`
	path, img := build(t, "gcc-12", "s.c", source, "-O2", "-fno-optimize-sibling-calls")
	var got []string
	u := runSpans(t, spans(t, img, "down n", "leap n"), []string{path}, func(h *tracer.Hit) {
		line := h.Plan.Sites[h.Site].Function
		for _, v := range slices.Concat(h.Values, h.Results) {
			line += fmt.Sprintf(" %s=%s", v.Name, v)
		}
		if h.Outcome != "" {
			line += ", " + h.Outcome
		}
		got = append(got, line)
	})
	slices.Sort(got)
	want := []string{
		"down n=0 retval=0", "down n=1 retval=1", "down n=2 retval=3", "down n=3 retval=6", "down n=4 retval=10", "down n=5 retval=15",
		"leap n=0", "leap n=1, began again", "leap n=2", "leap n=3, not ended",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if u != (tracer.Unpaired{Begins: 1, Open: 1}) {
		t.Errorf("unpaired: %+v", u)
	}
}

// TestUnwinding: an exception passes functions whose returns are probed. A return probe would end
// the program ("terminate called").
func TestUnwinding(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	const source = `
#include <stdexcept>
volatile int sink;
__attribute__((noinline)) int may(int x) { if (x % 3 == 0) throw std::runtime_error("x"); return x + 1; }
__attribute__((noinline)) int mid(int x) { int r = may(x); sink += r; return r * 2; }
__attribute__((noinline)) int tail(int x) { sink++; return may(x + 1); }
int main() { int n = 0; for (int i = 0; i < 5; i++) try { n += mid(i); n += tail(i); } catch (std::exception &e) { n--; } return n != 26; }
`
	for _, c := range []struct{ compiler, options, tail string }{{"g++-12", "-O2", "?"}, {"clang++-14", "-O0", "3"}} {
		path, img := build(t, c.compiler, "s.cc", source, c.options)
		var got []string
		run(t, plans(t, img, "mid%return $retval", "tail%exit $retval"), "", []string{path}, func(pid int, h *tracer.Hit) {
			if h.PID == pid {
				got = append(got, fmt.Sprintf("%s %s", h.Plan.Sites[h.Site].Function, h.Values[0]))
			}
		})
		want := []string{"mid 4", "tail " + c.tail, "mid 6", "mid 10", "tail 6"}
		if c.tail == "?" {
			want = []string{"mid 4", "tail ?", "mid 6", "tail ?", "mid 10", "tail ?"} // where it jumps, before may throws
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", c.compiler, c.options, diff)
		}
	}
}
