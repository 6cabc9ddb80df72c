package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestChosenInCopy: GCC makes "if (size == 0) size = 4064" a conditional move in a copy of the register, loses the statement, and notes the register as the parameter still.
func TestChosenInCopy(t *testing.T) {
	const source = `
typedef unsigned long size;
struct block { char *end; struct block *prev; char data[]; };
struct pool {
	size block; struct block *last; char *base, *next, *end; void *more; size mask;
	union { void *(*plain)(size); void *(*with)(void *, size); } get;
	union { void (*plain)(void *); void (*with)(void *, void *); } drop;
	void *arg;
	unsigned use : 1, empty : 1, failed : 1;
};
static __attribute__((noreturn)) void stop(void) { __builtin_trap(); }
__attribute__((noreturn)) void (*failed)(void) = stop;
static void *obtain(struct pool *p, size n)
{
	if (p->use)
		return p->get.with(p->arg, n);
	else
		return p->get.plain(n);
}
static int begin(struct pool *p, size n, size align)
{
	struct block *b;
	if (align == 0)
		align = 16;
	if (n == 0)
		n = 4064;
	p->block = n;
	p->mask = align - 1;
	b = p->last = obtain(p, p->block);
	if (!b)
		(*failed)();
	p->next = p->base = (char *)(((size)b->data + align - 1) & ~(align - 1));
	p->end = b->end = (char *)b + p->block;
	b->prev = 0;
	p->empty = 0;
	p->failed = 0;
	return 1;
}
int plainly(struct pool *p, size n, size align, void *(*get)(size), void (*drop)(void *))
{
	p->get.plain = get;
	p->drop.plain = drop;
	p->use = 0;
	return begin(p, n, align);
}
int with(struct pool *p, size n, size align, void *(*get)(void *, size), void (*drop)(void *, void *), void *arg)
{
	p->get.with = get;
	p->drop.with = drop;
	p->arg = arg;
	p->use = 1;
	return begin(p, n, align);
}
void another(struct pool *p, size n)
{
	struct block *old = p->last, *b = obtain(p, n + p->mask);
	if (!b)
		(*failed)();
	p->last = b;
	b->prev = old;
}
static int both(volatile size *sink, size n, size most) { *sink = n; *sink = most; *sink = n + most; return 1; }
int called(volatile size *sink, size n) { *sink = 1; return both(sink, n, n < 16 ? 16 : n); }
static void *get(size n) { return __builtin_malloc(n); }
int main(void)
{
	struct pool p;
	volatile size n = 0;
	plainly(&p, n, 16, get, __builtin_free);
	another(&p, n);
	return called(&n, n);
}
`
	img := built(t, "gcc-12", "-O3", map[string]string{"a.c": source})
	for _, tt := range []struct {
		definition string
		doubtful   string // the caller in which the note is of what was chosen from
	}{{"obtain n", "plainly"}, {"both n", ""}, {"both most", ""}} {
		p := plantest.New(t, img, tt.definition, plan.Options{})
		seen := false
		for i := range p.Sites {
			s := &p.Sites[i]
			v := s.Args[0].Variable
			in := s.Symbol == tt.doubtful
			if seen = seen || in; in && v.Located() != (v.Loc.Doubt == reasons.Reassigned) || !in && v.Loc.Doubt != reasons.None {
				t.Errorf("%s: %v: %v, because %s", tt.definition, s, v, v.Because)
			}
		}
		if len(p.Sites) == 0 || tt.doubtful != "" && !seen {
			t.Errorf("%s: %d sites", tt.definition, len(p.Sites))
		}
	}
}
