package coverage_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bpfprologue/bpfprologue/coverage"
	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/share"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

func measure(t *testing.T, name string) *coverage.Report {
	t.Helper()
	r, err := coverage.Measure(context.Background(), testenv.Fixture(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestMeasure counts what Sites and Params say, one by one.
func TestMeasure(t *testing.T) {
	for _, name := range fixtures.Names() {
		sites, err := testenv.Fixture(t, name).Sites(context.Background(), nil)
		if err != nil {
			t.Fatal(err)
		}
		emitted := share.NewSharer(testenv.Fixture(t, name), share.Options{})
		want := map[dwarfloc.SiteKind]map[string]int{dwarfloc.Entry: {}, dwarfloc.Inline: {}}
		for _, s := range sites {
			params, err := s.Params()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := emitted.Parameters(params); err != nil {
				t.Fatal(err)
			}
			w := want[s.Kind]
			w["sites"]++
			located := 0
			for _, v := range params {
				w["parameters"] += v.Entries
				if v.Located() {
					located++
					w["located"] += v.Entries
				} else {
					w[v.Reason.Code.String()] += v.Entries
				}
			}
			if len(params) > 0 && located == len(params) {
				w["all"]++
			}
		}
		r := measure(t, name)
		if r.Emitted != emitted.Totals() || r.Emitted.Prologues == 0 {
			t.Errorf("%s: emitted %+v, want %+v", name, r.Emitted, emitted.Totals())
		}
		for kind, c := range map[dwarfloc.SiteKind]*coverage.Counts{dwarfloc.Entry: &r.Entry, dwarfloc.Inline: &r.Inline} {
			got := map[string]int{"sites": c.Sites, "parameters": c.Parameters, "located": c.Located(), "all": c.All}
			for k, n := range c.ByReason {
				got[k] = n
			}
			if diff := cmp.Diff(want[kind], got); diff != "" {
				t.Errorf("%s, %v (-want +got):\n%s", name, kind, diff)
			}
			if n := c.NoParams + c.All + c.Some + c.None; n != c.Sites {
				t.Errorf("%s, %v: the classes of sites add up to %d of %d", name, kind, n, c.Sites)
			}
			rules := 0
			for _, n := range c.ByRule {
				rules += n
			}
			if rules != c.Located() {
				t.Errorf("%s, %v: the rules add up to %d of %d", name, kind, rules, c.Located())
			}
		}
	}
}

func TestDiff(t *testing.T) {
	gcc, clang := measure(t, "basic-gcc12-O2-dwarf5.elf"), measure(t, "basic-clang14-O2-dwarf5.elf")
	if d := coverage.Diff(gcc, gcc); len(d) != 0 {
		t.Errorf("an image differs from itself: %v", d)
	}
	found := false
	for _, c := range coverage.Diff(gcc, clang) {
		if c.Name == "inline.located" {
			found = c.Old == gcc.Inline.Located() && c.New == clang.Inline.Located()
		}
		if c.Old == c.New {
			t.Errorf("%s does not differ: %d", c.Name, c.Old)
		}
	}
	if !found {
		t.Error("the difference of inline.located is missing")
	}
}

func TestPrint(t *testing.T) {
	var b strings.Builder
	measure(t, "basic-gcc12-O2-dwarf5.elf").Print(&b)
	for _, want := range []string{"out of line: ", "inlined: ", "all located", "optimized-out", "█", "distinct: ", " helper calls, "} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in the report:\n%s", want, b.String())
		}
	}
}
