package tracer_test

import (
	"bufio"
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/prologue"
	"github.com/bpfprologue/bpfprologue/tracer"
)

// Four threads call take_one and take_two, which is inlined into two functions, with numbers that they
// count themselves; at the end the program prints what it has counted.
const countedSource = `
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define HIDE(x) __asm__ volatile("" : : "r"(x) : "memory")
enum color { RED, GREEN, BLUE };
struct total { long n, sum, min, max; long slots[129], linear[8]; } one, left, right, one_of[3], name_of[3];
static const char *names[] = { "alpha", "beta", "gamma" };

static int slot(long v)
{
	int n = 0;
	for (unsigned long u = v < 0 ? -(unsigned long)v : v; u; u >>= 1)
		n++;
	return v < 0 ? 64 - n : 64 + n;
}

static int line(long v) { return v < -100 ? 0 : v >= 500 ? 7 : (v + 100) / 100 + 1; }

static void count(struct total *t, long v)
{
	if (!__atomic_fetch_add(&t->n, 1, __ATOMIC_RELAXED)) { }
	__atomic_fetch_add(&t->sum, v, __ATOMIC_RELAXED);
	__atomic_fetch_add(&t->slots[slot(v)], 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&t->linear[line(v)], 1, __ATOMIC_RELAXED);
	for (long old = t->min; v < old && !__atomic_compare_exchange_n(&t->min, &old, v, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);) { }
	for (long old = t->max; v > old && !__atomic_compare_exchange_n(&t->max, &old, v, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);) { }
}

__attribute__((noinline)) long take_one(long v, enum color c, const char *name)
{
	HIDE(v); HIDE(c); HIDE(name);
	return v;
}

static inline __attribute__((always_inline)) long take_two(long v, const char *name)
{
	HIDE(v); HIDE(name);
	return v;
}

__attribute__((noinline)) void in_left(long v) { HIDE(v); take_two(v, names[0]); HIDE(v); }
__attribute__((noinline)) void in_right(long v) { HIDE(v); take_two(v * 3, names[1]); HIDE(v); }

static void *work(void *arg)
{
	unsigned long seed = (long)arg * 7919 + 1;
	for (int i = 0; i < 2500; i++) {
		seed = seed * 6364136223846793005ul + 1442695040888963407ul;
		long v = (long)(seed >> 11) >> (seed >> 58) % 50;
		if (seed & 1024)
			v = -v;
		enum color c = (seed >> 33) % 3;
		take_one(v, c, names[c]);
		count(&one, v);
		count(&one_of[c], v);
		if (i % 4 == 0) {
			in_left(v);
			count(&left, v);
		}
		if (i % 5 == 0) {
			in_right(v);
			count(&right, v * 3);
		}
	}
	return 0;
}

static void print(const char *key, struct total *t)
{
	printf("%s %ld %ld %ld %ld |", key, t->n, t->sum, t->min, t->max);
	for (int i = 0; i < 129; i++)
		if (t->slots[i])
			printf(" %d:%ld", i - 64, t->slots[i]);
	printf(" |");
	for (int i = 0; i < 8; i++)
		printf(" %ld", t->linear[i]);
	printf("\n");
}

int main(void)
{
	pthread_t t[4];
	struct total *all[] = { &one, &left, &right, one_of, one_of + 1, one_of + 2 };
	for (int i = 0; i < 6; i++) { all[i]->min = ~0ul >> 1; all[i]->max = ~(~0ul >> 1); }
	for (long i = 0; i < 4; i++)
		pthread_create(&t[i], 0, work, (void *)i);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], 0);
	print("take_one", &one);
	print("in_left", &left);
	print("in_right", &right);
	print("RED", one_of);
	print("GREEN", one_of + 1);
	print("BLUE", one_of + 2);
	return 0;
}
`

