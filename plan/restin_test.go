package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestRestIn: GCC merges the rest of one run with that of another from an instruction in the midst of a statement on, which has code before the jump too, as in duktape's duk_hobject_putprop: a
// run that comes from there begins no other one. Where no ends are merged, each way is sure.
func TestRestIn(t *testing.T) {
	const source = `
struct object { int flags, count; };
struct value { int tag, extra; struct object *object; };
struct thread { int a; struct value *top; int b; };
__attribute__((noipa)) void zero(struct thread *t, struct object *o) { t->a += o->flags; }
__attribute__((noipa)) int slow(struct thread *t, int k) { t->b += k; return k & 2; }
static inline __attribute__((always_inline)) void pop(struct thread *t)
{
	struct value *v = --t->top;
	int tag = v->tag;
	struct object *o = v->object;
	v->tag = 2;
	if (tag & 8) {
		if (--o->count == 0)
			zero(t, o);
	}
}
__attribute__((noipa)) int put(struct thread *t, struct value *v, int k)
{
	if (k > 4) {
		if (k != 5)
			slow(t, 1);
		pop(t);
		return 1;
	}
	struct object *o = v->object;
	int tag = v->tag;
	v->extra = t->top[-1].extra;
	v->tag = t->top[-1].tag;
	if (tag & 8) {
		if (--o->count == 0)
			zero(t, o);
	}
	pop(t);
	return 1;
}
`
	for options, want := range map[string][2]int{"-O2 -shared -fPIC": {2, 1}, "-O1 -shared -fPIC -fno-crossjumping": {2, 0}} {
		hasWays(t, plantest.New(t, built(t, "gcc-12", options, map[string]string{"a.c": source}), "pop", plan.Options{}), want[0], want[1])
	}
}
