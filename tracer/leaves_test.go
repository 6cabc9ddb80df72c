package tracer_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/tracer"
)

// leavesSource has functions in C that end in each way: by instructions that return, by a jump to another function, by longjmp, and
// not at all; and one that calls itself deeper than a task has room for return probes (MAX_URETPROBE_DEPTH: 64).
const leavesSource = `
#include <setjmp.h>
#include <stdlib.h>
static jmp_buf back;
__attribute__((noinline)) int plain(int n) { if (n > 3) return n * 2; return n ? 7 : 9; }
__attribute__((noinline)) int tail(int n) { return n > 2 ? plain(n + 1) : n; }
__attribute__((noinline)) int deep(int n) { int r = n ? deep(n - 1) + 1 : 0; __asm__ volatile("" : "+r"(r)); return r; }
__attribute__((noinline)) int nested(int n) { int r = n > 0 ? nested(n - 1) + 1 : 0; __asm__ volatile("" : "+r"(r)); return n == 99 ? plain(n) : r; }
__attribute__((noinline)) int away(int n) { if (n == 2) longjmp(back, 1); return n == 99 ? plain(n) : n; }
__attribute__((noinline)) int jumps(int n) { if (n == 2) longjmp(back, 1); return n; }
__attribute__((noinline, noreturn)) void finish(int n) { exit(n); }
int main(void)
{
	int s = 0;
	for (int i = 0; i < 5; i++) {
		s += tail(i);
		if (!setjmp(back))
			s += jumps(i);
	}
	s += deep(200);
	for (int i = 0; i < 5; i++)
		if (!setjmp(back))
			away(i);
	nested(200);
	finish(s != 200 + 8 + 0 + 1 + 2 + 8 + 10);
}
`

