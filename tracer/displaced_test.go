package tracer_test

import (
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/tracer"
)

// displaced are programs in which a compiler leaves parts of a body where no run begins, or none that a statement shows. Each had more hits than runs, or fewer.
var displaced = []struct {
	name, source, function string
	runs                   int
	compilers              []string // each with options
}{
	// Link-time optimization has inlined the body without markers, and copied its beginning for the path on which the test of s->quota is known. No run had a hit.
	{"a copy of the beginning of a body without markers", `
struct sb { int feature, quota, levels, blocks; };
struct ent { struct sb *sb; void *dir; unsigned short mode; void *h; int n; };
__attribute__((noinline)) void *start(void *dir, unsigned short mode, const char *q, long a, void *o, int t, int l, int credits) { static int n; return ++n % 3 ? 0 : (void *)(long)credits; }
__attribute__((noinline)) int stop(void *h) { return h != 0; }
__attribute__((noinline)) int retry_alloc(struct sb *s, int *n) { return (*n)++ < 3 + s->quota; }
__attribute__((noinline)) int init_special(void *inode, unsigned short mode) { return inode == 0; }
__attribute__((noinline)) int chunk(struct sb *s, int n) { return s->levels * n; }
static inline int trans(struct sb *s) { return s->feature & 0x40 ? 27 : 8; }
static inline void *make(struct ent *e, int credits, void **h)
{
	void *inode;
	int retries = 0;
	credits += (2 * (e->sb->quota ? 2 * trans(e->sb) : 0) + (e->sb->feature & 4 ? 8 : 5) + trans(e->sb));
retry:
	inode = start(e->dir, e->mode, "x", 0, 0, 2, 0, credits);
	if (!inode) {
		if (stop(e->h)) e->h = 0;
		if (retry_alloc(e->sb, &retries)) goto retry;
	} else {
		*h = e->h;
		init_special(inode, e->mode);
	}
	return inode;
}
__attribute__((noinline)) long ren(struct ent *e, unsigned flags)
{
	void *h = 0, *w = 0;
	int credits = 2 * chunk(e->sb, 1) + 4, r = 0;
	if (e->sb->quota) credits += trans(e->sb);
	if (!(flags & 4)) {
		h = start(e->dir, 0, "y", 0, 0, 1, 0, credits);
	} else {
		w = make(e, credits, &h);
		if (!w) r = -1;
	}
	r += stop(h);
	return r + (long)w + credits;
}
int main(int n, char **v) { struct sb s = {0x44, n, 2, 3}; struct ent e = {&s, v, 7, v, n}; long t = 0; for (int i = 0; i < 9; i++) t += ren(&e, i); return t & 1; }
`, "make", 4, []string{"gcc-12 -O2 -flto", "gcc-11 -O2 -flto"}},
	// GCC threads jumps past tests whose result is known, into the body behind its first statement. Two of the runs had no hit.
	{"a path past the first test of a body", `
static unsigned char table[260];
static volatile int sink;
static int tok;
static const int *at;
static inline int space(int t, int *before)
{
	if (t < 256 && (table[t + 1] & 1)) {
		if (*before)
			return 1;
		*before = 1;
	} else
		*before = 0;
	return 0;
}
__attribute__((noipa)) static void next(void) { tok = *at++; }
__attribute__((noipa)) static void put(int t) { sink += t; }
__attribute__((noipa)) int argument(int other)
{
	int level = 0, before = 0;
	while (level > 0 || (tok != ')' && (tok != ',' || other))) {
		if (tok == -1 || tok == 0)
			break;
		if (tok == '(')
			level++;
		else if (tok == ')')
			level--;
		if (tok == 10)
			tok = ' ';
		if (!space(tok, &before))
			put(tok);
		next();
	}
	return level;
}
int main(void)
{
	static const int list[] = {'(', 'a', ' ', ' ', 300, 10, ')', '(', 'b', ' ', '(', ' ', ')', ',', ')', 10, 'c', ')'};
	table[' ' + 1] = 1;
	at = list;
	next();
	return argument(1);
}
`, "space", 17, []string{"gcc-11 -O2", "gcc-12 -O1", "gcc-12 -O2", "gcc-12 -O3"}},
	// The last statement stands at the end of the caller's loop, at the lowest address of the body, behind another body.
	{"last statement", `
#include <stdio.h>
static unsigned take(unsigned long *pos, const unsigned char *from)
{
	unsigned bit = from[*pos / 8] >> (7 - *pos % 8) & 1;
	++*pos;
	return bit;
}
static void put(unsigned long *pos, unsigned char *to, unsigned bit)
{
	if (bit)
		to[*pos / 8] |= 1u << (7 - *pos % 8);
	else
		to[*pos / 8] &= ~(1u << (7 - *pos % 8));
	++*pos;
}
__attribute__((noinline)) void copy(unsigned char *to, const unsigned char *from, unsigned long wide, unsigned long skip, unsigned high)
{
	unsigned long i = 0, o = 0;
	for (unsigned y = 0; y < high; y++) {
		for (unsigned long x = 0; x < wide; x++)
			put(&o, to, take(&i, from));
		i += skip;
	}
}
int main(void)
{
	unsigned char from[] = { 0x17, 0xe2, 0x3d }, to[3] = { 0 };
	copy(to, from, 7, 3, 2);
	return to[0] + to[1] == 77;
}`, "take", 14, []string{"clang-14 -O1", "clang-14 -O2", "clang-14 -O3", "clang-16 -O2", "clang-22 -O2"}},
	// Two calls in two branches, which GCC has merged: the statements of both stand before the first instruction.
	{"merged branches", `
#include <ctype.h>
#include <stdlib.h>
static int used, size;
static char *kept;
static const char *at;
static void keep(int c)
{
	if (used < 0)
		abort();
	if (used >= size) {
		size += 256;
		kept = realloc(kept, size);
		if (!kept)
			exit(1);
	}
	kept[used] = c;
	++used;
}
__attribute__((noinline)) static int word(void)
{
	int c = *++at;
	if (isalpha((unsigned char)c)) {
		used = 0;
		for (;;) {
			if (isalpha((unsigned char)c)) {
				if (isupper((unsigned char)c))
					c = tolower(c);
				keep(c);
			} else if (isdigit((unsigned char)c) || c == '-' || c == '.' || c == '$') {
				keep(c);
			} else if (c == '_') {
				keep('-');
			} else
				break;
			c = *++at;
		}
		keep(0);
		return kept[0] + used;
	}
	return 0;
}
int main(void)
{
	at = "%tokEn-1x ";
	int n = word();
	at = "%start_a.b ";
	return n + word() == 0;
}`, "keep", 19, []string{"gcc-11 -O3", "gcc-12 -O3"}},
	// What the body loads is tested much later, behind a call of the caller's.
	{"load and test", `
struct text { const char *s; _Bool raw; };
struct out { int deep, n; _Bool open; };
__attribute__((noinline)) void emit(struct out *o, const char *s) { o->deep += *s; }
static inline _Bool raw(const struct text *t) { return t->raw; }
static inline void push(struct out *o, const char *s, _Bool quoted)
{
	o->n = o->deep - 1;
	if (o->open) {
		o->open = 0;
		emit(o, ">");
	}
	if (quoted) {
		emit(o, "[");
		emit(o, s);
	} else
		emit(o, s);
}
__attribute__((noinline)) void visit(struct out *o, const struct text *t) { push(o, t->s, raw(t)); }
int main(void)
{
	struct out o = { 1, 0, 1 };
	struct text a = { "a", 1 }, b = { "b", 0 };
	visit(&o, &a); visit(&o, &b); visit(&o, &a); visit(&o, &b);
	return o.n == 999;
}`, "raw", 4, []string{"clang-14 -O1", "clang-14 -O2", "clang-14 -Os", "clang-19 -O2"}},
	// The end of the array is computed once, before the caller's loop.
	{"end of an array", `
int fill(char *, int), count(const char *, long, int *);
__attribute__((noipa)) int lines(int n)
{
	char b[128];
	int o[128], s = 0;
	for (int i = 0; i < n; i++) {
		if (fill(b, i))
			b[0] = 'x';
		count(b, 90, o);
		s += o[0];
	}
	return s;
}
int main(void) { return lines(6) == 1; }
__attribute__((noipa)) int fill(char *b, int i)
{
	for (int k = 0; k < 90; k++)
		b[k] = 'a' + i + k / 10;
	return i & 1;
}
int count(const char *in, long n, int *out)
{
	const char *p, *end;
	if (in == 0 || n == 0)
		return 0;
	p = in;
	end = p + n;
	for (; p < end; p++) {
		if (*p == 'z')
			return 0;
		*out++ = *p * 3;
	}
	return 1;
}`, "count", 6, []string{"gcc-12 -O2 -gno-statement-frontiers", "gcc-12 -O2", "gcc-12 -O2 -flto"}},
	// The caller's loop is unrolled as a whole; LLVM counts the instructions that save registers to the first body, or puts one of the caller's into each.
	{"loop of the caller's", `
volatile long at;
__attribute__((noinline)) void out(long x) { at += x; }
static inline long inner(unsigned char a, unsigned long k) { long r = at; if (a > 2) r += at; out(a); r += k; return r + at; }
static inline long outer(int i, unsigned char b, long k) { long q = inner(b, k); out(k); return q; }
int main(void)
{
	long t = 0;
	for (int i = 0; i < 6; i++)
		t += outer(i, i * 50, i * 900l - 7);
	return t == 99;
}`, "inner", 6, []string{"clang-14 -O1", "clang-14 -O2", "clang-16 -O1", "clang-22 -O2"}},
	// Two assignments of the caller's stand between the first test of the body and the rest.
	{"results", `
package main

func parse(s string) (n uint64, ok bool) {
	var i int
	if i == len(s) {
		return 0, false
	}
	for ; i < len(s); i++ {
		if s[i] >= '0' && s[i] <= '9' {
			n = n*10 + uint64(s[i]-'0')
		} else {
			return 0, false
		}
	}
	return n, true
}

//go:noinline
func sum(parts []string) (t uint64) {
	for _, p := range parts {
		n, ok := parse(p)
		if !ok {
			t += 1000
		} else {
			t += n
		}
	}
	return t
}

func main() { println(sum([]string{"12", "7", "", "x", "345"})) }
`, "main.parse", 5, []string{"go"}},
	// What a body loads first is loaded at the end of the path on which it is not there already.
	{"load on a path", `
#include <stdlib.h>
struct stack { int n, room; long *of; };
__attribute__((noinline)) int leave(struct stack *s, int depth) { while (s->n > depth) s->n--; return s->n < 0 ? -1 : 0; }
static inline int push(struct stack *s, long x)
{
	if (s->n >= s->room) {
		s->room = s->room > 0 ? s->room + s->room / 2 : 4;
		long *of = realloc(s->of, s->room * sizeof(long));
		if (!of)
			return -1;
		s->of = of;
	}
	s->of[s->n++] = x;
	return 0;
}
__attribute__((noinline)) int enter(struct stack *s, int deeper, long x)
{
	int n = s->n;
	if (n > 3 && x == 5)
		return 7;
	if (!deeper && leave(s, n / 2) < 0)
		return -2;
	return push(s, x);
}
int main(void)
{
	struct stack s = { 0 };
	int r = 0;
	for (int i = 0; i < 9; i++)
		r += enter(&s, i % 3, i);
	return r == 99;
}
`, "push", 9, []string{"clang-14 -O2", "clang-14 -Os", "clang-22 -O2", "clang-22 -Os"}},
	// Of two runs in straight code, GCC moves instructions of the second to where the first begins.
	{"two lists", `
#include <stdlib.h>
#include <stdio.h>
typedef struct list { struct list *prev, *next; } list_t;
typedef struct { size_t size; struct { list_t *first, *last; } *buckets; size_t order; list_t list, ordered; } table;
static inline void list_init(list_t *list) {
	list->next = list;
	list->prev = list;
}
__attribute__((noipa)) void *get(size_t n) { return malloc(n); }
__attribute__((noipa)) int table_init(table *h) {
	size_t i;
	h->size = 0;
	h->order = 3;
	h->buckets = get((1ul << h->order) * 16);
	if (!h->buckets)
		return -1;
	list_init(&h->list);
	list_init(&h->ordered);
	for (i = 0; i < ((size_t)1 << h->order); i++)
		h->buckets[i].first = h->buckets[i].last = &h->list;
	return 0;
}
int main(void) { table t; int r = 0; for (int i = 0; i < 5; i++) r += table_init(&t); printf("%d\n", r); }
`, "list_init", 10, []string{"gcc-11 -Os", "gcc-12 -Os"}},
	// A body begins at its caller's first instruction, with an address, and an instruction of the caller's comes before the rest.
	{"address first", `
#include <stdio.h>
#include <stdint.h>
#include <stddef.h>
#include <stdbool.h>
static inline const char *parse(const char *ptr, const char *l, uint32_t *out)
{
	const unsigned char *p = (const unsigned char *)ptr, *limit = (const unsigned char *)l;
	uint32_t b, r;
	if (p >= limit) return NULL;
	b = *(p++); r = b & 127; if (b < 128) goto done;
	if (p >= limit) return NULL;
	b = *(p++); r |= (b & 127) << 7; if (b < 128) goto done;
	return NULL;
done:
	*out = r;
	return (const char *)p;
}
bool getlen(const char *start, size_t n, size_t *result)
{
	uint32_t v = 0;
	const char *limit = start + n;
	if (parse(start, limit, &v) != NULL) {
		*result = v;
		return true;
	}
	return false;
}
__attribute__((noinline)) void work(const char *c, size_t n, char *o, size_t len) { __asm__ volatile("" : : "r"(o), "r"(len) : "memory"); }
__attribute__((noinline)) bool uncompress(const char *c, size_t n, char *o)
{
	size_t len;
	if (!getlen(c, n, &len))
		return false;
	work(c, n, o, len);
	work(c, n, o, len + 1);
	return true;
}
int main(void) { char o[9]; int r = 0; for (int i = 0; i < 4; i++) r += uncompress("\x91\x22xyz", i + 1, o); printf("%d\n", r); }
`, "getlen", 4, []string{"gcc-11 -O2 -flto", "gcc-12 -O2 -flto"}},
	// A register that the body needs is restored in a loop of the caller's, with the body's position.
	{"a register restored by Go", `package main

import "os"

type filter struct {
	chars     [256]uint8
	threshold int
	slots     [][][]byte
}

func hash(b []byte) uint64 {
	var h uint64 = 5381
	for _, c := range b {
		h = ((h << 5) + h) + uint64(c)
	}
	return h
}

//go:noinline
func (s *filter) add(b []byte) {
	l := len(b)
	m := s.threshold
	if l < s.threshold {
		m = l
	}
	for i := 0; i < m; i++ {
		s.chars[b[i]] |= 1 << uint8(i)
	}
	h := hash(b) % uint64(len(s.slots))
	slot := s.slots[h]
	if slot == nil {
		slot = [][]byte{}
	}
	s.slots[h] = append(slot, b)
}

func main() {
	f := &filter{threshold: 3, slots: make([][][]byte, 8)}
	for _, s := range []string{"alpha", "be", "gamma", "delta", "e"} {
		f.add([]byte(s))
	}
	os.Exit(0)
}
`, "main.hash", 5, []string{"go"}},
	// What a loop's turn loads first is loaded at the end of the turn before.
	{"load in a latch", `
#include <cstdio>
struct S { const char *d; unsigned long n; char at(unsigned long i) const { return d[i]; } bool empty() const { return n == 0; } void pop(unsigned long k) { d += k; n -= k; } };
struct H { virtual void put(S *s, int c); virtual void del(S *s); int t = 0; };
__attribute__((noinline)) void H::put(S *s, int c) { s->pop(1); t += c; }
__attribute__((noinline)) void H::del(S *s) { s->pop(2); t--; }
__attribute__((noinline)) int iter(const char *p, unsigned long n, H *h) { S in{p, n}; int found = 0; while (!in.empty()) { found++; char tag = in.at(0); in.pop(1); switch (tag) { case 'a': h->put(&in, found); break; case 'b': h->del(&in); break; default: return -1; } } return found; }
int main() { H h; printf("%d %d\n", iter("axbxyaxaxbcc", 12, &h), h.t); }
`, "S::at", 5, []string{"clang++-14 -O2", "clang++-14 -Os"}},
}

// TestDisplaced counts the hits of programs that compilers have displaced code of bodies in.
func TestDisplaced(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	for _, d := range displaced {
		for _, c := range d.compilers {
			t.Run(d.name+" "+c, func(t *testing.T) {
				compiler, options, _ := strings.Cut(c, " ")
				var path string
				var img *dwarfloc.Image
				if compiler == "go" {
					path, img = buildGo(t, d.source)
				} else {
					path, img = build(t, compiler, "displaced.c", d.source, strings.Fields(options)...)
				}
				n := 0
				p := plans(t, img, d.function)
				run(t, p, "", []string{path}, func(pid int, h *tracer.Hit) {
					if h.PID == pid {
						n++
					}
				})
				if n != d.runs {
					t.Errorf("%d hits of %d runs at %v", n, d.runs, p[0].Sites)
				}
			})
		}
	}
}
