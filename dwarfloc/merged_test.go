package dwarfloc_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/glob"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/runs"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/sites"
)

// waysOf returns the inlined instances of a function of a program, and their ways.
func waysOf(t *testing.T, path, name string) ([]*dwarfloc.Site, []runs.Ways) {
	t.Helper()
	img := testenv.Open(t, path)
	pattern, err := glob.Compile(name)
	if err != nil {
		t.Fatal(err)
	}
	found, err := sites.Select(t.Context(), img, sites.Selection{Functions: pattern})
	if err != nil {
		t.Fatal(err)
	}
	ways, err := inside.Ways(img, t.Context(), found)
	if err != nil {
		t.Fatal(err)
	}
	return found, ways
}

// TestMergedInstances: LLVM takes the count, with which each run begins, out of the three instances of
// constant, and what two of them end with out of these. What it takes out has an instance of its own.
func TestMergedInstances(t *testing.T) {
	const source = `
volatile long runs;
volatile int sink;
#define INLINE static inline __attribute__((always_inline))
INLINE int constant(int mode, int x)
{
	runs++;
	switch (mode) {
	case 0:
		return x;
	case 1:
		sink = x;
		return x + 1;
	}
	sink = mode;
	return x * mode;
}
__attribute__((noinline)) int choose(int k, int r)
{
	if (k == 0)
		r += constant(0, r);
	else if (k == 3)
		r += constant(1, r);
	else
		r += constant(k, r);
	return r;
}
int main(int argc, char **argv) { return choose(argc, 2); }
`
	for _, compiler := range []string{"clang-19", "clang-22"} {
		found, ways := waysOf(t, compile(t, compiler, source, "-g", "-O1", "-fPIE"), "constant")
		in, out := enteredOnce(t, compiler, found, ways)
		if len(found) != 3 || in != 1 || out != 3 {
			t.Errorf("%s: %d instances have %d ways in and %d out: %+v", compiler, len(found), in, out, ways)
		}
	}
}

// enteredOnce returns how many ways in and out there are, each of which sees its runs once.
func enteredOnce(t *testing.T, compiler string, found []*dwarfloc.Site, ways []runs.Ways) (in, out int) {
	t.Helper()
	for i, w := range ways {
		if w.Unknown != "" || w.Within != (len(w.In) == 0) {
			t.Errorf("%s: %v: %+v", compiler, found[i], w)
		}
		for _, y := range w.In {
			if y.Again {
				t.Errorf("%s: %v: %+v", compiler, found[i], y)
			}
		}
		in, out = in+len(w.In), out+len(w.Out)
	}
	return in, out
}

// TestMergedWithoutLine: what LLVM merges of two calls, here a copy of their result, can have an
// instance at the calls' line, with instructions of no line: it is nobody's run.
func TestMergedWithoutLine(t *testing.T) {
	const source = `
volatile long runs;
volatile int sink;
struct shape { virtual int area(int) const { return sink; } virtual ~shape() {} };
struct square : shape { int area(int k) const override { return k * k; } };
struct cleanup { ~cleanup() { sink = 1; } };
static inline __attribute__((always_inline)) int call(const shape &s, int k)
{
	runs = runs + 1;
	return s.area(k);
}
__attribute__((noinline)) int twice(const shape &a, const shape &b, int k)
{
	cleanup c;
	return call(a, k) + call(b, 3);
}
int main(int argc, char **) { square a; shape b; return twice(a, b, argc); }
`
	for _, compiler := range []string{"clang++-19", "clang++-22"} {
		found, ways := waysOf(t, compile(t, compiler, source, "-g", "-O1", "-fPIE"), "call")
		in, out := enteredOnce(t, compiler, found, ways)
		if len(found) != 3 || in != 2 || out != 4 {
			t.Errorf("%s: %d instances have %d ways in and %d out: %+v", compiler, len(found), in, out, ways)
		}
	}
}

// TestNoCopy: in one block, LLVM has two instructions of one position of a body, with instructions of another
// one between them, and only then the count: that is one run.
func TestNoCopy(t *testing.T) {
	const source = `
volatile long runs;
volatile int sink;
static inline __attribute__((always_inline)) void both_sides(int x)
{
	runs++;
	if (x & 1)
		sink = x;
	else
		sink = -x;
}
__attribute__((noinline)) int other(int k) { return k * sink; }
__attribute__((noinline)) void paths(int k)
{
	both_sides(k);
	both_sides(k + 1);
	for (int i = 0; i < k; i++)
		both_sides(i);
	sink = other(k);
	sink = other(k & 1);
}
int main(int argc, char **argv) { paths(argc); return 0; }
`
	for _, compiler := range []string{"clang-19", "clang-22"} {
		found, ways := waysOf(t, compile(t, compiler, source, "-g", "-O1", "-fPIE"), "both_sides")
		if in, out := enteredOnce(t, compiler, found, ways); len(found) != 3 || in != 3 || out != 3 {
			t.Errorf("%s: %d instances have %d ways in and %d out: %+v", compiler, len(found), in, out, ways)
		}
	}
}

