package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestNotedAtJoin: GCC notes a variable to which three branches assign 1, 6 and 2 where they meet, as the computation that is 1 too.
func TestNotedAtJoin(t *testing.T) {
	const source = `
struct spec { unsigned mode, width, height, flags; unsigned char type; };
struct info { unsigned valid; };
volatile unsigned sink;
__attribute__((noipa)) void fetch(struct spec *s, void *at, unsigned long n) { sink = n; *(char *)at = n; }
__attribute__((noipa)) void sum(struct spec *s, void *at, unsigned long n) { sink += n; *(char *)at += n; }
__attribute__((noipa)) int finish(struct spec *s, unsigned skip) { return skip + s->mode; }
__attribute__((noipa, noreturn)) void fail(struct spec *s, const char *why) { __builtin_trap(); }
__attribute__((noipa)) void report(struct spec *s, const char *why) { sink = *why; }
void part_read(struct spec *s, unsigned char *at, unsigned length)
{
	if (!s)
		return;
	fetch(s, at, length);
	sum(s, at, length);
}
void branches(struct spec *s, struct info *i, unsigned length)
{
	unsigned part;
	unsigned char at[6];
	if ((s->mode & 1) == 0)
		fail(s, "missing");
	else if ((s->mode & 4) != 0 || (s->type == 3 && (s->mode & 2) == 0)) {
		finish(s, length);
		report(s, "place");
		return;
	} else if (i && (i->valid & 32) != 0) {
		finish(s, length);
		report(s, "twice");
		return;
	}
	if (s->type == 3)
		part = 1;
	else if ((s->type & 2) != 0)
		part = 6;
	else
		part = 2;
	if (length != part) {
		finish(s, length);
		report(s, "length");
		return;
	}
	part_read(s, at, part);
	if (finish(s, 0) != 0)
		return;
	if (s->type == 3)
		s->flags = at[0];
	else
		s->width = at[1] + at[2] + at[4];
}
int main(void)
{
	struct spec s = {7, 1, 2, 3, 3}, t = {1, 2, 3, 4, 2};
	branches(&s, 0, 1);
	branches(&t, 0, 6);
	return 0;
}
`
	p := plantest.New(t, built(t, "gcc-12", "-O3", map[string]string{"a.c": source}), "part_read length", plan.Options{})
	seen := map[string]loc.ReasonCode{}
	for i := range p.Sites {
		if v := p.Sites[i].Args[0].Variable; v.Located() {
			seen[p.Sites[i].Symbol] = v.Loc.Doubt
		}
	}
	if len(seen) != 2 || seen["part_read"] != reasons.None || seen["branches"] != reasons.Contradictory {
		t.Errorf("the doubts are %v", seen)
	}
}
