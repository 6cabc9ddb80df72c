package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestInvariantHead: GCC moves what a body loads out of the caller's loops, and its own instructions at the head of those, which have no place, have that of the load in the line table, as in
// box2d's b2World::Solve. No run begins before the loops; a body with a loop of its own begins once.
func TestInvariantHead(t *testing.T) {
	const (
		source = `
struct body { int index, flags; struct edge *edges; };
struct edge { struct body *other; struct joint *joint; struct edge *next; };
struct joint { int flag, number; };
struct island { struct body **bodies; struct joint **joints; int bodyCount, jointCount; short bodyCapacity, jointCapacity; };
__attribute__((noreturn)) void fail(int line) { __builtin_trap(); }
struct island all;
static inline void add(struct island *s, struct joint *j)
{
	if (s->jointCount >= s->jointCapacity)
		fail(__LINE__);
	s->joints[s->jointCount++] = j;
}
__attribute__((noipa)) int walk(struct body **stack, int n)
{
	struct island *s = &all;
	while (n > 0) {
		struct body *b = stack[--n];
		s->bodies[s->bodyCount++] = b;
		b->flags |= 2;
		if (b->index == 0)
			continue;
		for (struct edge *e = b->edges; e; e = e->next) {
			if (e->joint->flag)
				continue;
			add(s, e->joint);
			e->joint->flag = 1;
			if (e->other->flags & 1)
				continue;
			stack[n++] = e->other;
			e->other->flags |= 1;
		}
	}
	return n;
}
static inline int length(const struct edge *e)
{
	int n = 0;
	while (e) {
		n += e->joint->number;
		e = e->next;
	}
	return n;
}
__attribute__((noipa)) int lengths(struct body **b, int n)
{
	int sum = 0;
	while (n > 0)
		sum += length(b[--n]->edges);
	return sum;
}
`
		rest = `
struct body { int index, flags; struct edge *edges; };
struct edge { struct body *other; struct joint *joint; struct edge *next; };
struct joint { int flag, number; };
struct island { struct body **bodies; struct joint **joints; int bodyCount, jointCount; short bodyCapacity, jointCapacity; };
extern struct island all;
int walk(struct body **stack, int n);
int main(void)
{
	static struct joint j[3]; static struct body b[4]; static struct edge e[3];
	static struct body *bodies[8], *stack[8]; static struct joint *joints[8];
	all.bodies = bodies; all.joints = joints; all.bodyCapacity = all.jointCapacity = 8;
	for (int k = 0; k < 3; k++) { e[k].other = &b[k + 1]; e[k].joint = &j[k]; b[k].index = 1; b[k].edges = &e[k]; }
	stack[0] = b;
	b->flags = 1;
	return walk(stack, 1);
}
`
	)
	for _, compiler := range []string{"gcc-11", "gcc-12"} {
		for _, options := range []string{"-O2", "-O3", "-Os"} {
			img := built(t, compiler, options+" -gno-statement-frontiers", map[string]string{"a.c": source, "b.c": rest})
			for _, function := range []string{"add", "length"} {
				if sites, again := waysOf(plantest.New(t, img, function, plan.Options{})); sites != 1 || again != 0 {
					t.Errorf("%s %s: %s: %d sites, %d of which may be hit without a run, not one", compiler, options, function, sites, again)
				}
			}
		}
	}
}
