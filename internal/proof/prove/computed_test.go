package prove

import (
	"context"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/plan"
)

// computedDefinitions are about functions of memberSource.
var computedDefinitions = []string{
	"if=o->in.a > 3 && n * 2 <= o->in.b - 7 || !o->next; far n+1 o->in.c<<3 -o->in.b",
	"if=(unsigned char)o->in.a % 5 != (o->e ^ n); far (short)n ~o->in.a o->in.b*o->in.c",
	"if=o->next->a / o->in.b >= 2; far o->next->c|n n&0xffffffff n>>3",
	"if=o.in.c + 1 > n && i.b < 4; near n-o.in.a i.c*n",
}

// TestComputed: computed expressions and conditions have the values that the second evaluator finds.
func TestComputed(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	for _, options := range [][]string{{"-g", "-O0"}, {"-g", "-O2"}} {
		img, second := built(t, memberSource, options...)
		for _, text := range computedDefinitions {
			for _, reads := range readsHere() {
				r, err := Plan(context.Background(), plantest.New(t, img, text, plan.Options{}), second, Options{Seed: seed, States: 32, Reads: reads})
				if err != nil {
					t.Fatal(err)
				}
				if len(r.Disagreements) > 0 || r.Values+r.NotFetched == 0 || r.Unchecked > 0 {
					t.Errorf("%v, %v reads: %s: %v\n%s", options, reads, text, r, strings.Join(r.Disagreements, "\n"))
				}
			}
		}
	}
}

// TestFindsWrongCondition checks that another condition is found.
func TestFindsWrongCondition(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	img, second := built(t, memberSource, "-g", "-O2")
	p := plantest.New(t, img, "if=n & 1; far n", plan.Options{})
	for i := range p.Sites {
		c := &p.Sites[i].If[0]
		v := *c.Variable
		v.Loc.Expr = &loc.Expr{Op: ops.Eq, A: v.Loc.Expr, B: &loc.Expr{Op: ops.Const}}
		c.Variable = &v
	}
	r, err := Plan(context.Background(), p, second, Options{Seed: seed, States: 32})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Disagreements) == 0 {
		t.Errorf("nothing was found: %v", r)
	}
}
