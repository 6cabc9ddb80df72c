package hits

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/tracer"
)

// row makes a row with one key and the sum of one argument.
func row(d *probe.Definition, key string, hits uint64, sum, smallest, largest int64) tracer.Row {
	return tracer.Row{
		Definition: d, Keys: []tracer.Key{{Text: key, Value: key}}, Hits: hits,
		Totals:     []tracer.Total{{Count: hits, Sum: sum, Min: smallest, Max: largest}},
		Histograms: []tracer.Histogram{{Buckets: []tracer.Bucket{{Low: int64(0), High: int64(9), Count: hits - 1}, {Low: int64(10), High: int64(19), Count: 1}}}},
	}
}

// TestView: differences and rates, and rows in the order of each column.
func TestView(t *testing.T) {
	d := &probe.Definition{Event: "e"}
	o := &tracer.SummaryOptions{By: []string{"who"}, Totals: []string{"n"}, Histograms: []tracer.HistogramOf{{Arg: "n"}}}
	before := []tracer.Row{row(d, "a", 10, -50, -9, 9), row(d, "b", 5, 5, 1, 1)}
	now := []tracer.Row{row(d, "a", 12, -20, -9, 15), row(d, "b", 5, 5, 1, 1), row(d, "c", 4, 400, 90, 110)}
	printed := func(v View) string {
		v.Options = o
		var b strings.Builder
		if err := PrintRows(&b, now, &v); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	const want = `6 hits in 2.0 s, until 9.0 s
HITS  RATE  N SUM   MEAN  WHO
   4   2/s    400  100.0  c
   2   1/s     30   15.0  a

n of c
    0 to 9  3  ########################################
  10 to 19  1  ##############

n of a
  0 to 9  2  ########################################
`
	if got := printed(View{Seconds: 9, Interval: 2, Before: before, Since: true}); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	for _, tt := range []struct{ sort, want string }{
		{"", "a b c"}, {"hits", "a b c"}, {"-hits", "c b a"}, {"rate", "c a b"}, {"sum", "c b a"}, {"n.min", "c b a"}, {"-n.max", "b a c"}, {"mean", "c b a"}, {"-who", "c b a"},
	} {
		if err := CheckSort(tt.sort, o); err != nil {
			t.Error(err)
		}
		var keys []string
		v := View{Options: o, Sort: tt.sort, Interval: 2, Before: before}
		list, _ := v.rows(now)
		for i := range list {
			keys = append(keys, list[i].Keys[0].Text)
		}
		if got := strings.Join(keys, " "); got != tt.want {
			t.Errorf("by %q: %s, want %s", tt.sort, got, tt.want)
		}
	}
	if err := CheckSort("summ", o); err == nil || !strings.Contains(err.Error(), "nearest: sum") {
		t.Error(err)
	}
	if got := printed(View{Seconds: 9, Interval: 2, Before: before, Top: 1}); !strings.HasPrefix(got, "21 hits in 9.0 s, 1 of 3 rows\nHITS  RATE  N SUM  MIN  MEAN  MAX  WHO\n  12   1/s    -20   -9  -1.7   15  a\n") {
		t.Errorf("with totals:\n%s", got)
	}
}

// TestImages: rows of two images that have the same definition are two.
func TestImages(t *testing.T) {
	first, err := plantest.Fixture(t, "basic-gcc12-O2-dwarf5.elf", "my_func_one_abcd arg1", plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	second, err := plantest.Fixture(t, "basic-gcc12-O2-dwarf4.elf", "my_func_one_abcd arg1", plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rows := func(ofFirst, ofSecond uint64) []tracer.Row {
		a, b := row(first.Definition, "a", ofFirst, 0, 0, 0), row(first.Definition, "a", ofSecond, 0, 0, 0)
		a.Plan, b.Plan = first, second
		return []tracer.Row{a, b}
	}
	before, now := rows(10, 100), rows(12, 106)
	o := &tracer.SummaryOptions{By: []string{"who"}, Histograms: []tracer.HistogramOf{{Arg: "n"}}}
	for i := range now {
		before[i].Totals, now[i].Totals = nil, nil
	}
	v := View{Options: o, Seconds: 9, Interval: 2, Before: before, Since: true, Images: true}
	var text, lines strings.Builder
	if err := errors.Join(PrintRows(&text, now, &v), PrintRowsJSON(&lines, now, &v)); err != nil {
		t.Fatal(err)
	}
	a, b := first.Image.Path(), second.Image.Path()
	want := "8 hits in 2.0 s, until 9.0 s\nHITS  RATE  WHO  IMAGE\n   6   3/s  a    " + b + "\n   2   1/s  a    " + a + "\n\nn of a, " + b + "\n"
	if !strings.HasPrefix(text.String(), want) || !strings.Contains(text.String(), "\nn of a, "+a+"\n") {
		t.Errorf("got:\n%s\nwant:\n%s", &text, want)
	}
	for _, path := range []string{a, b} {
		if quoted, _ := json.Marshal(path); strings.Count(lines.String(), `"image":`+string(quoted)) != 1 {
			t.Errorf("%s is not once in:\n%s", path, &lines)
		}
	}
}

// TestOpenRuns: how many runs have not ended is no difference, and belongs to no interval.
func TestOpenRuns(t *testing.T) {
	d := &probe.Definition{Event: "e"}
	o := &tracer.SummaryOptions{By: []string{"who"}, Spans: make([]*plan.Span, 1)}
	rows := func(ended, open uint64) []tracer.Row {
		key := []tracer.Key{{Text: "a", Value: "a"}}
		return []tracer.Row{{Definition: d, Keys: key, Hits: ended}, {Definition: d, Keys: key, Hits: open, Outcome: "not ended"}}
	}
	for _, tt := range []struct {
		ended, open uint64 // now; 7 and 3 before
		since       bool
		text, lines string
	}{
		{7, 3, true, "0 runs in 2.0 s, until 9.0 s\nRUNS  RATE  WHO  OUTCOME\n   3     -  a    not ended\n",
			`{"seconds":9,"interval":2,"definition":`}, // and no rate
		{8, 2, true, "1 run in 2.0 s, until 9.0 s\nRUNS   RATE  WHO  OUTCOME\n   2      -  a    not ended\n   1  0.5/s  a    ended\n", ""},
		{9, 1, false, "10 runs in 9.0 s\nRUNS  RATE  WHO  OUTCOME\n   9   1/s  a    ended\n   1     -  a    not ended\n", ""},
	} {
		v := View{Options: o, Seconds: 9, Interval: 2, Before: rows(7, 3), Since: tt.since}
		var text, lines strings.Builder
		now := rows(tt.ended, tt.open)
		if err := errors.Join(PrintRows(&text, now, &v), PrintRowsJSON(&lines, now, &v)); err != nil {
			t.Fatal(err)
		}
		if text.String() != tt.text || !strings.Contains(lines.String(), tt.lines) {
			t.Errorf("got:\n%s%s\nwant:\n%s%s", &text, &lines, tt.text, tt.lines)
		}
	}
}

// TestNothing: the reason that is known is said.
func TestNothing(t *testing.T) {
	for want, n := range map[string]Nothing{
		"no hit: the condition was false at 3 hits\n":                      {Not: &tracer.Unreported{Excluded: 3}},
		"no hit: the condition was false at all hits (1000 or more)\n":     {Not: &tracer.Unreported{Excluded: 1001}, Unmapped: true},
		"no hit: the condition did not hold for 1 run; x ended after 2s\n": {Not: &tracer.Unreported{Without: 1}, Command: "x", After: 2e9},
		"": {Not: &tracer.Unreported{Missing: 1}},
		"no hit: no process ran or loaded p meanwhile\n":                     {Not: new(tracer.Unreported), File: "p", Unmapped: true},
		"no hit: no process that ran or loaded p came to one of the sites\n": {Not: new(tracer.Unreported), File: "p"},
		"no hit: nothing came to one of the sites\n":                         {Not: new(tracer.Unreported)},
	} {
		var b strings.Builder
		if PrintNothing(&b, &n); b.String() != want {
			t.Errorf("%+v: %q, want %q", n, &b, want)
		}
	}
}
