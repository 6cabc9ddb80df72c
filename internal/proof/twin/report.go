package twin

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// Total is sums over functions.
type Total struct {
	Functions, Exact, Off                                  int
	Runs, Hits, Compared, Wrong, Doubtful, Missed, Extra   int
	Marked, Reordered, MissedUnexplained, ExtraUnexplained int
	Lost                                                   map[string]int
	Missing, More                                          map[Rule]int
}

// Add adds what a result says.
func (t *Total) Add(r *Result) {
	if t.Lost == nil {
		t.Lost, t.Missing, t.More = make(map[string]int), make(map[Rule]int), make(map[Rule]int)
	}
	t.Off += len(r.Off)
	for i := range r.Verdicts {
		v := &r.Verdicts[i]
		t.Functions++
		if v.Exact() {
			t.Exact++
		}
		t.Runs += v.Runs
		t.Hits += v.Hits
		t.Compared += v.Compared
		for _, w := range v.Wrong {
			t.Wrong += w.Count
		}
		t.Doubtful += v.Doubtful
		t.Missed += v.Missed
		t.Extra += v.Extra
		t.Marked += v.Marked
		t.Reordered += v.Reordered
		u := v.Unexplained()
		t.MissedUnexplained += u.Missed
		t.ExtraUnexplained += u.Extra
		add(t.Lost, v.Lost)
		add(t.Missing, v.Missing)
		add(t.More, v.More)
	}
}

func add[K comparable](to, from map[K]int) {
	for k, n := range from {
		to[k] += n
	}
}

// Share is the unmarked extra hits that no rule explains, as a share of the runs.
func (t *Total) Share() float64 { return float64(t.ExtraUnexplained) / float64(max(t.Runs, 1)) }

// Details says where hits are not runs and which values are wrong, in a line each.
func (r *Result) Details() (out []string) {
	for i := range r.Verdicts {
		v := &r.Verdicts[i]
		for _, w := range v.Wrong {
			out = append(out, fmt.Sprintf("%s: %s is wrong %d times at %s: %s was passed, %s fetched", v.Name, w.Param, w.Count, w.Place, w.Passed, w.Delivered))
		}
		if u := v.Unexplained(); u != (Unexplained{}) {
			out = append(out, fmt.Sprintf("%s: %d runs, %d hits: %d missed, %d extra (%d and %d not explained), %d marked", v.Name, v.Runs, v.Hits, v.Missed, v.Extra, u.Missed, u.Extra, v.Marked))
		}
	}
	return out
}

// Write prints the tables of some results as Markdown.
func Write(w io.Writer, results []*Result) {
	row := func(name string, t *Total) {
		fmt.Fprintf(w, "| %s | %d | %d | %d | %d | %d | %d | %d | %d | %d | %d (%d) | %d (%d) | %d |\n", name, t.Functions, t.Exact, t.Off, t.Runs, t.Hits,
			t.Compared, t.Wrong, t.Doubtful, sum(t.Lost), t.Missed, t.MissedUnexplained, t.Extra, t.ExtraUnexplained, t.Marked)
	}
	fmt.Fprint(w, "| program, flavour | functions | exact | not compared | runs | hits | values compared | wrong | doubtful | lost | missed (not explained) | extra, unmarked (not explained) | marked |\n"+
		"| --- |"+strings.Repeat(" ---: |", 12)+"\n")
	var all Total
	flavours := make(map[string]*Total)
	var order []string
	for _, r := range results {
		var t Total
		t.Add(r)
		all.Add(r)
		if flavours[r.Flavour] == nil {
			flavours[r.Flavour] = new(Total)
			order = append(order, r.Flavour)
		}
		flavours[r.Flavour].Add(r)
		row(r.Program+", "+r.Flavour, &t)
	}
	for _, f := range order {
		row("all, "+f, flavours[f])
	}
	row("all", &all)
	fmt.Fprintf(w, "\nValues that B does not have, by reason:\n\n| reason | values |\n| --- | ---: |\n")
	for _, k := range byCount(all.Lost) {
		fmt.Fprintf(w, "| %s | %d |\n", k, all.Lost[k])
	}
	fmt.Fprintf(w, "\nWhat rules explain:\n\n| rule | missed runs | extra hits |\n| --- | ---: | ---: |\n")
	both := maps.Clone(all.Missing)
	add(both, all.More)
	for _, k := range byCount(both) {
		fmt.Fprintf(w, "| %s | %d | %d |\n", k, all.Missing[k], all.More[k])
	}
}

// byCount returns what was counted, most often first.
func byCount[K cmp.Ordered](of map[K]int) []K {
	return slices.SortedFunc(maps.Keys(of), func(a, b K) int { return cmp.Or(cmp.Compare(of[b], of[a]), cmp.Compare(a, b)) })
}
