package plan_test

import (
	"cmp"
	"slices"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestRestElsewhere: GCC merges the rest of one run, behind its test, with that of another run of the function, and puts the common code where the first one's test falls through. The
// statements there are the other's: no run begins where the test leads to, nor need one where the common code has one more without code.
func TestRestElsewhere(t *testing.T) {
	const source = `
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
struct directive { char *handle, *prefix; };
struct event { int type; int encoding; union { struct { int *version; struct directive *start, *end; int implicit; } document; struct { char *name; } alias; struct { char *anchor, *tag, *value; unsigned long length; int plain, quoted, style; } scalar; struct { char *anchor, *tag; int implicit, style; } sequence; struct { char *anchor, *tag; int implicit, style; } mapping; } data; long start[3], end[3]; };
static inline __attribute__((always_inline)) void release(void *p)
{
	if (p)
		free(p);
}
static inline __attribute__((always_inline)) void clear(struct event *e)
{
	switch (e->type) {
	case 3:
		release(e->data.document.version);
		for (struct directive *d = e->data.document.start; d != e->data.document.end; d++) {
			release(d->handle);
			release(d->prefix);
		}
		release(e->data.document.start);
		break;
	case 5:
		release(e->data.alias.name);
		break;
	case 6:
		release(e->data.scalar.anchor);
		release(e->data.scalar.tag);
		release(e->data.scalar.value);
		break;
	case 7:
		release(e->data.sequence.anchor);
		release(e->data.sequence.tag);
		break;
	case 9:
		release(e->data.mapping.anchor);
		release(e->data.mapping.tag);
		break;
	default:
		break;
	}
	memset(e, 0, sizeof *e);
}
static __attribute__((noinline)) int next(struct event *e)
{
	static const int types[] = {1, 3, 9, 6, 7, 6, 8, 5, 10, 4, 2};
	static int n;
	memset(e, 0, sizeof *e);
	e->type = types[n++];
	if (e->type == 5 || e->type == 6 || e->type == 9)
		e->data.scalar.anchor = strdup("anchor");
	if (e->type == 6)
		e->data.scalar.value = strdup("value"), e->data.scalar.length = 5, e->data.scalar.style = 1 + n % 5;
	return 1;
}
void text(const char *s, unsigned long n);
int main(int argc, char **argv)
{
	struct event e;
	int type = 0;
	while (type != 2) {
		if (!next(&e))
			return 1;
		type = e.type;
		if (type == 1)
			puts("+STR");
		else if (type == 2)
			puts("-STR");
		else if (type == 3) {
			printf("+DOC");
			if (!e.data.document.implicit)
				printf(" ---");
			printf("\n");
		} else if (type == 4)
			puts("-DOC");
		else if (type == 9) {
			printf("+MAP");
			if (e.data.mapping.anchor)
				printf(" &%s", e.data.mapping.anchor);
			if (e.data.mapping.tag)
				printf(" <%s>", e.data.mapping.tag);
			printf("\n");
		} else if (type == 10)
			puts("-MAP");
		else if (type == 7) {
			printf("+SEQ");
			if (e.data.sequence.anchor)
				printf(" &%s", e.data.sequence.anchor);
			if (e.data.sequence.tag)
				printf(" <%s>", e.data.sequence.tag);
			printf("\n");
		} else if (type == 8)
			puts("-SEQ");
		else if (type == 6) {
			printf("=VAL");
			if (e.data.scalar.anchor)
				printf(" &%s", e.data.scalar.anchor);
			if (e.data.scalar.tag)
				printf(" <%s>", e.data.scalar.tag);
			text(e.data.scalar.value, e.data.scalar.length);
			printf("\n");
		} else if (type == 5)
			printf("=ALI *%s\n", e.data.alias.name);
		else
			abort();
		clear(&e);
	}
	return 0;
}
`
	const text = "void text(const char *s, unsigned long n) {}"
	p := plantest.New(t, built(t, "gcc-12", "-O2", map[string]string{"a.c": source, "b.c": text}), "release", plan.Options{})
	slices.SortFunc(p.Sites, func(a, b plan.Site) int { return cmp.Compare(a.Addr, b.Addr) })
	tested := slices.IndexFunc(p.Sites, func(s plan.Site) bool { return s.CallLine == 21 })
	if tested < 0 || tested+1 == len(p.Sites) || p.Sites[tested].Way.Again || !p.Sites[tested+1].Way.Again {
		t.Fatalf("a run begins behind the test at %d of %v", tested, p.Sites)
	}
	known := 0
	for i := range p.Sites {
		if s := &p.Sites[i]; s.CallLine == 36 && !s.Way.Again {
			known++
		}
	}
	if known != 5 {
		t.Errorf("%d ways of the run that has the common code, not 5: %v", known, p.Sites)
	}
}
