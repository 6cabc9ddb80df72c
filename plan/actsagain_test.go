package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestActsAgain: GCC gives all instructions of an expression its place, and two stores of addresses become one of both. Link-time optimization leaves some functions without markers: where the second address is
// made, behind something of the caller's, it may be another run or not. What the body does behind that is nothing that it has done before. Two runs in straight code do the same twice.
func TestActsAgain(t *testing.T) {
	sources := map[string]string{"e.h": `
typedef int act(void *, const char *, const char *, const char **);
struct encoding { act *scan[4]; act *literal[2]; int (*match)(void); void (*update)(const void *, const char *); char utf16, index; };
struct init { struct encoding first; struct encoding **of; };
struct parser { void *user, *arg; void *handlers[20]; const struct encoding *now; struct init init; long pos[6]; act *processor; int level, role, doc, all; };
int initialize(struct init *, const struct encoding **, const char *);
void state(struct parser *);
`, "e.c": `
#include "e.h"
volatile int sink;
__attribute__((noinline)) int prolog(void *e, const char *a, const char *b, const char **c) { return sink += 1; }
__attribute__((noinline)) int content(void *e, const char *a, const char *b, const char **c) { return sink += 2; }
__attribute__((noinline)) void update(const void *e, const char *a) { sink += 3; }
static int indexOf(const char *name) { if (name == 0) return 6; return name[0] == 'u' ? 2 : -1; }
int initialize(struct init *p, const struct encoding **of, const char *name)
{
	int i = indexOf(name);
	if (i == -1)
		return 0;
	p->first.index = (char)i;
	p->first.scan[0] = prolog;
	p->first.scan[1] = content;
	p->first.update = update;
	p->of = (struct encoding **)of;
	*of = &(p->first);
	return 1;
}
`, "m.c": `
#include "e.h"
extern volatile int sink;
static int processor(void *e, const char *a, const char *b, const char **c) { return sink; }
static void start(struct parser *p, const char *name)
{
	p->processor = processor;
	state(p);
	if (name != 0)
		sink++;
	initialize(&p->init, &p->now, 0);
	p->user = 0;
	p->arg = 0;
	for (int i = 0; i < 6; i++)
		p->handlers[i] = 0;
	p->pos[0] = 0;
	p->pos[1] = p->pos[2] = 0;
}
void state(struct parser *p) { p->role = 3; p->level = 1; p->doc = 1; p->all = 0; }
__attribute__((noinline)) void make(struct parser *p, const char *name) { start(p, name); }
__attribute__((noinline)) void reset(struct parser *p, const char *name) { sink++; start(p, name); }
static inline __attribute__((always_inline)) void clear(struct parser *p)
{
	p->level = 0;
	sink++;
}
__attribute__((noinline)) void twice(struct parser *p, struct parser *q)
{
	clear(p);
	p->doc++;
	clear(q);
}
int main(int argc, char **argv)
{
	struct parser p;
	make(&p, 0);
	reset(&p, argv[5]);
	twice(&p, &p);
	return initialize(&p.init, &p.now, argv[0]) & 0;
}
`}
	sites := func(options, name, in string) (sure, again int) {
		p := plantest.New(t, built(t, "gcc-12", options, sources), name, plan.Options{})
		for i := range p.Sites {
			switch s := &p.Sites[i]; {
			case s.Symbol != in:
			case s.Way.Again:
				again++
			default:
				sure++
			}
		}
		return sure, again
	}
	for _, options := range []string{"-O2 -flto", "-O3 -flto"} {
		if sure, again := sites(options, "initialize", "make.constprop.0"); sure != 1 || again != 1 {
			t.Errorf("%s: runs of initialize begin at %d places, and may at %d", options, sure, again)
		}
	}
	if sure, again := sites("-O2 -gno-statement-frontiers", "clear", "twice"); sure != 2 || again != 0 {
		t.Errorf("runs of clear begin at %d places, and may at %d", sure, again)
	}
}