// summed runs a command under some plans and returns its output and what was counted.
func summed(t *testing.T, p []*plan.Plan, what tracer.SummaryOptions, o tracer.Options, command ...string) (map[string]string, []tracer.Row, *tracer.Summary) {
	t.Helper()
	s, err := tracer.OpenSummary(context.Background(), inFile(t, p[0].Image), p, what, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	out, err := exec.Command(command[0], command[1:]...).Output()
	if err != nil {
		t.Fatal(err)
	}
	truth := make(map[string]string)
	for lines := bufio.NewScanner(strings.NewReader(string(out))); lines.Scan(); {
		key, rest, _ := strings.Cut(lines.Text(), " ")
		truth[key] = rest
	}
	rows, err := s.Rows()
	if err != nil {
		t.Fatal(err)
	}
	return truth, rows, s
}

// asTruth prints a row as the program does.
func asTruth(r *tracer.Row) string {
	x := &r.Totals[0]
	text := fmt.Sprintf("%d %v %v %v |", x.Count, x.Sum, x.Min, x.Max)
	for _, b := range r.Histograms[0].Buckets {
		if b.Count == 0 {
			continue
		}
		slot, v := 0, int64(b.Low.Bits)
		for u := uint64(max(v, -v)); u > 0; u >>= 1 {
			slot++
		}
		if v < 0 {
			slot = 0
			for u := -uint64(int64(b.High.Bits)); u > 0; u >>= 1 {
				slot--
			}
		}
		text += fmt.Sprintf(" %d:%d", slot, b.Count)
	}
	text += " |"
	linear := make([]uint64, 8)
	for _, b := range r.Histograms[1].Buckets {
		i := (int64(b.Low.Bits)+100)/100 + 1
		if b.Low.String() == "-9223372036854775808" {
			i = 0
		}
		linear[i] = b.Count
	}
	for _, n := range linear {
		text += fmt.Sprint(" ", n)
	}
	return text
}

// TestSummary: counts, sums, minima, maxima and histograms equal those of a program with several
// threads, in both conventions.
func TestSummary(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	path, img := compiled(t, countedSource, "-O2", "-pthread")
	what := tracer.SummaryOptions{
		Totals:     []string{"v"},
		Histograms: []tracer.HistogramOf{{Arg: "v"}, {Arg: "v", Low: -100, High: 500, Step: 100}},
	}
	for _, c := range []prologue.Convention{prologue.ConventionRegisters, prologue.ConventionRecord} {
		for _, tt := range []struct {
			definition string
			by         []string
			want       []string
		}{
			{"take_one v", nil, []string{"take_one"}},
			{"take_one v c", []string{tracer.ByPID, "c"}, []string{"RED", "GREEN", "BLUE"}},
			{"take_two v", []string{tracer.ByCaller}, []string{"in_left", "in_right"}},
			{"take_* v", []string{tracer.BySite}, []string{"take_one", "in_left", "in_right"}},
		} {
			p, err := plansOf(img, plan.Options{Convention: c, Target: inFile(t, img).Target()}, tt.definition)
			if err != nil {
				t.Fatal(err)
			}
			what.By = tt.by
			truth, rows, s := summed(t, p, what, tracer.Options{}, path)
			got, want := make(map[string]string), make(map[string]string)
			for _, k := range tt.want {
				want[k] = truth[k]
			}
			for i := range rows {
				key := "take_one"
				if n := len(tt.by); n > 0 {
					key = rows[i].Keys[n-1].Text
				}
				_, in, inlined := strings.Cut(key, " inlined in ")
				if inlined {
					key = in
				}
				got[key] = asTruth(&rows[i])
				if n := rows[i].Totals[0].Count; n != rows[i].Hits || rows[i].Totals[0].Missing+rows[i].Histograms[0].Missing != 0 {
					t.Errorf("%s: %d hits, %d counted", key, rows[i].Hits, n)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%v %s by %v (-want +got):\n%s", c, tt.definition, tt.by, diff)
			}
			if n, err := s.Unpaired(); n != (tracer.Unpaired{}) || err != nil {
				t.Errorf("%+v, %v", n, err)
			}
		}
	}
}

// TestSummaryKeys: strings, tasks, return addresses, and what is missing.
func TestSummaryKeys(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	path, img := compiled(t, countedSource, "-O2", "-pthread")
	keysOf := func(definition string, by ...string) (out []string, rows []tracer.Row) {
		p, err := plansOf(img, plan.Options{Target: inFile(t, img).Target()}, definition)
		if err != nil {
			t.Fatal(err)
		}
		_, rows, _ = summed(t, p, tracer.SummaryOptions{By: by, Totals: []string{"v"}}, tracer.Options{}, path)
		for _, r := range rows {
			line := fmt.Sprint(r.Hits, " ", r.Totals[0].Count, " ", r.Totals[0].Missing)
			for _, k := range r.Keys {
				line += " " + k.Text
			}
			out = append(out, line)
		}
		slices.Sort(out)
		return out, rows
	}
	got, _ := keysOf("take_* v name:string", tracer.ByFunction, "name", tracer.ByComm)
	if len(got) != 5 || !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, `2500 2500 0 take_two "alpha" program`) }) ||
		!slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, `2000 2000 0 take_two "beta" program`) }) {
		t.Errorf("by name: %q", got)
	}
	got, _ = keysOf("take_* v c", tracer.ByFunction, "c")
	if !slices.Contains(got, "4500 4500 0 take_two ?") || len(got) != 4 {
		t.Errorf("by an argument that one function does not have: %q", got)
	}
	got, _ = keysOf("in_* v", tracer.ByFunction, tracer.ByTID)
	if len(got) != 8 {
		t.Errorf("by task: %q", got)
	}
	if _, rows := keysOf("in_left v", tracer.ByCaller); len(rows) != 1 || rows[0].Keys[0].Text == "?" {
		t.Errorf("by caller: %+v", rows)
	}
	p, err := plansOf(img, plan.Options{Target: inFile(t, img).Target()}, "take_one v")
	if err != nil {
		t.Fatal(err)
	}
	_, rows, s := summed(t, p, tracer.SummaryOptions{By: []string{"v"}, MaxKeys: 100}, tracer.Options{}, path)
	unpaired, err := s.Unpaired()
	sum := unpaired.Full
	for _, r := range rows {
		sum += r.Hits
	}
	if err != nil || len(rows) != 100 || unpaired.Full == 0 || sum != 10000 {
		t.Errorf("%d keys, %d hits, %d without room, %v", len(rows), sum, unpaired.Full, err)
	}
}

