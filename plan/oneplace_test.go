package plan_test

import (
	"slices"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestOnePlace: where a body adds what its caller has subtracted, no instruction does either, and the register of the caller's variable is all that is noted. Another body of the function shows that
// it assigns the parameter. A register that the body changes itself has what is passed before, as in "while (l) l = l->next"; and so has that of a parameter that no body assigns.
func TestOnePlace(t *testing.T) {
	const source = `
volatile long sink;
struct list { struct list *next; int n; };
static inline int post(int n)
{
	if (n++ > 3)
		return sink + n;
	return n;
}
static inline unsigned take(unsigned n, unsigned left)
{
	if ((left -= n) > 100)
		sink = left;
	return left;
}
static inline int only(int n, int k)
{
	if (n > k)
		sink = n;
	return k;
}
static inline int length(struct list *l)
{
	int n = 0;
	while (l) {
		sink = l->n;
		l = l->next;
	}
	return n;
}
__attribute__((noipa)) int posts(int a, int b) { int r = post(a - 1); r ^= post(b + 1); return r + post(a + b) + a; }
__attribute__((noipa)) unsigned takes(unsigned a, unsigned b) { unsigned r = take(a, b); r += take(3, b + 3); return r + take(b, a + b) + a; }
__attribute__((noipa)) int onlys(int a, int b) { int r = only(a, b); return r + only(b, r) + only(r, a); }
__attribute__((noipa)) int lengths(struct list *a, struct list *b) { int r = length(a); return r + length(b); }
int main(void) { return posts(1, 2) + takes(3, 4) + onlys(5, 6) + lengths(0, 0); }
`
	for _, build := range []struct{ compiler, options string }{
		{"gcc-12", "-O2 -gno-variable-location-views"}, {"clang-14", "-O2"}, {"clang-19", "-O2"}, {"clang-19", "-Os"},
	} {
		name := build.compiler + " " + build.options
		img := built(t, build.compiler, build.options, map[string]string{"a.c": source})
		for _, definition := range []string{"post n", "take left"} {
			p := plantest.New(t, img, definition, plan.Options{})
			for i := range p.Sites {
				v := p.Sites[i].Args[0].Variable
				if text := v.Loc.Text(img.Arch()); v.Located() && v.Loc.Doubt == reasons.None && text == "%rdi" {
					t.Errorf("%s: %s at %v: the caller's variable is believed", name, definition, &p.Sites[i])
				}
			}
		}
		for _, definition := range []string{"only k", "length l"} {
			p := plantest.New(t, img, definition, plan.Options{})
			if v := p.Sites[0].Args[0].Variable; definition == "only k" && !v.Located() || v.Located() && v.Loc.Doubt != reasons.None {
				t.Errorf("%s: %s at %v: %v", name, definition, &p.Sites[0], v)
			}
		}
	}
}

// TestOverBranch: of "while (--n > 0)" in pre(b + 1) nothing is computed but n is b, where the caller's variable is. The body's first branch is behind the statement, of which another body shows that it
// subtracts, and over which the note goes on. A branch that is before the statement in the text, and which the other body lacks, is not.
func TestOverBranch(t *testing.T) {
	const source = `
static volatile long sink;
static inline int pre(int n)
{
	while (--n > 0)
		sink += n;
	return n;
}
static inline long down(long i)
{
	for (; i--; )
		sink += 3 * i;
	return i;
}
static inline int rest(int n, int all)
{
	if (all > 5)
		return n;
	while (--n > 0)
		sink += n;
	return n;
}
__attribute__((noipa)) int pres(int a, int b) { int r = pre(a); r += pre(b + 1); return r + pre(a - 1); }
__attribute__((noipa)) long downs(long a, long b) { long r = down(a); r += down(b + 1); return r; }
__attribute__((noipa)) int rests(int a, int b) { int r = rest(a, 1); sink = 1; r += rest(b, r); return r; }
`
	for _, tt := range []struct {
		compiler, options, definition string
		sure                          []bool
	}{
		{"gcc-12", "-O2 -gno-variable-location-views", "pre n", []bool{true, false}},
		{"clang-14", "-O2", "pre n", []bool{true, false}},
		{"gcc-12", "-O2 -gno-variable-location-views", "down i", []bool{true, false}},
		{"clang-14", "-O1", "down i", []bool{true, false}},
		{"clang-14", "-O2", "rest n", []bool{true, true}},
	} {
		name := tt.compiler + " " + tt.options + ": " + tt.definition
		img := built(t, tt.compiler, tt.options+" -shared -fPIC", map[string]string{"a.c": source})
		p := plantest.New(t, img, tt.definition, plan.Options{})
		var sure []bool
		for i := range p.Sites {
			if v := p.Sites[i].Args[0].Variable; v.Located() {
				sure = append(sure, v.Loc.Doubt == reasons.None)
			}
		}
		if len(sure) < len(tt.sure) || !slices.Equal(sure[:len(tt.sure)], tt.sure) {
			t.Errorf("%s: sure are %v", name, sure)
		}
	}
}
