package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestStoredForTheCopy: GCC keeps the members of an object in registers up to where the body copies it, and the function takes no address in its frame: it only saves and
// restores registers there.
func TestStoredForTheCopy(t *testing.T) {
	const source = `
struct options {
	static options all() { return {}; }
	bool a, b, c, d, e, f, g, h, i, j; unsigned long limit = 0;
};
struct value { long kind = 0; void *at = 0; value *next = 0; ~value(); };
struct reader {
	value first, second; options kept; bool last = false;
	reader(const options &o) : kept(o) {}
};
__attribute__((noipa)) value::~value() { at = 0; }
struct outer { bool flag; reader in; outer(bool f, const options &o) : flag(f), in(o) {} virtual ~outer() {} };
__attribute__((noipa)) bool get(const char *s) { return *s; }
__attribute__((noipa)) unsigned number(const char *s) { return *s; }
__attribute__((noipa)) outer *make(const char *s)
{
	bool f = get(s);
	options o = options::all();
	o.a = get(s + 1);
	o.b = get(s + 2);
	o.c = get(s + 3);
	o.d = get(s + 4);
	o.e = get(s + 5);
	o.f = get(s + 6);
	o.limit = number(s + 7);
	o.g = get(s + 8);
	o.h = get(s + 9);
	o.i = get(s + 10);
	o.j = get(s + 11);
	return new outer(f, o);
}
int main(void) { return make("abcdefghijkl")->in.kept.a; }
`
	p := plantest.New(t, built(t, "g++-12", "-Os", map[string]string{"a.cc": source}), "reader::reader o", plan.Options{})
	if len(p.Sites) != 1 {
		t.Fatalf("%d sites", len(p.Sites))
	}
	if v := p.Sites[0].Args[0].Variable; !v.Located() || v.Loc.Doubt != reasons.Contradictory {
		t.Errorf("o is at %v, and the doubt is %v", v.Loc, v.Loc.Doubt)
	}
}