// TestTail: GCC merges the equal ends of two functions that are inlined in one. Where a run of the one comes to the end that the line table gives to the
// other, no run of that begins.
func TestTail(t *testing.T) {
	const source = `
struct value { long a, b; };
struct state { long a, b, c; struct value stack[16]; int top, depth; };
volatile long sink;
static struct value none;
__attribute__((noinline)) long step(struct state *s, long n) { sink += n; return s->a + n; }
__attribute__((noinline)) void push(struct state *s, struct value v) { s->stack[s->top++ & 15] = v; }
static struct value *at(struct state *s, int n) { n = s->top + n; return n < 0 ? &none : &s->stack[n]; }
static void light(struct state *s, int n)
{
	struct value v;
	if (n > s->a)
		step(s, n);
	v = *at(s, -1);
	s->top = --s->depth;
	push(s, v);
	s->c = s->b;
}
static void heavy(struct state *s, int n)
{
	struct value v;
	s->b = step(s, 7);
	for (int i = 0; i < n; i++)
		step(s, i);
	v = s->stack[n & 7];
	s->top = --s->depth;
	push(s, v);
	s->c = s->b;
}
__attribute__((noinline)) void call(struct state *s, int kind, int n)
{
	if (kind == 1)
		light(s, n);
	else if (kind == 2)
		heavy(s, n);
	else
		sink++;
}
int main(void) { static struct state s; for (int i = 0; i < 10; i++) { s.depth = 3; call(&s, 1, i); } return s.top & 1; }
`
	found, ways := waysOf(t, compile(t, "gcc-12", source, "-g", "-O2"), "heavy")
	if len(found) != 1 {
		t.Fatalf("%d instances", len(found))
	}
	sure := 0
	for _, w := range ways[0].In {
		if !w.Again || len(w.Before) > 0 {
			sure++
		}
	}
	if sure != 1 || len(ways[0].In) < 2 {
		t.Errorf("%+v", ways[0].In)
	}
}

// TestSpeculated: LLVM moves what a body computes before the test that decides whether it runs.
func TestSpeculated(t *testing.T) {
	const source = `
void exit(int);
struct state { struct { long v; char type; } *items; int top; int failed; };
void fail(struct state *);
static inline void overflow(struct state *s) { s->items[s->top].type = 5; s->items[s->top].v = 77; ++s->top; fail(s); }
__attribute__((noinline)) long copy(struct state *s, int n)
{
	long v = 0;
	if (s->top + 1 >= 256)
		overflow(s);
	v = s->items[s->top - n].v;
	s->items[s->top].v = v;
	s->items[s->top].type = 3;
	++s->top;
	return v;
}
__attribute__((noinline, noreturn)) void fail(struct state *s) { exit(s->top); }
int main(void) { static struct state s; s.items = __builtin_calloc(300, 16); for (int i = 1; i < 10; i++) copy(&s, 0); return s.top; }
`
	for _, compiler := range []string{"clang-14", "clang-16"} {
		found, ways := waysOf(t, compile(t, compiler, source, "-g", "-O2", "-w"), "overflow")
		if len(found) != 1 || len(ways[0].In) != 1 {
			t.Fatalf("%s: %v %+v", compiler, found, ways)
		}
		// The body calls fail, and copy returns before that.
		if w := ways[0].In[0]; found[0].Addr+16 > w.Probe || w.Again {
			t.Errorf("%s: %v: %+v", compiler, found[0], w)
		}
	}
}

// TestConvertedPart: GCC computes both shifts, and chooses, without a marker of either. What is left of right is the part that it was split into.
func TestConvertedPart(t *testing.T) {
	const source = `
short right(short a, int n)
{
	if (n >= 16)
		return -(a < 0);
	if (n <= -16)
		return 0;
	if (n < 0)
		return a << -n;
	return a >> n;
}
short left(short a, int n)
{
	if (n >= 16)
		return 0;
	if (n <= -16)
		return -(a < 0);
	if (n < 0)
		return right(a, -n);
	return a << n;
}
int main(int argc, char **argv) { return left(argc, argc); }
`
	for _, option := range []string{"-gvariable-location-views", "-gno-variable-location-views"} {
		found, ways := waysOf(t, compile(t, "gcc-12", source, "-g", "-O2", option), "right")
		some := false
		for i, s := range found {
			if s.Symbol != "left" || ways[i].Within {
				continue
			}
			if some = true; len(ways[i].In) != 1 || !ways[i].In[0].Again {
				t.Errorf("%s: %v: %+v", option, s, ways[i])
			}
		}
		if !some {
			t.Errorf("%s: right is not inlined in left: %v", option, found)
		}
	}
}

