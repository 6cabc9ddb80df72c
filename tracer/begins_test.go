package tracer_test

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/tracer"
)

// TestWhereRunsBegin traces programs that count the runs of a function. A hit is a run, or its site says that it may be none.
func TestWhereRunsBegin(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	// GCC jumps to the last statement of a body behind the end of the run before, the caller's loop and the beginning of the next run, none of
	// which has code there.
	const shared = `
#include <stdio.h>
volatile long sum, runs;
__attribute__((noinline)) int half(int n) { sum += n; return n; }
static inline __attribute__((always_inline)) int step(int n)
{
	if (n == 4) { sum++; return 50; }
	if (n > 6) { sum += 5; return n; }
	sum += half(n);
	return n + 1;
}
__attribute__((noinline)) int all(int n) { int t = 0; for (; n > 0; n--) t += step(n); return t; }
int main(void) { int t = all(9); runs = 9; printf("%d runs %ld\n", t & 0, runs); return 0; }
`
	// The ends of the bodies are equal: GCC jumps from the one into the other.
	const equal = `
#include <stdio.h>
volatile long runs;
struct buffer { long level; int used; char space[200]; } b;
struct value { long n; char tag; } v;
__attribute__((noinline)) int print(struct value *v, char *to) { *to = v->tag; return (int)v->n & 7; }
__attribute__((noinline)) void flush(struct buffer *b) { b->used = 0; b->level++; }
static inline char *room(struct buffer *b, int n) { runs++; if (b->used + n > 200) flush(b); return b->space + b->used; }
static inline void number(struct buffer *b, struct value *v) { char *to = room(b, 40); b->used += print(v, to); }
__attribute__((noinline)) void format(struct buffer *b, const char *f, int i, double d)
{
	for (; *f; f++)
		switch (*f) {
		case 'd': { struct value v; v.n = i; v.tag = 3; number(b, &v); break; }
		case 'f': { struct value v; v.n = (long)d; v.tag = 19; number(b, &v); break; }
		case 'x': b->level += i; break;
		case 'y': b->level -= i; break;
		case 'z': b->level ^= i; break;
		}
}
int main(void) { format(&b, "dfdxdyfzd", 5, 2.5); printf("runs %ld\n", runs); return 0; }
`
	// A function and the part that GCC splits off it are inlined again: what is inlined in both is one run.
	const split = `
#include <stdio.h>
volatile long runs;
unsigned counts[70];
__attribute__((noinline)) int log2of(unsigned n) { int l = 0; while (n >>= 1) l++; return l; }
static unsigned index_of(long k) { runs++; if ((unsigned long)k - 1u < 0x7fffffff) return (unsigned)k; else return 0; }
static int count(long k, unsigned *counts)
{
	unsigned n = index_of(k);
	if (n != 0) { counts[log2of(n)]++; return 1; }
	else return 0;
}
__attribute__((noinline)) int one(long *k, unsigned *c) { int n = 0; if (*k & 1) n += count(*k, c); return n; }
__attribute__((noinline)) int many(long *k, int n, unsigned *c) { int t = 0; while (n--) if (k[n]) t += count(k[n], c); return t; }
int main(void) { long k[] = {1, 0, 5, -3, 7, 2000, 9}; int t = 0; for (int i = 0; i < 7; i++) t += one(k + i, counts); t += many(k, 7, counts); printf("runs %ld %d\n", runs, t); return 0; }
`
	// LLVM makes a loop of the recursion, and moves what the body computes of n out of it.
	const invariant = `
#include <stdio.h>
volatile long sum;
__attribute__((noinline)) int half(int n) { sum += n; return n / 2; }
static inline __attribute__((always_inline)) int step(int n, int m)
{
	if (n & 1) { sum += half(m); sum += half(n - 2); }
	if (m == 2) { sum += half(n * 3); for (int i = 0; i < (n & 3); i++) sum += half(n ^ i); }
	if (n & 1) return n ^ 3;
	sum += n;
	sum += half(m + n);
	return n + m;
}
__attribute__((noinline)) int down(int n) { if (n <= 0) return 0; int x = step(n, n & 3); return x + down(n - 1); }
int main(void) { int t = down(11); printf("%d runs 11\n", t & 0); return 0; }
`
	// A loop of the body is unrolled: its copies are turns, and the rest of the body follows once.
	const turns = `
#include <stdio.h>
volatile long sum;
long runs;
unsigned short counts[9] = {1, 2, 3, 4, 5, 6, 7, 8}, next[9];
static inline __attribute__((always_inline)) void codes(unsigned char *lengths, int n)
{
	unsigned code = 0;
	for (int bits = 1; bits < 9; bits++) {
		code = (code + counts[bits - 1]) << 1;
		next[bits] = (unsigned short)code;
	}
	for (int i = 0; i < n; i++)
		if (lengths[i]) sum += next[lengths[i] & 7]++;
}
__attribute__((noinline)) void build(unsigned char *l, int n) { for (int i = 0; i < n; i++) { runs++; codes(l, i); } }
int main(void) { unsigned char l[] = {1, 5, 0, 3, 2, 7}; build(l, 6); printf("runs %ld\n", runs); return 0; }
`
	// One body has instructions before the caller's test, and no statement that is its own alone.
	const converted = `
#include <stdio.h>
volatile long sum;
__attribute__((noinline)) int half(int n) { sum += n; return n; }
static inline __attribute__((always_inline)) int step(int n, int m)
{
	if (m > n) { sum += half(n * 2); } else { sum += half(n - 3); }
	if (m > n) return n;
	return n + m;
}
__attribute__((noinline)) int all(int n) { int t = 0; for (int i = 0; i < n; i++) t += i > 3 ? step(i, 4) : step(4, i); return t; }
int main(void) { int t = all(10); printf("%d runs 10\n", t & 0); return 0; }
`
	// GCC makes two loops of one, and leaves the statements of both in both.
	const distributed = `
#include <stdio.h>
struct v { double x, y; };
struct plane { struct v at, n; };
struct turn { double a, b, c, d, x, y; };
static inline struct v moved(struct turn t, struct v p) { return (struct v){t.a * p.x + t.c * p.y + t.x, t.b * p.x + t.d * p.y + t.y}; }
static inline struct v turned(struct turn t, struct v p) { return (struct v){t.a * p.x + t.c * p.y, t.b * p.x + t.d * p.y}; }
static inline double low(double a, double b) { return a < b ? a : b; }
__attribute__((noinline)) double all(struct plane *to, int count, struct turn t)
{
	struct plane *from = to + count;
	double l = 1e9, b = 1e9;
	for (int i = 0; i < count; i++) {
		struct v p = moved(t, from[i].at), n = turned(t, from[i].n);
		to[i].at = p;
		to[i].n = n;
		l = low(l, p.x);
		b = low(b, p.y);
	}
	return l + b;
}
int main(void)
{
	struct plane p[14];
	for (int i = 0; i < 14; i++) p[i] = (struct plane){{i, i + 1}, {i, -i}};
	double d = all(p, 7, (struct turn){1, 2, 3, 4, 5, 6});
	printf("%d runs 7\n", d == 0);
	return 0;
}
`
	// GCC computes both parts of a sum at one position, with what else it needs between them, and markers of statements are not written.
	const parts = `
#include <stdio.h>
struct v { double x, y; };
struct body { struct v at, by; double m, w, i; };
static inline struct v made(double x, double y) { struct v v = {x, y}; return v; }
static inline __attribute__((always_inline)) struct v add(struct v a, struct v b) { return made(a.x + b.x, a.y + b.y); }
static inline __attribute__((always_inline)) struct v scaled(struct v a, double by) { return made(a.x * by, a.y * by); }
static inline __attribute__((always_inline)) double cross(struct v a, struct v b) { return a.x * b.y - a.y * b.x; }
__attribute__((noinline)) void push(struct body *b, struct v j, struct v r)
{
	b->at = add(b->at, scaled(j, b->m));
	b->w += b->i * cross(r, j);
}
int main(void)
{
	struct body b = {{1, 2}, {3, 4}, 5, 6, 7};
	for (int i = 0; i < 5; i++) push(&b, b.by, b.at);
	printf("%d runs 5\n", b.w == 0);
	return 0;
}
`
	// LLVM makes the constant that two bodies store again in the loop, for the first of them.
	const constant = `
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct point { long x, y; };
struct edge { struct point bot, curr, top; double dx; long side; struct edge *next, *prev; long more[6]; };
long tested;
__attribute__((noinline)) void test(struct point *p) { tested += p->x; }
static inline __attribute__((always_inline)) void init(struct edge *e, struct edge *next, struct edge *prev, struct point *p)
{
	memset(e, 0, sizeof *e);
	e->next = next;
	e->prev = prev;
	e->curr = *p;
	e->side = -1;
}
__attribute__((noinline)) void all(struct edge *e, struct point **p, int high)
{
	test(*p);
	init(&e[0], &e[1], &e[high], &(*p)[0]);
	init(&e[high], &e[0], &e[high - 1], &(*p)[high]);
	for (int i = high - 1; i >= 1; i--) {
		test(&(*p)[i]);
		init(&e[i], &e[i + 1], &e[i - 1], &(*p)[i]);
	}
}
int main(void)
{
	struct point *p = calloc(8, sizeof *p);
	struct edge *e = malloc(8 * sizeof *e);
	all(e, &p, 7);
	printf("%d runs 8\n", (int)e->side);
	return 0;
}
`
	gcc, clang := []string{"gcc-12 -O2", "gcc-12 -O3", "gcc-12 -Os", "gcc-12 -O2 -gno-variable-location-views"}, []string{"clang-14 -O2", "clang-16 -O2", "clang-19 -O2"}
	for _, c := range []struct {
		name, source, function string
		builds                 []string
	}{
		{"an address that a run ends and begins at", shared, "step", gcc},
		{"equal ends", equal, "room", gcc},
		{"equal ends around a body", equal, "number", gcc},
		{"a part", split, "index_of", gcc},
		{"before a test", converted, "step", gcc},
		{"code in the first of two loops", distributed, "turned", []string{"gcc-12 -O3"}},
		{"code in the second of two loops", distributed, "moved", []string{"gcc-12 -O3"}},
		{"parts of a sum", parts, "add", []string{"gcc-12 -O2 -fno-tree-vectorize -gno-statement-frontiers", "gcc-12 -Os -gno-statement-frontiers"}},
		{"a constant of several bodies", constant, "init", clang},
		{"out of a loop", invariant, "step", clang},
		{"turns of an unrolled loop", turns, "codes", clang},
	} {
		for _, b := range c.builds {
			t.Run(c.name+", "+b, func(t *testing.T) {
				compiler, options, _ := strings.Cut(b, " ")
				path, img := build(t, compiler, "runs.c", c.source, strings.Fields(options)...)
				out, err := exec.Command(path).Output()
				if err != nil {
					t.Fatal(err)
				}
				var want int
				if at := strings.Index(string(out), "runs "); at < 0 {
					t.Fatalf("%q", out)
				} else if _, err := fmt.Sscanf(string(out[at:]), "runs %d", &want); err != nil {
					t.Fatal(err)
				}
				hits, marked := 0, 0
				run(t, plans(t, img, c.function), "", []string{path}, func(pid int, h *tracer.Hit) {
					if h.PID != pid {
						return
					}
					hits++
					if h.Plan.Sites[h.Site].Way.Again {
						marked++
					}
				})
				if hits < want || hits-marked > want {
					t.Errorf("%d hits, %d of them marked, of %d runs", hits, marked, want)
				}
			})
		}
	}
}
