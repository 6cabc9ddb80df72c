package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestChosenCopy: of "if (size == 0) size = 4064" GCC makes a move to another register and a conditional move there, loses the statement, and goes on that size is what the function was
// called with, in the register that still has that, as in GNU's obstacks. Where an instruction reads that register, it is what the note says.
func TestChosenCopy(t *testing.T) {
	const source = `
struct chunk { char *limit; struct chunk *prev; char contents[4]; };
struct stack {
	unsigned long size; struct chunk *chunk; char *base, *next, *limit; unsigned long temp, mask;
	union { void *(*plain)(unsigned long); void *(*extra)(void *, unsigned long); } get, put;
	void *arg; unsigned with : 1, empty : 1, failed : 1;
};
__attribute__((noreturn)) void (*handler)(void);
volatile unsigned long seen;
static void *get(struct stack *h, unsigned long size) { return h->with ? h->get.extra(h->arg, size) : h->get.plain(size); }
static int start(struct stack *h, unsigned long size, unsigned long alignment)
{
	if (alignment == 0)
		alignment = 16;
	if (size == 0) {
		int extra = ((12 + 15 & ~15) + 4 + 15) & ~15;
		size = 4096 - extra;
	}
	h->size = size;
	h->mask = alignment - 1;
	struct chunk *c = h->chunk = get(h, h->size);
	if (!c)
		handler();
	h->next = h->base = (char *)((unsigned long)c->contents + (alignment - 1) & ~(alignment - 1));
	h->limit = c->limit = (char *)c + h->size;
	c->prev = 0;
	h->empty = 0, h->failed = 0;
	return 1;
}
int begin(struct stack *h, unsigned long size, unsigned long alignment, void *(*f)(unsigned long), void *(*g)(unsigned long))
{
	h->get.plain = f, h->put.plain = g, h->with = 0;
	return start(h, size, alignment);
}
int begin_with(struct stack *h, unsigned long size, unsigned long alignment, void *(*f)(void *, unsigned long), void *(*g)(void *, unsigned long), void *arg)
{
	h->get.extra = f, h->put.extra = g, h->arg = arg, h->with = 1;
	return start(h, size, alignment);
}
void more(struct stack *h, unsigned long length)
{
	unsigned long size = h->next - h->base + length;
	if (size < h->size)
		size = h->size;
	h->chunk = get(h, size);
}
static inline __attribute__((always_inline)) void *used(struct stack *h, unsigned long size) { seen = size; return h->get.plain(h->size); }
int read(struct stack *h, unsigned long size)
{
	h->size = size ? size : 4064;
	return used(h, size) != 0;
}
`
	img := built(t, "gcc-12", "-O3 -shared -fPIC", map[string]string{"a.c": source})
	p := plantest.New(t, img, "get size", plan.Options{})
	found := 0
	for i := range p.Sites {
		if v := p.Sites[i].Args[0].Variable; p.Sites[i].Symbol == "begin" {
			if found++; !v.Located() || v.Loc.Doubt == reasons.None {
				t.Errorf("%v: %v is sure", &p.Sites[i], v)
			}
		}
	}
	if found != 1 {
		t.Errorf("%d sites in begin", found)
	}
	isSure(t, "", img, "used size", 1, true)
}
