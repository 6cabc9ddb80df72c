package tracer_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/tracer"
)

// Each body assigns its parameter at once, and clang describes what it assigns: 42 for 35, and 47 for 40.
const doubtSource = `
volatile unsigned long sink;
char text[] = "known", more[300] = "more";

static inline __attribute__((always_inline)) void add(unsigned long n, char *t)
{
	n += 7;
	sink = n + 9;
	sink = *t;
}

__attribute__((noinline)) void caller(unsigned long a, char *t)
{
	sink = 1;
	add(a, t);
	sink = a;
}

__attribute__((noinline)) unsigned long deep(unsigned long d)
{
	unsigned long r = 0;

	sink = d;
	if (d > 0)
		r = deep(d - 1);
	sink = r;
	return r + d;
}

int main(void)
{
	deep(2);
	caller(35, text);
	caller(40, more);
	return 0;
}
`

// TestKeptDoubts: hits, runs, keys and sums have the values of doubtful arguments that are kept, and no others: what could not be
// fetched is missing.
func TestKeptDoubts(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	path, img := build(t, "clang-14", "doubt.c", doubtSource, "-O2")
	packed := packOf(t, img)
	target := inFile(t, img).Target()
	fetched := func(p []*plan.Plan) string {
		var out []string
		run(t, p, "", []string{path}, func(pid int, h *tracer.Hit) {
			if h.PID == pid {
				out = append(out, fmt.Sprint(h.Values))
			}
		})
		return strings.Join(out, " ")
	}
	for _, tt := range []struct {
		def  string
		o    plan.Options
		want string
	}{
		{"add n t:string", plan.Options{}, `[? "known"] [? "more"]`},
		{"add n t:string", plan.Options{Doubt: plan.DoubtMark}, `[~42 "known"] [~47 "more"]`},
		{"add n t:string", plan.Options{Doubt: plan.DoubtKeep}, `[~42 "known"] [~47 "more"]`},
		{"doubt=keep; add n t:string", plan.Options{Doubt: plan.DoubtMark}, `[~42 "known"] [~47 "more"]`},
		{"doubt=keep; if=n==47; add t[1] n", plan.Options{}, `['o' ~47]`},
		{"doubt=keep; add x=+0(n) n", plan.Options{}, `[? ~42] [? ~47]`},
		{"doubt=keep; add t:string n t2=t:string x=+0(n):string", plan.Options{StringBytes: 200, LargeRecords: true}, `["known" ~42 "known" ?] ["more" ~47 "more" ?]`},
	} {
		tt.o.Target = target
		of, err := plansOf(img, tt.o, tt.def)
		if err != nil {
			t.Fatal(err)
		}
		if got := fetched(of); got != tt.want {
			t.Errorf("%s, %v: %s, want %s", tt.def, tt.o.Doubt, got, tt.want)
		}
		// A pack says of each value whether it is doubtful, as the image does.
		ofPack, err := plansOf(packed, tt.o, tt.def)
		if err != nil {
			t.Fatal(err)
		}
		if ofPack[0].Header() != of[0].Header() || ofPack[0].Instances[0].Prologue.String() != of[0].Instances[0].Prologue.String() {
			t.Errorf("%s: with a pack\n%v\nwithout\n%v", tt.def, ofPack[0].Instances[0].Prologue, of[0].Instances[0].Prologue)
		}
	}

	var runs []string
	runSpans(t, spans(t, img, "doubt=keep; add n t:string"), []string{path}, func(h *tracer.Hit) { runs = append(runs, fmt.Sprint(h.Values)) })
	if diff := cmp.Diff([]string{`[~42 "known"]`, `[~47 "more"]`}, runs); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
	// Runs in different frames do not mix: the frame is the last argument, and not the last word.
	runs = nil
	runSpans(t, spans(t, img, "doubt=keep; deep d"), []string{path}, func(h *tracer.Hit) { runs = append(runs, fmt.Sprint(h.Values, h.Results)) })
	if diff := cmp.Diff([]string{"[0] [0]", "[1] [1]", "[2] [3]"}, runs); diff != "" {
		t.Errorf("nested runs (-want +got):\n%s", diff)
	}

	for def, want := range map[string]string{
		"add n":                       `[{? <nil>}] 2 hits, sum 0 of 0, 2 missing`,
		"doubt=keep; add n":           `[{~42 42}] 1 hits, sum 42 of 1, 0 missing; [{~47 47}] 1 hits, sum 47 of 1, 0 missing`,
		"doubt=keep; add n t:string":  `[{~42 42}] 1 hits, sum 42 of 1, 0 missing; [{~47 47}] 1 hits, sum 47 of 1, 0 missing`,
		"doubt=keep; add z=+0(n) n=n": `[{~42 42}] 1 hits, sum 42 of 1, 0 missing; [{~47 47}] 1 hits, sum 47 of 1, 0 missing`,
	} {
		of, err := plansOf(img, plan.Options{Target: target}, def)
		if err != nil {
			t.Fatal(err)
		}
		_, rows, _ := summed(t, of, tracer.SummaryOptions{By: []string{"n"}, Totals: []string{"n"}}, tracer.Options{}, path)
		var got []string
		for i := range rows {
			r := &rows[i]
			got = append(got, fmt.Sprintf("%v %d hits, sum %v of %d, %d missing", r.Keys, r.Hits, r.Totals[0].Sum, r.Totals[0].Count, r.Totals[0].Missing))
		}
		if text := strings.Join(got, "; "); text != want {
			t.Errorf("%s: %s, want %s", def, text, want)
		}
	}
}
