package tracer_test

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/tracer"
)

// countRuns counts the runs of definitions while a program runs, which prints something.
func countRuns(t *testing.T, img *dwarfloc.Image, what tracer.SummaryOptions, command string, definitions ...string) (rows []tracer.Row, not tracer.Unreported, out string) {
	t.Helper()
	what.Spans = spans(t, img, definitions...)
	s, err := tracer.OpenSummary(context.Background(), inFile(t, img), nil, what, tracer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	text, err := exec.Command(command).Output()
	if err != nil {
		t.Fatal(err)
	}
	if rows, err = s.Rows(); err != nil {
		t.Fatal(err)
	}
	if not, err = s.Unreported(); err != nil {
		t.Fatal(err)
	}
	return rows, not, string(text)
}

// lines prints what is exact of rows.
func lines(rows []tracer.Row) (out []string) {
	for _, r := range rows {
		l := strconv.FormatUint(r.Hits, 10)
		for _, k := range r.Keys {
			l += " " + k.Text
		}
		for i := range r.Totals {
			l += " " + strconv.FormatUint(r.Totals[i].Count, 10)
		}
		if r.Outcome != "" {
			l += " " + r.Outcome
		}
		out = append(out, l)
	}
	slices.Sort(out)
	return out
}

// Runs that return, that exceptions end, and one that does not end.
const outcomesSource = `
#include <cstdlib>
volatile long sink;
struct mark { ~mark() { sink++; } };
__attribute__((noinline)) long inner(const char *name, unsigned n)
{
	sink += n;
	if (n % 4 == 3)
		throw 1;
	if (n == 100)
		exit(0);
	for (unsigned i = 0; i < 1000 * (n % 4); i++)
		sink++;
	return n % 4 == 2 ? -1 : (long)n;
}
static inline __attribute__((always_inline)) void body(const char *who) { sink += who[0]; sink *= 3; }
const char *const names[] = {"even", "odd", "last", "me"};
int main()
{
	for (volatile const char *name : names)
		sink += *name; // resident
	for (unsigned n = 0; n < 40; n++) {
		try {
			inner(names[n & 1], n);
		} catch (int) {
			sink--;
		}
		if (n < 5)
			body(names[3]);
	}
	inner(names[2], 100);
}
`

// TestRunRows: runs are counted with their durations and results, by what there was when they began; those without an end are rows.
func TestRunRows(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	path, img := build(t, "g++-12", "outcomes.cc", outcomesSource, "-O1")
	for _, tt := range []struct {
		name        string
		definitions []string
		by          []string
		want        []string
		without     uint64
	}{
		{
			"by what began", []string{"inner name:string n"}, []string{"name"},
			[]string{"1 \"last\" 0 1 not ended", "10 \"odd\" 0 10 began again", "10 \"odd\" 10 10", "20 \"even\" 20 20"}, 0,
		},
		{"by nothing", []string{"inner n"}, nil, []string{"1 0 1 not ended", "10 0 10 began again", "30 30 30"}, 0},
		{
			"by the result", []string{"inner n r=$retval"}, []string{"function", "r"},
			[]string{"1 inner ? 0 1 not ended", "10 inner -1 10 10", "10 inner ? 0 10 began again"}, 0,
		},
		{
			// The run that an exception has left is not ended by the next one in its frame, for which the condition is false.
			"a condition on the beginning", []string{"if=n<4; inner name:string n"}, []string{"n"}, []string{"1 0 1 1", "1 1 1 1", "1 2 1 1", "1 3 0 1 began again"}, 0,
		},
		{"inlined", []string{"body who:string"}, []string{"who", "caller"}, []string{"5 \"me\" main 5"}, 0},
		{
			"a condition on the result", []string{"if=$retval<0&&n<100; inner name:string n"}, []string{"name"},
			[]string{"10 \"even\" 10 10", "10 \"odd\" 0 10 began again"}, 20,
		},
		{
			"the result beside what began", []string{"if=$retval!=n; inner name:string n"}, []string{"name"},
			[]string{"1 \"last\" 0 1 not ended", "10 \"even\" 10 10", "10 \"odd\" 0 10 began again"}, 20,
		},
		{
			"a long time", []string{"if=$duration>=500s; inner name:string n"}, []string{"name"},
			[]string{"1 \"last\" 0 1 not ended", "10 \"odd\" 0 10 began again"}, 30,
		},
		{
			"a short time, or a name", []string{`if=$duration<1ns||(name=="even"&&!($retval==-1)); inner name:string n`}, []string{"name"},
			[]string{"1 \"last\" 0 1 not ended", "10 \"even\" 10 10", "10 \"odd\" 0 10 began again"}, 20,
		},
	} {
		totals := []string{"$duration", "n"}
		if tt.name == "inlined" {
			totals = totals[:1]
		}
		what := tracer.SummaryOptions{By: tt.by, Totals: totals, Histograms: []tracer.HistogramOf{{Arg: "$duration"}}}
		rows, not, _ := countRuns(t, img, what, path, tt.definitions...)
		got := lines(rows)
		if tt.name == "by the result" {
			got = slices.DeleteFunc(got, func(l string) bool { return strings.HasPrefix(l, "1 inner") && !strings.Contains(l, "?") })
		}
		if diff := gocmp.Diff(tt.want, got); diff != "" || not.Without != tt.without {
			t.Errorf("%s: the condition did not hold for %d, want %d; rows (-want +got):\n%s", tt.name, not.Without, tt.without, diff)
		}
		for _, r := range rows {
			d := r.Totals[0]
			n := uint64(0)
			for _, b := range r.Histograms[0].Buckets {
				n += b.Count
			}
			if n != d.Count || r.Outcome == "" && (d.Min.(uint64) == 0 || d.Max.(uint64) > uint64(time.Minute)) {
				t.Errorf("%s: %d in the histogram, durations %+v", tt.name, n, d)
			}
		}
	}
}

// Each run takes a time of its own clock, which it measures without the probes.
const clockSource = `
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#define BUCKETS 2000
static unsigned long taken[BUCKETS], sum;
static inline unsigned long now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ul + t.tv_nsec;
}
__attribute__((noinline, noclone)) void wait(unsigned long ns)
{
	unsigned long begin = now(), end;
	do
		end = now();
	while (end - begin < ns);
	unsigned long us = (end - begin) / 1000;
	taken[us < BUCKETS ? us : BUCKETS - 1]++;
	sum += end - begin;
}
int main(void)
{
	int count = atoi(getenv("RUNS"));
	for (int i = 0; i < count; i++)
		wait(1000 * (i % 8));
	printf("{\"Sum\": %lu, \"Taken\": [0", sum);
	for (int i = 0; i < BUCKETS; i++)
		printf(", %lu", taken[i]);
	printf("]}\n");
	return 0;
}
`

// TestDurations: the durations of many runs are those of the program's own clock, but for what the probes cost, which is measured.
// With DURATIONS_RUNS it is that many runs.
func TestDurations(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	path, img := build(t, "gcc-12", "clock.c", clockSource, "-O2")
	runs := uint64(20000)
	if text := os.Getenv("DURATIONS_RUNS"); text != "" {
		var err error
		if runs, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("RUNS", strconv.FormatUint(runs, 10))
	var cost [2]time.Duration
	what := tracer.SummaryOptions{Totals: []string{"$duration"}, Histograms: []tracer.HistogramOf{{Arg: "$duration", High: 500_000, Step: 1000}}, Spans: spans(t, img, "wait ns")}
	s, err := tracer.OpenSummary(t.Context(), inFile(t, img), nil, what, tracer.Options{Cost: &cost})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	text, err := exec.Command(path).Output()
	if err != nil {
		t.Fatal(err)
	}
	var own struct {
		Sum   uint64
		Taken []uint64
	}
	if err := json.Unmarshal(text, &own); err != nil {
		t.Fatal(err)
	}
	rows, err := s.Rows()
	if err != nil || len(rows) != 1 {
		t.Fatal(rows, err)
	}
	not, err := s.Unreported()
	if err != nil || not != (tracer.Unreported{}) || rows[0].Hits != runs || rows[0].Totals[0].Count != runs {
		t.Fatalf("%d of %d runs, not reported: %+v, %v", rows[0].Hits, runs, not, err)
	}
	if cost[0] <= 0 || cost[1] > time.Millisecond {
		t.Skip("what probes cost is not known on this architecture: ", cost)
	}
	// The quantiles of both: the probes add something, and not more than twice what was measured. What interrupts a program is not
	// in all quantiles.
	var ours []uint64
	for _, b := range rows[0].Histograms[0].Buckets {
		low, is := b.Low.(int64)
		if !is {
			break // from the end of the histogram on
		}
		at := int(low / 1000)
		for len(ours) <= at {
			ours = append(ours, 0)
		}
		ours[max(at, 0)] = b.Count
	}
	quantile := func(counts []uint64, of float64) time.Duration {
		sum := uint64(0)
		for i, n := range counts {
			if sum += n; float64(sum) >= of*float64(runs) {
				return time.Duration(i) * time.Microsecond
			}
		}
		return time.Duration(len(counts)) * time.Microsecond
	}
	for _, q := range []float64{0.05, 0.25, 0.5, 0.75, 0.9} {
		a, b := quantile(own.Taken[1:], q), quantile(ours, q)
		t.Logf("%v of the runs take up to %v by the program's clock, and %v by ours; the probes add %v", q, a, b, cost[1])
		if b < a || b-a > 2*cost[1]+2*time.Microsecond {
			t.Errorf("%v of the runs take up to %v by the program's clock, and %v by ours; the probes add %v", q, a, b, cost[1])
		}
	}
	t.Logf("mean %v by the program's clock, %v by ours", time.Duration(own.Sum/runs), time.Duration(rows[0].Totals[0].Mean()))
}

// TestRunMistakes: what cannot be counted of runs.
func TestRunMistakes(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	_, img := build(t, "g++-12", "outcomes.cc", outcomesSource, "-O1")
	for _, tt := range []struct {
		what tracer.SummaryOptions
		want string
	}{
		{tracer.SummaryOptions{By: []string{"$duration"}}, "a histogram has it"},
		{tracer.SummaryOptions{Totals: []string{"frame"}}, `no definition fetches "frame"`},
		{tracer.SummaryOptions{Totals: []string{"if"}}, `no definition fetches "if"`},
		{tracer.SummaryOptions{Totals: []string{"$duratoin"}}, "did you mean $duration?"},
	} {
		tt.what.Spans = spans(t, img, "if=$retval>n; inner n")
		s, err := tracer.OpenSummary(t.Context(), inFile(t, img), nil, tt.what, tracer.Options{})
		if err == nil {
			_ = s.Close()
		}
		if text := cmp.Or(err, nil); text == nil || !strings.Contains(text.Error(), tt.want) {
			t.Errorf("%+v: %v, want %s", tt.what, err, tt.want)
		}
	}
}

const callersSource = `
__attribute__((noinline)) void work(int n) { for (volatile int i = 0; i < n; i++) {} }
__attribute__((noinline)) void one(void) { for (volatile int i = 0; i < 3; i++) work(10); __asm__ volatile(""); }
__attribute__((noinline)) void other(void) { for (volatile int i = 0; i < 5; i++) work(10); __asm__ volatile(""); }
int main(void) { one(); other(); return 0; }
`

// TestStacksOfRuns: runs are told apart by the stacks that they began with.
func TestStacksOfRuns(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	path, img := build(t, "gcc-12", "callers.c", callersSource, "-O1", "-fno-omit-frame-pointer")
	what := tracer.SummaryOptions{
		By: []string{"stack", "caller"}, Totals: []string{"$duration"},
		StackText:  func(s *tracer.Stack) string { return strconv.FormatBool(len(s.User) >= 3) },
		CallerText: func(_ *tracer.Stack, address uint64) string { return strconv.FormatUint(address&0xfff, 16) }, // wherever it is loaded
	}
	rows, not, _ := countRuns(t, img, what, path, "work n")
	if not != (tracer.Unreported{}) || len(rows) != 2 {
		t.Fatalf("%+v, %d rows", not, len(rows))
	}
	for i, want := range []uint64{5, 3} {
		r := &rows[i]
		if r.Hits != want || r.Totals[0].Count != want || r.Keys[0].Text != "true" || r.Keys[1].Text == "?" {
			t.Errorf("%d runs, %+v", r.Hits, r.Keys)
		}
	}
	if rows[0].Keys[1].Text == rows[1].Keys[1].Text {
		t.Error("both callers are one")
	}
	if rows, _, _ = countRuns(t, img, tracer.SummaryOptions{By: []string{"stack"}}, path, "work n"); len(rows) != 2 || strings.Count(rows[0].Keys[0].Text, ";") < 2 {
		t.Errorf("by stacks alone: %d rows, %+v", len(rows), rows)
	}
}