// TestLeaves: hits of a definition of returns are the returns, however a function of C ends.
func TestLeaves(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	path, img := compiled(t, leavesSource, "-O2")
	p := plans(t, img, "tail%return $retval", "plain%return $retval", "deep%return $retval", "jumps%return $retval")
	count, sum := make(map[string]int), make(map[string]uint64)
	run(t, p, "", []string{path}, func(pid int, h *tracer.Hit) {
		if h.PID == pid {
			name := h.Plan.Definition.Point.Function
			count[name]++
			n, err := strconv.ParseUint(h.Values[0].String(), 0, 64)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			sum[name] += n
		}
	})
	if diff := cmp.Diff(map[string]int{"tail": 5, "plain": 3, "deep": 201, "jumps": 4}, count); diff != "" {
		t.Errorf("returns (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]uint64{"tail": 0 + 1 + 2 + 8 + 10, "plain": 8 + 10 + 198, "deep": 200 * 201 / 2, "jumps": 0 + 1 + 3 + 4}, sum); diff != "" {
		t.Errorf("sums of their results (-want +got):\n%s", diff)
	}
	// plain has return instructions only; tail ends with a jump, and nothing unwinds this program.
	for i, probe := range []bool{true, false, false, false} {
		if got := p[i].Sites[0].Return; got != probe {
			t.Errorf("%s: a return probe: %v", p[i].Definition, got)
		}
	}
}

// TestUnseenReturns: what a return probe does not see is counted: calls that are nested too deep, and one that longjmp leaves. A
// function whose probes are at its return instructions has none of the first kind.
func TestUnseenReturns(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	path, img := compiled(t, leavesSource, "-O2")
	const deepest = 64 // MAX_URETPROBE_DEPTH
	for _, tt := range []struct {
		definition string
		hits       int
		open       uint64
	}{
		{"deep%return $retval", 201, 0}, {"nested%return $retval", deepest, 201 - deepest}, {"away%return $retval", 4, 1}, {"tail%return $retval", 5, 0},
	} {
		p := plans(t, img, tt.definition)
		s, err := tracer.Open(context.Background(), inFile(t, img), p, tracer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		hits(t, s, "", []string{path}, func(pid int, _ *tracer.Hit) { n++ })
		u, err := s.Unreported()
		if err := errors.Join(err, s.Close()); err != nil {
			t.Fatal(err)
		}
		if n != tt.hits || u != (tracer.Unreported{Unpaired: tracer.Unpaired{Open: tt.open}}) {
			t.Errorf("%s: %d hits, %+v; want %d, %d open", tt.definition, n, u, tt.hits, tt.open)
		}
		_, rows, sum := summed(t, p, tracer.SummaryOptions{}, tracer.Options{}, path)
		if u, err := sum.Unreported(); err != nil || u.Open != tt.open || len(rows) != 1 || rows[0].Hits != uint64(tt.hits) {
			t.Errorf("counted: %s: %+v, %+v, %v", tt.definition, rows, u, err)
		}
	}
}

// callbackSource is a library in C that calls back what may throw.
const callbackSource = `
int each(int (*f)(int), int n) { int s = 0; for (int i = 0; i < n; i++) s += f(i); return s; }
int last(int (*f)(int), int n) { return f(n); }
`

const throwsSource = `
#include <cstdio>
extern "C" int each(int (*)(int), int), last(int (*)(int), int);
static int f(int n) { if (n == 3) throw 7; return n; }
int main() {
	int s = 0;
	for (int i = 0; i < 5; i++) {
		try { s += each(f, i); s += last(f, i); } catch (int e) { s += e; }
	}
	return s != 0 + 0 + 0 + 1 + 1 + 2 + 3 + 7 + 7;
}
`

// TestExceptionsThroughC: an exception passes functions in C, and the program goes on.
func TestExceptionsThroughC(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	library, _ := compiled(t, callbackSource, "-O2", "-shared", "-fPIC", "-fexceptions")
	img, err := dwarfloc.Open(library, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	path := filepath.Join(t.TempDir(), "throws")
	source := path + ".cc"
	if err := os.WriteFile(source, []byte(throwsSource), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("g++-12", "-o", path, source, library, "-Wl,-rpath,"+filepath.Dir(library)).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	count := make(map[string]int)
	run(t, plans(t, img, "each%return $retval", "last%return $retval"), "", []string{path}, func(pid int, h *tracer.Hit) {
		if h.PID == pid {
			count[h.Plan.Definition.Point.Function]++
		}
	})
	// each is left by an exception once; last ends with a jump, and so is left before f throws.
	if diff := cmp.Diff(map[string]int{"each": 4, "last": 4}, count); diff != "" {
		t.Errorf("returns (-want +got):\n%s", diff)
	}
	forced, err := plansOf(img, plan.Options{}, "force=yes;last%return $retval")
	if err != nil || !forced[0].Sites[0].Return {
		t.Errorf("force=yes: %v", err)
	}
	packed := plans(t, packOf(t, img), "each%return $retval", "last%return $retval", "force=yes;last%return $retval")
	for i, n := range []int{2, 1, 1} {
		if p := packed[i]; len(p.Sites) != n || p.Sites[0].Refused != nil || p.Sites[0].Return != (i == 2) {
			t.Errorf("by a pack: %s: %v, %v", p.Definition, p.Sites[0].SymbolOffset(), p.Sites[0].Refused)
		}
	}
}

// stacksSource has functions that end with a jump to another one, in tasks with more than one stack: two contexts that take turns in
// the middle of calls, and a signal that is handled on a stack above a thread's own.
const stacksSource = `
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
static ucontext_t ground, one, other;
static int of_one, of_other, of_thread;
__attribute__((noipa)) int finish(int n) { return n + 1; }
__attribute__((noipa)) void turn(int n) { if (n) swapcontext(&one, &other); else swapcontext(&other, &one); }
__attribute__((noipa)) int turns(int n) { turn(n); __asm__ volatile(""); return finish(n); }
static void in_one(void) { for (int i = 0; i < 3; i++) of_one += turns(1); swapcontext(&one, &other); swapcontext(&one, &ground); }
static void in_other(void) { for (int i = 0; i < 3; i++) of_other += turns(0); swapcontext(&other, &one); }
__attribute__((noipa)) int raises(int n) { if (n == 5) raise(SIGUSR1); return finish(n); }
static void handle(int x) { of_thread += raises(2); }
static void *in_thread(void *p) {
	stack_t high = {.ss_sp = p, .ss_size = 65536};
	sigaltstack(&high, 0);
	for (int i = 0; i < 10; i++)
		of_thread += raises(i);
	return 0;
}
static void make(ucontext_t *c, void (*f)(void)) {
	getcontext(c);
	c->uc_stack.ss_sp = malloc(65536);
	c->uc_stack.ss_size = 65536;
	makecontext(c, f, 0);
}
int main(void)
{
	make(&one, in_one);
	make(&other, in_other);
	swapcontext(&ground, &one);
	struct sigaction act = {.sa_handler = handle, .sa_flags = SA_ONSTACK};
	sigaction(SIGUSR1, &act, 0);
	char *area = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_attr_t low;
	pthread_attr_init(&low);
	pthread_attr_setstack(&low, area, 1 << 19);
	pthread_t t;
	pthread_create(&t, &low, in_thread, area + (1 << 19));
	pthread_join(t, 0);
	return of_one != 6 || of_other != 3 || of_thread != 58;
}
`

// TestOtherStacks: a program that changes stacks has no return probes, which would send its calls back to each other's callers.
func TestOtherStacks(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	path, img := compiled(t, stacksSource, "-O2", "-pthread")
	count := make(map[string]int)
	run(t, plans(t, img, "turns%return", "raises%return"), "", []string{"timeout", "20", path}, func(_ int, h *tracer.Hit) {
		if h.Plan.Sites[h.Site].Return {
			t.Error("a return probe")
		}
		count[h.Plan.Definition.Point.Function]++
	})
	if diff := cmp.Diff(map[string]int{"turns": 6, "raises": 11}, count); diff != "" {
		t.Errorf("returns (-want +got):\n%s", diff)
	}
}
