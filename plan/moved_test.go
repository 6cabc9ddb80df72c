package plan_test

import (
	"path/filepath"
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/rule"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestMoved: clang says of v that it is what bar was called with, which bar's own instructions have in %r15, or its lower half. Of wide all
// of it would be needed, which no register has.
func TestMoved(t *testing.T) {
	const source = `
static void __attribute__((noinline)) foo(const char *x, long long y, int z) { asm volatile("" : : "r"(x), "r"((int)y), "r"(z) : "memory"); }
struct s { struct s *n; int v; } a[10];
struct s *__attribute__((noinline)) bar(struct s *c, int v, struct s *e)
{
	while (c < e) {
		foo("c", (long)c, 0);
		foo("v", v, 1);
		foo("e", (long)e, 2);
		if (c->v == v)
			return c;
		foo("v", v, 4);
		c++;
	}
	return 0;
}
struct s *__attribute__((noinline)) wide(struct s *c, long long v, struct s *e)
{
	while (c < e) {
		foo("v", (int)v, 1);
		foo("e", (long)e, 2);
		if (c->v == (int)v)
			return c;
		foo("v", (int)v, 4);
		c++;
	}
	return 0;
}
int main(void)
{
	asm volatile("" : : "r"(&a[0]) : "memory");
	return bar(&a[a[0].v], a[0].v + 1, &a[a[0].v + 1]) || wide(&a[a[0].v], a[0].v + 1, &a[a[0].v + 1]);
}
`
	img := built(t, "clang-14", "-O2", map[string]string{"a.c": source})
	for _, tt := range []struct {
		definition string
		rule       loc.Rule
		reason     loc.ReasonCode
	}{
		{"a.c:8 v", rule.Moved, reasons.None},
		{"a.c:12 v", rule.Moved, reasons.None},
		{"a.c:20 v", rule.None, reasons.EntryValueOnly},
	} {
		p := plantest.New(t, img, tt.definition, plan.Options{})
		for i := range p.Sites {
			if v := p.Sites[i].Args[0].Variable; v.Reason.Code != tt.reason || tt.reason == reasons.None && v.Loc.Rule != tt.rule {
				t.Errorf("%s: %v, %v by %v", tt.definition, &p.Sites[i], v.Reason, v.Loc.Rule)
			}
		}
	}
	without, err := dwarfloc.Open(filepath.Clean(img.Path()), &dwarfloc.Options{Recover: []string{"table"}})
	if err != nil {
		t.Fatal(err)
	}
	defer without.Close()
	if v := plantest.New(t, without, "a.c:8 v", plan.Options{}).Sites[0].Args[0].Variable; v.Reason.Code != reasons.EntryValueOnly {
		t.Errorf("without the rule: %v by %v", v.Reason, v.Loc.Rule)
	}
}
