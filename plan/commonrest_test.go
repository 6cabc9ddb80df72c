package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestCommonRest: GCC merges all of one call but its end with another call in the other branch, and says only of the latter where it is entered. A run that comes to that end goes
// on: it has begun where both do.
func TestCommonRest(t *testing.T) {
	const source = `
#include <stdlib.h>
struct pool { long used; void *manager; void (*release)(void *, void *, unsigned long); int traced; };
struct clause { unsigned size; unsigned learned : 1; };
static void release(struct pool *p, void *from, unsigned long size)
{
	if (!from)
		return;
	p->used -= size;
	if (p->release)
		p->release(p->manager, from, size);
	else
		free(from);
}
static unsigned long bytes_of(struct pool *p, unsigned size, unsigned learned)
{
	unsigned long bytes = 8 * size + 24;
	if (learned && size > 2)
		bytes += 4;
	if (p->traced)
		bytes += 8;
	return bytes;
}
__attribute__((noipa)) void drop(struct pool *p, struct clause *c)
{
	unsigned long bytes = bytes_of(p, c->size, c->learned);
	if (p->traced)
		release(p, (char *)c - 8, bytes);
	else
		release(p, c, bytes);
}
int main(void)
{
	struct pool p = {0};
	for (int i = 0; i < 5; i++)
		drop(&p, calloc(1, 64));
	return 0;
}
`
	for _, options := range []string{"-O2", "-O3"} {
		p := plantest.New(t, built(t, "gcc-12", options, map[string]string{"a.c": source}), "release from", plan.Options{})
		ways := 0
		for i := range p.Sites {
			if s := &p.Sites[i]; s.Symbol == "drop" {
				if ways++; s.Way.Again {
					t.Errorf("%s: %v may be hit again", options, s)
				}
			}
		}
		if ways != 1 {
			t.Errorf("%s: a run is hit at one of %d ways, not 1: %v", options, ways, p.Sites)
		}
	}
}
