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
	// LLVM copies the end of a block to the paths that go on alike: what another body returns then leaves by a jump of this one's.
	const ends = `
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct item { struct item *next, *prev, *child; int type, whole; double number; char *text; };
struct buffer { const char *text; size_t length, at, depth; void *(*make)(size_t); void (*drop)(void *); };
int arrays;
__attribute__((noinline)) int value(struct item *i, struct buffer *b);
__attribute__((noinline)) struct buffer *skip(struct buffer *b) { while (b->at < b->length && b->text[b->at] == ' ') b->at++; return b; }
__attribute__((noinline)) void delete(struct item *i) { while (i) { struct item *n = i->next; delete(i->child); free(i); i = n; } }
__attribute__((noinline)) int object(struct item *i, struct buffer *b) { i->type = 9; b->at++; return 1; }
__attribute__((noinline)) int string(struct item *i, struct buffer *b) { i->type = 5; b->at += 2; return 1; }
static struct item *make(struct buffer *b) { struct item *i = b->make(sizeof *i); if (i) memset(i, 0, sizeof *i); return i; }
static int number(struct item *i, struct buffer *b)
{
	char *end = NULL, *copy, point = '.';
	size_t n = 0, k; int has = 0;
	if (b->text == NULL) return 0;
	for (k = 0; b->at + k < b->length; k++)
		switch (b->text[b->at + k]) {
		case '0': case '1': case '2': case '3': case '4': case '5': case '6': case '7': case '8': case '9': case '+': case '-': case 'e': case 'E': n++; break;
		case '.': n++; has = 1; break;
		default: goto done;
		}
done:
	copy = b->make(n + 1);
	if (copy == NULL) return 0;
	memcpy(copy, b->text + b->at, n);
	copy[n] = 0;
	if (has) for (k = 0; k < n; k++) if (copy[k] == '.') copy[k] = point;
	double d = strtod(copy, &end);
	if (copy == end) { b->drop(copy); return 0; }
	i->number = d;
	if (d >= 2147483647) i->whole = 2147483647; else if (d <= -2147483648.0) i->whole = -2147483647 - 1; else i->whole = (int)d;
	i->type = 8;
	b->at += end - copy;
	b->drop(copy);
	return 1;
}
static int array(struct item *i, struct buffer *b)
{
	struct item *head = NULL, *now = NULL;
	if (b->depth >= 1000) return 0;
	b->depth++;
	if (b->text[b->at] != '[') goto fail;
	b->at++;
	skip(b);
	if (b->at < b->length && b->text[b->at] == ']') goto success;
	if (b->at >= b->length) { b->at--; goto fail; }
	b->at--;
	do {
		struct item *new = make(b);
		if (new == NULL) goto fail;
		if (head == NULL) now = head = new; else { now->next = new; new->prev = now; now = new; }
		b->at++;
		skip(b);
		if (!value(now, b)) goto fail;
		skip(b);
	} while (b->at < b->length && b->text[b->at] == ',');
	if (b->at >= b->length || b->text[b->at] != ']') goto fail;
success:
	b->depth--;
	if (head != NULL) head->prev = now;
	i->type = 32;
	i->child = head;
	b->at++;
	return 1;
fail:
	if (head != NULL) delete(head);
	return 0;
}
__attribute__((noinline)) int value(struct item *i, struct buffer *b)
{
	if (b == NULL || b->text == NULL) return 0;
	if (b->at + 4 <= b->length && strncmp(b->text + b->at, "null", 4) == 0) { i->type = 4; b->at += 4; return 1; }
	if (b->at + 4 <= b->length && strncmp(b->text + b->at, "true", 4) == 0) { i->type = 2; b->at += 4; return 1; }
	if (b->at < b->length && b->text[b->at] == '"') return string(i, b);
	if (b->at < b->length && (b->text[b->at] == '-' || (b->text[b->at] >= '0' && b->text[b->at] <= '9'))) return number(i, b);
	if (b->at < b->length && b->text[b->at] == '[') return array(i, b);
	if (b->at < b->length && b->text[b->at] == '{') return object(i, b);
	return 0;
}
void *none(size_t n) { return NULL; }
int main(void)
{
	const char *t = "[1, [2,3 ,[ ] ], null,[true,4.5,[{,-7]], 8]";
	struct buffer b = {t, strlen(t), 0, 0, malloc, free};
	struct item *i = make(&b);
	int r = value(i, &b);
	struct buffer one = {"7", 1, 0, 0, none, free};
	r += value(i, &one);
	printf("runs 5 %d\n", r);
	return 0;
}
`
	// LLVM makes two loops of one, for a test of the body's that has the same outcome in each turn, and tests before them.
	const unswitched = `
#include <stdio.h>
#include <string.h>
#include <ctype.h>
struct item { struct item *next; const char *name; };
static int compare(const char *a, const char *b, const int exact)
{
	if (a == NULL || b == NULL) return 1;
	if (a == b) return 0;
	if (exact) return strcmp(a, b);
	for (; tolower(*a) == tolower(*b); a++, b++)
		if (*a == 0) return 0;
	return tolower(*a) - tolower(*b);
}
__attribute__((noinline)) int sorted(struct item *at, const int exact)
{
	if (at == NULL || at->next == NULL) return 1;
	while (at != NULL && at->next != NULL && compare(at->name, at->next->name, exact) < 0)
		at = at->next;
	return at == NULL || at->next == NULL;
}
int main(void)
{
	struct item i[6] = {{i + 1, "a"}, {i + 2, "B"}, {i + 3, "c"}, {i + 4, "D"}, {i + 5, "e"}, {0, "f"}};
	int t = sorted(i, 0) + sorted(i, 1) + sorted(i + 4, 1) + sorted(i + 5, 0);
	printf("runs %d %d\n", 5 + 1 + 1, t);
	return 0;
}
`
	// The caller's test is of what the body compares, and behind it the body goes on with what it has computed.
	const compared = `
#include <stdio.h>
#include <stdlib.h>
struct clause { unsigned size, flags; struct clause *next[2]; signed char *lits[2]; };
struct solver { struct clause **from, **head; volatile long sum; };
static signed char **end_of(struct clause *c) { return (signed char **)c->lits + c->size; }
static int satisfied(struct clause *c)
{
	signed char **eol = end_of(c), **p, *l;
	for (p = c->lits; p < eol; p++) { l = *p; if (*l == 1) return 1; }
	return 0;
}
static void all_satisfied(struct solver *s)
{
	struct clause **p, *c;
	for (p = s->from; p < s->head; p++) {
		c = *p;
		if (!c) continue;
		if (c->flags & 2) continue;
		if (satisfied(c)) continue;
		abort();
	}
}
__attribute__((noinline)) void check(struct solver *s) { all_satisfied(s); s->sum++; }
int main(void)
{
	static signed char a = 1, b = -1;
	struct clause *c[8]; int n = 0;
	for (int i = 0; i < 8; i++) { c[i] = i == 3 ? 0 : calloc(1, sizeof **c + 32); if (c[i]) { c[i]->size = 1 + i % 3; c[i]->flags = i == 5 ? 2 : 0; c[i]->lits[0] = i & 1 ? &a : &b; c[i]->lits[1] = &a; if (c[i]->size == 1) c[i]->lits[0] = &a; if (c[i]->size == 3) c[i]->lits[2 - 0] = &b; n += i != 5; } }
	struct solver s = {c, c + 8, 0};
	check(&s);
	printf("runs %d\n", n);
	return 0;
}
`
	// GCC joins the caller's test with the body's, and gives both the position of the latter.
	const joined = `
#include <stdio.h>
#include <stdlib.h>
struct coder { void *coder; unsigned long id, init; void (*end)(void *); long more[3]; };
volatile long runs, ended;
static inline void end(struct coder *next)
{
	if (next->init != 0) {
		if (next->end != NULL) next->end(next->coder);
		else free(next->coder);
		*next = (struct coder){0};
		ended++;
	}
}
__attribute__((noinline)) void begin(struct coder *next, unsigned long *to, unsigned long id)
{
	if (to[1] != next->init)
		end(next);
	next->init = to[1];
	next->id = id;
}
void nothing(void *p) { runs++; }
int main(void)
{
	struct coder c = {0};
	unsigned long to[6][2] = {{0, 0}, {0, 1}, {0, 1}, {0, 2}, {0, 0}, {0, 3}};
	int n = 0;
	c.end = nothing;
	for (int i = 0; i < 6; i++) { n += to[i][1] != c.init; begin(&c, to[i], i); }
	end(&c);
	printf("runs %d\n", n + 1);
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
		{"a jump out of a body", ends, "array", []string{"clang-19 -O1", "clang-22 -O1"}},
		{"a test before two loops", unswitched, "compare", []string{"clang-14 -O3", "clang-19 -O2"}},
		{"behind what a body compares", compared, "end_of", []string{"clang-14 -O2", "clang-19 -O2", "clang-22 -O2"}},
		{"a test that is joined with the caller's", joined, "end", []string{"gcc-11 -O2", "gcc-12 -O2", "gcc-12 -O3"}},
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
