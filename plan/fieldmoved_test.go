package plan_test

import (
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestFieldByMovedPointer: GCC notes a bit-field that begins with its byte as all of the byte, by a register to which it has moved the pointer for a loop that follows. The caller's
// variable, whose type has the field, is noted in the register from which it was moved.
func TestFieldByMovedPointer(t *testing.T) {
	const source = `
static volatile unsigned sink;
__attribute__((noipa)) void use(long v) { sink += v; }
struct node { struct node *next; int key; unsigned char tag; unsigned flags : 3, mode : 5, live : 1; };
static inline unsigned at_most(unsigned n, unsigned most) { n = n < most ? n : most; use(n); return n * 3; }
static inline _Bool flagged(_Bool b) { if (b) use(7); return !b; }
static inline long wide(long v) { use(v >> 3); return v + 1; }
static inline int depth(struct node *p, int d) { if (!p) return d; use(d); return depth(p->next, d + 1); }
__attribute__((noinline)) void each(struct node *list)
{
	for (struct node *p = list; p; p = p->next) {
		use(flagged(p->live));
		use(wide(p->key));
		use(at_most(p->flags, p->mode));
		use(depth(p, p->key));
	}
}
struct node nodes[3] = { { nodes + 1, 1, 3, 5 }, { nodes + 2, 2, 2, 6 }, { 0, 7, 4, 7 } };
int main(void) { each(nodes); return 0; }
`
	for _, build := range []string{"gcc-11 -O2", "gcc-12 -O2", "gcc-12 -Os"} {
		cc, options, _ := strings.Cut(build, " ")
		onlySite(t, build, built(t, cc, options, map[string]string{"a.c": source}), "at_most n", "& 7")
	}
}

// onlySite checks that a definition's argument at its only site is sure, and that its location ends so.
func onlySite(t *testing.T, build string, img *dwarfloc.Image, definition, end string) {
	t.Helper()
	p := plantest.New(t, img, definition, plan.Options{})
	if len(p.Sites) != 1 {
		t.Fatalf("%s: probes of %s: %v", build, definition, p.Sites)
	}
	if a := p.Sites[0].Args[0].Variable; !a.Located() || a.Loc.Doubt != reasons.None || !strings.HasSuffix(a.Loc.Text(img.Arch()), end) {
		t.Errorf("%s: %s is %v, and does not end with %q", build, definition, a, end)
	}
}
