package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestChosenFor: of "f(x ? x : y)", and of "if (!x) x = y; f(x)", GCC makes a conditional move, and goes on that what is passed is x, in the memory from which that was loaded. Where it notes
// the register that was chosen, and where it notes the choice, that is passed; and the choice of another statement is not.
func TestChosenFor(t *testing.T) {
	const source = `
struct node { int small; struct node *next; };
volatile long sink;
static inline __attribute__((always_inline)) void use(unsigned char n)
{
	sink = n + n < 100;
	sink = n * 5;
}
void named(struct node *n, int by)
{
	int x = n->small;
	int y = x ? x : by;
	use(y);
}
void assigned(struct node *n, int by)
{
	int x = n->small, y = n->next->small;
	if (!x)
		x = y;
	use(x);
}
void noted(struct node *n, int by)
{
	int x = n->small;
	use(x ? x : by);
}
void least(struct node *n, int by)
{
	int x = n->small, y = n->next->small;
	use(x < y ? x : y);
}
static inline __attribute__((always_inline)) void both(unsigned char n, long m)
{
	sink = n + n < 100;
	sink = n * 5 + m;
}
void two(struct node *n, int by, long m)
{
	int x = n->next->small;
	int y = x ? x : by;
	both(y, m);
}
void stored(struct node *n, int by, long m, long *p)
{
	int x = n->next->small;
	*p = 3;
	int y = x ? x : by;
	both(y, m);
}
static inline __attribute__((always_inline)) void pair(unsigned char n, long m)
{
	sink = n + n < 100;
	sink = n * 5 + m;
}
void before(struct node *n, int by, long m, long z)
{
	int x = n->next->small;
	int y = x ? x : by;
	if (m < y)
		m = z;
	pair(y, m);
}
static inline __attribute__((always_inline)) void noted_pair(unsigned char n, long m)
{
	sink = n + n < 100;
	sink = n * 5 + m;
}
void in_both(struct node *n, int by, long m)
{
	int x = n->next->small;
	int y = x ? x : by;
	long k = m > y ? m : y;
	noted_pair(y, k);
}
int another(struct node *n, int by)
{
	int x = n->small;
	int y = x ? x : by;
	use(x);
	return y;
}
`
	doubtful := map[string]bool{"named": true, "assigned": true, "noted": false, "least": false, "another": false}
	for _, options := range []string{"-O2 -shared -fPIC", "-Os -shared -fPIC"} {
		img := built(t, "gcc-12", options, map[string]string{"a.c": source})
		isSure(t, options, img, "both m", 2, true)
		if options == "-Os -shared -fPIC" { // at -O2 the one of stored is lost
			isSure(t, options, img, "both n", 2, false)
		}
		isSure(t, options, img, "pair n", 1, false) // in front of the choice of m, which is noted
		isSure(t, options, img, "pair m", 1, true)
		isSure(t, options, img, "noted_pair n", 1, true)
		p := plantest.New(t, img, "use n", plan.Options{})
		for i := range p.Sites {
			s := &p.Sites[i]
			v := s.Args[0].Variable
			if want, ok := doubtful[s.Symbol]; !ok || !v.Located() || (v.Loc.Doubt != reasons.None) != want {
				t.Errorf("%s: %v: %v, doubt %v", options, s, v, v.Loc.Doubt)
			}
		}
		if len(p.Sites) != len(doubtful) {
			t.Errorf("%s: %d sites", options, len(p.Sites))
		}
	}
}
