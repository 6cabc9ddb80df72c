package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestAligned: the body's assignment is in front of the caller's loop, of which GCC made one copy for each outcome of the body's test. In each the note of what is assigned begins at
// a label in front of the bytes that align the loop, with the view of the body's last statement behind them.
func TestAligned(t *testing.T) {
	const source = `
struct node { long value; int small; unsigned char bytes[8]; struct node *next; };
volatile long sink;
static struct node nodes[8];
static inline long step(int flag, unsigned n, const struct node *p, const struct node *q)
{
	if ((unsigned long)(flag ? -1 : n) % 2) {
		n -= nodes[1].value - (unsigned long)flag / 4;
	}
	sink = 70000;
	if ((n & q->value) + -3000)
		return nodes[p->next->small & 7].value;
	return -1;
}
static inline __attribute__((always_inline)) unsigned char loop(const struct node *p, const struct node *q, unsigned sum)
{
	int i = (unsigned char)q->value & 3;
	do {
		sum += step(q->small < q->bytes[1], 1 - q->value - p->bytes[1], &nodes[p->bytes[1] & 7], q);
	} while (i-- > 0);
	sink = p->bytes[1];
	return q->value | (sum * sum);
}
__attribute__((noinline)) int all(const struct node *p, _Bool b)
{
	if (-1 * (p->bytes[1] + b)) {
		b ^= loop(p, &nodes[1], p->bytes[1] + p->small + p->small);
		b ^= nodes[p->bytes[1] & 7].value + ~p->small;
	}
	return b;
}
int main(int argc, char **argv)
{
	for (int i = 0; i < 8; i++)
		nodes[i] = (struct node){i * 777777 + argc, argc, {argc, i}, &nodes[i]};
	return all(&nodes[argc & 7], argc) & 1;
}
`
	p := plantest.New(t, built(t, "gcc-12", "-O3 -fwrapv", map[string]string{"a.c": source}), "step n", plan.Options{})
	if len(p.Sites) != 3 {
		t.Fatalf("probes of step: %v", p.Sites)
	}
	for i := range p.Sites {
		if a := p.Sites[i].Args[0].Variable; !a.Located() || a.Loc.Doubt != reasons.Reassigned {
			t.Errorf("n at %#x is doubtful for %q: %v", p.Sites[i].Addr, a.Loc.Doubt, a)
		}
	}
}