// TestLimits: a sample is about as large as it should be, and a rate is not exceeded.
func TestLimits(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	path, img := compiled(t, countedSource, "-O2", "-pthread")
	p, err := plansOf(img, plan.Options{Target: inFile(t, img).Target()}, "take_one v")
	if err != nil {
		t.Fatal(err)
	}
	_, rows, _ := summed(t, p, tracer.SummaryOptions{}, tracer.Options{Sample: 10}, path)
	if n := rows[0].Hits; n < 800 || n > 1200 {
		t.Errorf("1 of 10 of 10000 hits: %d", n)
	}
	_, rows, s := summed(t, p, tracer.SummaryOptions{}, tracer.Options{MaxRate: 70}, path)
	limited, err := s.Limited()
	if n := rows[0].Hits; n < 70 || n%70 != 0 || n+limited != 10000 || err != nil {
		t.Errorf("70 hits a second: %d, and %d more, %v", n, limited, err)
	}
}

// TestSummaryErrors: what cannot be counted says why.
func TestSummaryErrors(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	_, img := compiled(t, countedSource, "-O2", "-pthread")
	for want, what := range map[string]tracer.SummaryOptions{
		`no definition fetches "nam"; did you mean name?`:                               {By: []string{"nam"}},
		`no definition fetches "commm"; did you mean comm?`:                             {By: []string{"commm"}},
		`take_one v name:string: name is no number at take_one: it cannot be added up`:  {Totals: []string{"name"}},
		`a histogram of v from 5 to 1 in steps of 1: it goes up, by steps of 1 or more`: {Histograms: []tracer.HistogramOf{{Arg: "v", Low: 5, High: 1, Step: 1}}},
		`a histogram of v with 1000000 steps from 0 to 1000000: at most 1000`:           {Histograms: []tracer.HistogramOf{{Arg: "v", High: 1000000, Step: 1}}},
	} {
		p, err := plansOf(img, plan.Options{Target: inFile(t, img).Target()}, "take_one v name:string")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tracer.OpenSummary(context.Background(), inFile(t, img), p, what, tracer.Options{}); fmt.Sprint(err) != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
