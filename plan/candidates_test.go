package plan_test

import (
	"errors"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/sites"
)

// TestCandidates plans functions of which an image has only some.
func TestCandidates(t *testing.T) {
	img := testenv.Fixture(t, "basic-gcc12-O2-dwarf5.elf")
	for _, tt := range []struct{ text, function string }{
		{"no_such|my_func_one_abcd", "my_func_one_abcd"},
		{"my_func_*_abcd|no_such", "my_func_*_abcd"},
		{"page_pin|my_func_one_abcd", "page_pin"}, // only inlined
	} {
		def, err := probe.Parse(tt.text)
		if err != nil {
			t.Fatal(err)
		}
		p, err := plan.New(t.Context(), img, def, plan.Options{})
		if err != nil {
			t.Errorf("%s: %v", tt.text, err)
			continue
		}
		if p.Definition.Point.Function != tt.function || def.Point.Function == tt.function {
			t.Errorf("%s: %s was taken, and the definition has %s", tt.text, p.Definition.Point.Function, def.Point.Function)
		}
		n := 0
		visit := plan.Visitor[int]{
			Site: func(*plan.Plan, *plan.Site) (int, error) { return 0, nil },
			Next: func(int, int) error { n++; return nil },
		}
		if err := plan.Each(t.Context(), img, def, plan.Options{}, visit); err != nil || n != len(p.Sites) {
			t.Errorf("%s: %d sites one by one, %d in the plan: %v", tt.text, n, len(p.Sites), err)
		}
	}
	def, err := probe.Parse("no_such|nor_this")
	if err != nil {
		t.Fatal(err)
	}
	var missing *sites.NotFoundError
	if _, err := plan.New(t.Context(), img, def, plan.Options{}); !errors.As(err, &missing) || missing.Pattern != "no_such|nor_this" {
		t.Error(err)
	}
}
