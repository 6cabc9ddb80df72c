package tracer_test

import (
	"os/exec"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/tracer"
)

// A thousand customers have memory of their own, with two names. One text is NULL, and one structure large.
const keysSource = `
#include <string>
#include <vector>

struct customer { int kind; std::string name; std::vector<short> orders; };
struct large { char text[300], none[8], odd[4]; int n; };
struct shelf { std::vector<std::string> things; int n; };
volatile long sink;

__attribute__((noinline)) void sell(const customer &who, const char *what) { sink = sink + who.kind + (what != nullptr); }
__attribute__((noinline)) void fill(large *l) { sink = sink + l->n; }

__attribute__((noinline)) void stock(const shelf &s, const std::vector<std::string> &more) { sink = sink + s.things.size() + more.size(); }

int main()
{
	stock({{"tea", "a kettle of copper"}, 2}, {"x", "y", "z"});
	stock({{}, 0}, {});
	for (int i = 0; i < 1000; i++) {
		auto *c = new customer{i % 3 / 2, i % 3 ? "ann" : "a name that has memory of its own", {}};
		if (i % 3 == 2)
			c->orders = {1, -2};
		sell(*c, i == 500 ? nullptr : "tea");
	}
	large l = {"large", "", {0, 5}, 0};
	for (l.n = 0; l.n < 3; l.n++)
		fill(&l);
}
`

// TestKeysInParts: a structure as a key is printed with the texts and slices that it refers to, and where these are in memory is no part of
// it; a text that is NULL is another one than what cannot be read; a key that is too large for the stack is elsewhere.
func TestKeysInParts(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	path, img := build(t, "g++-12", "keys.cc", keysSource, "-O2", "-fno-ipa-sra")
	customers := []string{
		`333 {kind=0, name="ann", orders=[]}`, `333 {kind=1, name="ann", orders=[1, -2]}`,
		`334 {kind=0, name="a name that has memory of its own", orders=[]}`,
	}
	for _, tt := range []struct {
		definition string
		by         []string
		runs       bool
		want       []string
	}{
		{"sell who", []string{"who"}, false, customers},
		{"sell who", []string{"who"}, true, customers},
		{"sell who.kind what:string", []string{"what"}, false, []string{"1 NULL", `999 "tea"`}},
		{"sell who.kind what:string", []string{"what", "kind"}, true, []string{"1 NULL 1", `332 "tea" 1`, `667 "tea" 0`}},
		{"stock s", []string{"s"}, false, []string{`1 {things=["tea", "a kettle of copper"], n=2}`, `1 {things=[], n=0}`}},
		{"stock more", []string{"more"}, true, []string{`1 ["x", "y", ... 1 more]`, `1 []`}},
		{"stock s.things[1] s.things", []string{"things"}, true, []string{`1 "a kettle of copper"`, "1 ?"}},
		{"fill *l", []string{"l", "function"}, false, []string{
			`1 {text="large", none="", odd=[0, 5, 0, 0], n=0} fill`, `1 {text="large", none="", odd=[0, 5, 0, 0], n=1} fill`, `1 {text="large", none="", odd=[0, 5, 0, 0], n=2} fill`,
		}},
	} {
		def, err := probe.Parse(tt.definition)
		if err != nil {
			t.Fatal(err)
		}
		o := plan.Options{Target: inFile(t, img).Target(), Keys: tt.by, LargeRecords: true}
		what := tracer.SummaryOptions{By: tt.by, MaxKeys: 8} // each customer's own key would have no room
		var plans []*plan.Plan
		if tt.runs {
			span, err := plan.NewSpan(t.Context(), img, def, o)
			if err != nil {
				t.Fatal(err)
			}
			what.Spans = append(what.Spans, span)
		} else {
			p, err := plan.New(t.Context(), img, def, o)
			if err != nil {
				t.Fatal(err)
			}
			plans = append(plans, p)
		}
		s, err := tracer.OpenSummary(t.Context(), inFile(t, img), plans, what, tracer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		if err := exec.Command(path).Run(); err != nil {
			t.Fatal(err)
		}
		rows, err := s.Rows()
		if err != nil {
			t.Fatal(err)
		}
		if not, err := s.Unreported(); not != (tracer.Unreported{}) || err != nil {
			t.Errorf("%s: %+v, %v", tt.definition, not, err)
		}
		got := lines(rows)
		slices.Sort(got)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.definition, diff)
		}
	}
}