// TestLoadedAgain: a register that was stored to the frame is loaded again with the position of the body's instruction that needs it, and one of the caller's comes before
// that. The load is no copy of the body's.
func TestLoadedAgain(t *testing.T) {
	const source = `
volatile unsigned long sink, other;
static inline unsigned long load(const char *p)
{
	return *(const unsigned long *)(p + 4);
}
__attribute__((noipa)) unsigned sum(const char *p, unsigned n, unsigned m)
{
	do {
		asm volatile("" ::: "rax", "rdx", "rbx", "rcx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "rbp");
		n += m;
		unsigned long v = load(p);
		sink = n;
		other = v;
	} while (n < 95);
	return n;
}
int main(int argc, char **argv) { return sum(argv[0], argc + 2, argc); }
`
	found, ways := waysOf(t, compile(t, "gcc-12", source, "-g", "-O2", "-gno-statement-frontiers"), "load")
	if len(found) != 1 || len(ways[0].In) != 1 {
		t.Errorf("%v %+v", found, ways)
	}
}

// TestComparedAgain: LLVM compares once for two bodies, and again in front of the second one's branch, with the position of the first one.
func TestComparedAgain(t *testing.T) {
	const source = `
struct progress { int (*callback)(int); int data, limit; };
volatile int sink;
__attribute__((noinline)) int work(int n) { sink++; return n + 1; }
#define INLINE static inline __attribute__((always_inline))
INLINE void start(int (*callback)(int), int n, struct progress *p)
{
	if (callback == 0) {
		p->callback = 0;
		return;
	}
	p->callback = callback;
	p->data = n;
}
INLINE void end(int (*callback)(int), struct progress *p)
{
	if (callback != 0)
		sink = p->data + callback(p->limit);
}
__attribute__((noinline)) int trace(int (*callback)(int), int n, struct progress *p)
{
	start(callback, n, p);
	if (work(n) == 7)
		return -1;
	for (int i = 0; i < n; i++)
		sink += work(i) * 3;
	p->limit = work(sink);
	end(callback, p);
	return n;
}
int main(int argc, char **argv)
{
	struct progress p = {0};
	return trace(argc > 1 ? work : 0, argc, &p) + trace(work, argc, &p);
}
`
	for _, compiler := range []string{"clang-14", "clang-19"} {
		found, ways := waysOf(t, compile(t, compiler, source, "-g", "-O2", "-w"), "start")
		some := false
		for i, s := range found {
			if s.Symbol != "trace" {
				continue
			}
			if some = true; len(ways[i].In) != 1 || ways[i].In[0].Addr != s.Addr {
				t.Errorf("%s: %v: %+v", compiler, s, ways[i])
			}
		}
		if !some {
			t.Errorf("%s: start is not inlined in trace: %v", compiler, found)
		}
	}
}

// TestHoistedLoad: GCC loads what all cases test before the switch, with the place that it has in one of them, whose rest it has merged with that of another.
func TestHoistedLoad(t *testing.T) {
	const source = `
struct lfo { int type, rate, depth, phase; };
extern int rand(void);
extern const int sine[64];
static int mod(struct lfo *l)
{
	int val;
	if (l->rate == 0)
		return 0;
	switch (l->type) {
	case 0:
		val = sine[l->phase];
		break;
	case 1:
		val = 255 - (l->phase << 3);
		break;
	case 2:
		val = l->phase < 32 ? 255 : -255;
		break;
	case 3:
		val = (rand() & 0x1ff) - 256;
		break;
	case 669:
		val = l->phase & 1;
		break;
	default:
		return 0;
	}
	return val * l->depth;
}
static int square(struct lfo *l)
{
	if (l->rate == 0) {
		return 0;
	}
	if (l->type == 2) {
		int val = l->phase < 32 ? 255 : 0;
		return val * l->depth;
	}
	return mod(l);
}
static int ramp(struct lfo *l)
{
	if (l->rate == 0)
		return 0;
	if (l->type == 1) {
		int phase = (l->phase + 32) % 64;
		int val = (phase << 3) - 255;
		return val * l->depth;
	}
	return mod(l);
}
static int it(struct lfo *l)
{
	if (l->rate == 0)
		return 0;
	return square(l);
}
int get(int *kind, struct lfo *l, int vibrato)
{
	switch (kind[7]) {
	case 2:
		return square(l);
	case 1:
		if (vibrato) {
			return ramp(l);
		} else {
			return mod(l);
		}
	case 3:
		return it(l);
	default:
		return mod(l);
	}
}
const int sine[64] = {1, 2};
int main(int n, char **v) { struct lfo l = {n, n, n, n}; int k[8] = {0}; return get(k, &l, n); }
`
	found, ways := waysOf(t, compile(t, "gcc-12", source, "-g", "-O3"), "square")
	some := false
	for i, s := range found {
		if s.Symbol != "get" || len(s.Callers) > 1 {
			continue
		}
		if some = true; len(ways[i].In) != 1 || !ways[i].In[0].Again {
			t.Errorf("%v: %+v", s, ways[i])
		}
	}
	if !some {
		t.Errorf("square is not inlined in get: %v", found)
	}
}
