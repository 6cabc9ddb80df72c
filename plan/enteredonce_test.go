package plan_test

import (
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestEnteredOnce: what a compiler has moved in front of a body, or left at its end, is no further way into it.
func TestEnteredOnce(t *testing.T) {
	for _, tt := range []struct {
		name, source, definition string
		compilers                []string
		want                     int // probes
	}{
		// The last statement of one body has no code, and is where the debug information, which has no views, says that the next one begins.
		{"the end of the body before", `
#include <stdlib.h>
struct all { void **a, **b, **c; int na, nb, nc; };
static inline void reset(void ***all, int *n)
{
	void **p;
	for (p = *all; *n; ++p, --*n)
		if (*p)
			free(*p);
	free(*all);
	*all = 0;
}
__attribute__((noinline)) void clear(struct all *s) { reset(&s->a, &s->na); reset(&s->b, &s->nb); reset(&s->c, &s->nc); }
int main(void)
{
	struct all s = {malloc(8), malloc(8), malloc(8), 0, 0, 0};
	clear(&s);
	return s.na;
}
`, "reset", []string{"gcc-11 -O2", "gcc-12 -O2", "gcc-11 -O2 -gno-variable-location-views", "gcc-12 -O2 -gno-variable-location-views"}, 3},
		// A function of which the debug information says that a header of the system declares it, and not where it is defined: its statements are in no function's text.
		{"a function that the system declares", `# 1 "a.c"
# 1 "wide.h" 1 3
typedef __SIZE_TYPE__ size_t;
typedef struct { int n; } state;
extern size_t real(unsigned *to, const char *s, size_t n, state *p);
extern size_t wide(unsigned *to, const char *s, size_t n, state *p);
# 1 "a.c" 2
# 1 "wide.c" 1
size_t
wide(unsigned *to, const char *s, size_t n, state *p)
{
	size_t r;
	unsigned c;

	if (!to)
		to = &c;

	r = real(to, s, n, p);

	if ((size_t)-2 <= r && n != 0 && !p->n) {
		*to = (unsigned char)*s;
		return 1;
	}

	return r;
}
# 1 "a.c" 2
struct line { const char *active; size_t length; } line;
__attribute__((noipa)) size_t real(unsigned *to, const char *s, size_t n, state *p) { *to = *s; return n ? 1 + (p->n & *s & 1) : 0; }
__attribute__((noipa)) int translate(int max)
{
	state p = {0};
	int k = 0;
	for (size_t at = 0; at < line.length;) {
		size_t m = max == 1 ? 1 : wide(0, line.active + at, line.length - at, &p);
		if (m == (size_t)-1 || m == (size_t)-2 || m == 0)
			m = 1;
		for (unsigned i = 0; i < m; i++)
			k += line.active[at + i];
		at += m;
	}
	return k;
}
int main(int n, char **v)
{
	line.active = "some text";
	line.length = 9;
	return translate(n + 1) & 1;
}
`, "wide", []string{"gcc-11 -O2", "gcc-12 -O2"}, 2},
		// "off" is loaded in front of a loop that may have no turn, and the function then returns.
		{"a load in front of a loop", `
static int off;
struct section { unsigned char data[64]; } *current;
static int next;
static __attribute__((noinline)) void rest(int c)
{
	current->data[next] = c;
	next++;
}
static inline void put(int c)
{
	if (off)
		return;
	rest(c);
}
static inline void code(unsigned c)
{
	while (c) {
		put(c);
		c = c >> 8;
	}
}
__attribute__((noinline)) void prefixed(int wide, int r, unsigned b)
{
	if (wide || r > 7)
		code(0x40 | (wide << 3));
	code(b);
}
int main(int c, char **v)
{
	off = c > 2;
	current = __builtin_calloc(1, sizeof *current);
	prefixed(1, 2, 0x8b0f);
	prefixed(0, 2, 0x8b);
	prefixed(0, 2, 0);
	return 0;
}
`, "put", []string{"gcc-11 -O2", "gcc-12 -O2", "gcc-11 -O2 -gno-variable-location-views", "gcc-12 -O2 -gno-variable-location-views"}, 2},
	} {
		for _, compiler := range tt.compilers {
			t.Run(tt.name+" "+compiler, func(t *testing.T) {
				cc, options, _ := strings.Cut(compiler, " ")
				p := plantest.New(t, built(t, cc, options, map[string]string{"a.c": tt.source}), tt.definition, plan.Options{})
				if len(p.Sites) != tt.want {
					t.Errorf("%d probes, not %d: %v", len(p.Sites), tt.want, p.Sites)
				}
				for i := range p.Sites {
					if p.Sites[i].Way.Again {
						t.Errorf("%v may fire again", &p.Sites[i])
					}
				}
			})
		}
	}
}

// TestCopiesOfALoop: GCC gives the copy of a variable at the end of each turn of the body's loop the position of the caller's statement before the body, which begins with the
// loop. The probe is in front of that.
func TestCopiesOfALoop(t *testing.T) {
	const source = `
struct value { int i, n; };
int flags;
volatile int sink;
static inline void get(int *t, const int **at, struct value *v)
{
	const int *p = *at;
	int n = 0;
	switch (*t = *p++) {
	case 0xc0: case 0xc1: case 0xc2: v->i = *p++; break;
	case 0xc3: v->n = *p++; v->i = v->n + *p++; break;
	case 0xc8: p += 2; break;
	default: break;
	}
	*at = p;
}
static inline int *pasted(const int *from)
{
	int t;
	struct value v;
	const int *p;
	for (p = from;;) {
		get(&t, &p, &v);
		if (t == 0xa6)
			break;
		if (t == 0)
			return 0;
	}
	sink = v.i;
	return (int *)p;
}
__attribute__((noinline)) void push(int n) { sink = n; }
__attribute__((noinline)) int subst(int *all, int saved, int k)
{
	int *m = all + k, *joined;
	push(k);
	flags = saved;
	joined = pasted(m);
	return joined ? *joined : sink;
}
int main(void)
{
	int a[] = {0xc1, 3, 5, 7, 0xc3, 1, 2, 9, 0xa6, 4, 0}, b[] = {1, 2, 3, 0};
	return subst(a, 3, 0) + subst(b, 1, 0) + subst(b, 1, 1) == 99;
}
`
	for _, cc := range []string{"gcc-11", "gcc-12"} {
		img := built(t, cc, "-Os -gno-statement-frontiers", map[string]string{"a.c": source})
		p := plantest.New(t, img, "pasted", plan.Options{})
		head := plantest.New(t, img, "pasted", plan.Options{EntryOnly: true})
		if len(p.Sites) != 1 || p.Sites[0].Way.Again || p.Sites[0].Addr >= head.Sites[0].Addr {
			t.Errorf("%s: %v, the loop begins at %v", cc, p.Sites, head.Sites)
		}
	}
}

// TestLent: LLVM computes once what two calls need, in the midst of the first body and with the position of the second: that is entered where its own instructions are.
func TestLent(t *testing.T) {
	const source = `
#include <stdlib.h>
struct text { int size; void *data; int allocated; };
struct text token;
static void grow(struct text *s, int n)
{
	int size = s->allocated;
	if (size < 8)
		size = 8;
	while (size < n)
		size = size * 2;
	s->data = realloc(s->data, size);
	s->allocated = size;
}
static inline void put(struct text *s, int c)
{
	int size = s->size + 1;
	if (size > s->allocated)
		grow(s, size);
	((unsigned char *)s->data)[size - 1] = c;
	s->size = size;
}
__attribute__((noinline)) const char *number(const char *p)
{
	int t = *p++, c = *p;
	token.size = 0;
	for (;;) {
		put(&token, t);
		if (!(c >= '0' && c <= '9' || c == '.'))
			break;
		t = c;
		c = *++p;
	}
	put(&token, 0);
	return p;
}
int main(void)
{
	const char *p = "123.4567 89 1 22";
	int n = 0;
	while (*p) {
		p = number(p);
		n += token.size;
	}
	return n == 99;
}
`
	for _, cc := range []string{"clang-14 -O2", "clang-14 -O3", "clang-14 -Os", "clang-16 -O2", "clang-16 -Os"} {
		cc, options, _ := strings.Cut(cc, " ")
		img := built(t, cc, options, map[string]string{"a.c": source})
		p := plantest.New(t, img, "put", plan.Options{})
		lent := plantest.New(t, img, "put", plan.Options{EntryOnly: true})
		if len(p.Sites) != 2 || len(lent.Sites) != 2 {
			t.Fatalf("%s %s: %v", cc, options, p.Sites)
		}
		if p.Sites[0].Addr != lent.Sites[0].Addr || p.Sites[1].Addr <= lent.Sites[1].Addr || p.Sites[0].Way.Again || p.Sites[1].Way.Again {
			t.Errorf("%s %s: %v, the lowest addresses are %v", cc, options, p.Sites, lent.Sites)
		}
	}
}
