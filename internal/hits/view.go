package hits

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bpfprologue/bpfprologue/internal/mapview"
	"github.com/bpfprologue/bpfprologue/internal/radix"
	"github.com/bpfprologue/bpfprologue/internal/suggest"
	"github.com/bpfprologue/bpfprologue/tracer"
)

// View is how rows are shown.
type View struct {
	Options *tracer.SummaryOptions
	Seconds float64       // since counting began
	Top     int           // so many rows; 0: all
	Sort    string        // by this column, in the form of SortColumns; "" is by hits
	Cost    time.Duration // what the probes add to the duration of a run, at most; 0 if it is not known
	Images  bool          // rows say of which image they are: a definition is about several

	// Interval, if not 0, is how many seconds ago Before was counted: rows have the rate since then.
	Interval float64
	Before   []tracer.Row
	// Since shows what was counted since then, and not all. What was smallest and largest in that time is not known.
	Since bool
}

// shown is a row with its rate.
type shown struct {
	*tracer.Row
	rate float64 // hits in a second; 0 for runs that have not ended
}

// rows returns the rows in their order, and how many there are without the bound of View.Top.
func (v *View) rows(rows []tracer.Row) (out []shown, all int) {
	before := make(map[string]*tracer.Row)
	for i := range v.Before {
		before[identity(&v.Before[i])] = &v.Before[i]
	}
	for i := range rows {
		r := shown{Row: &rows[i]}
		if v.Interval > 0 && !open(r.Row) {
			old := before[identity(r.Row)]
			if old == nil {
				old = new(tracer.Row)
			}
			change := since(r.Row, old)
			r.rate = float64(change.Hits) / v.Interval
			if v.Since {
				r.Row = change
			}
		}
		if r.Hits > 0 {
			out = append(out, r)
		}
	}
	if order := v.order(); order != nil {
		radix.By(out, order)
	}
	if all = len(out); v.Top > 0 && v.Top < all {
		out = out[:v.Top]
	}
	return out, all
}

// identity tells rows apart. A plan is that of one definition in one image: several images can have the same definition.
func identity(r *tracer.Row) string {
	text := fmt.Sprintf("%p %s", r.Plan, r.Outcome)
	for _, k := range r.Keys {
		text += "," + strconv.Quote(k.Text)
	}
	return text
}

// open reports whether a row is of runs that have not ended: so many there are now, while the hits of others are all that there were.
func open(r *tracer.Row) bool { return r.Outcome == "not ended" }

// since returns what was counted after an earlier look at the same row.
func since(r, old *tracer.Row) *tracer.Row {
	out := *r
	out.Hits -= min(out.Hits, old.Hits)
	out.Totals, out.Histograms = nil, nil
	for i := range r.Totals {
		t := r.Totals[i]
		if i < len(old.Totals) {
			was := &old.Totals[i]
			t.Count -= min(t.Count, was.Count)
			t.Missing -= min(t.Missing, was.Missing)
			switch sum := t.Sum.(type) {
			case int64:
				t.Sum = sum - was.Sum.(int64)
			case uint64:
				t.Sum = sum - was.Sum.(uint64)
			}
		}
		t.Min, t.Max = nil, nil
		out.Totals = append(out.Totals, t)
	}
	for i := range r.Histograms {
		h := tracer.Histogram{Missing: r.Histograms[i].Missing}
		counts := make(map[any]uint64)
		if i < len(old.Histograms) {
			h.Missing -= min(h.Missing, old.Histograms[i].Missing)
			for _, b := range old.Histograms[i].Buckets {
				counts[b.Low] = b.Count
			}
		}
		for _, b := range r.Histograms[i].Buckets {
			b.Count -= min(b.Count, counts[b.Low])
			h.Buckets = append(h.Buckets, b)
		}
		full := func(b tracer.Bucket) bool { return b.Count > 0 }
		for len(h.Buckets) > 0 && !full(h.Buckets[len(h.Buckets)-1]) {
			h.Buckets = h.Buckets[:len(h.Buckets)-1]
		}
		if first := slices.IndexFunc(h.Buckets, full); first > 0 {
			h.Buckets = h.Buckets[first:]
		}
		out.Histograms = append(out.Histograms, h)
	}
	return &out
}

// sortColumns returns the columns that rows can be sorted by: hits, rate, those of arguments that are added up, and keys.
func sortColumns(o *tracer.SummaryOptions) []string {
	out := []string{"hits", "rate"}
	for _, arg := range o.Totals {
		for _, of := range []string{"sum", "min", "mean", "max"} {
			out = append(out, arg+"."+of)
		}
	}
	if len(o.Totals) == 1 {
		out = append(out, "sum", "min", "mean", "max")
	}
	return append(out, o.By...)
}

// CheckSort returns the error for a column by which rows cannot be sorted.
func CheckSort(name string, o *tracer.SummaryOptions) error {
	all := sortColumns(o)
	if name = strings.TrimPrefix(name, "-"); name == "" || slices.Contains(all, name) {
		return nil
	}
	hint := "there are " + strings.Join(all, ", ")
	if near := suggest.Nearest(name, slices.Values(all), 3); len(near) > 0 {
		hint = "nearest: " + strings.Join(near, ", ")
	}
	return fmt.Errorf("--sort %s: no such column; %s", name, hint)
}

// order returns how rows are compared: numbers from the largest, texts as in a dictionary, or after "-" the other way round.
func (v *View) order() func(a, b *shown) int {
	name, reverse := strings.CutPrefix(v.Sort, "-")
	var order func(a, b *shown) int
	switch at := slices.Index(v.Options.By, name); {
	case name == "" || name == "hits":
		order = func(a, b *shown) int { return cmp.Compare(b.Hits, a.Hits) }
	case name == "rate":
		order = func(a, b *shown) int { return cmp.Compare(b.rate, a.rate) }
	case at >= 0:
		order = func(a, b *shown) int { return compareKeys(a.Keys[at], b.Keys[at]) }
	default:
		arg, of := "", name
		if dot := strings.LastIndexByte(name, '.'); dot >= 0 {
			arg, of = name[:dot], name[dot+1:]
		}
		i := max(slices.Index(v.Options.Totals, arg), 0)
		order = func(a, b *shown) int { return cmp.Compare(numberOf(&b.Totals[i], of), numberOf(&a.Totals[i], of)) }
	}
	if reverse {
		forward := order
		order = func(a, b *shown) int { return forward(b, a) }
	}
	return order
}

// compareKeys compares numbers as such, from the largest, and others by their texts.
func compareKeys(a, b tracer.Key) int {
	x, xIs := (&mapview.Value{Scalar: a.Value}).Number()
	y, yIs := (&mapview.Value{Scalar: b.Value}).Number()
	if xIs && yIs {
		return cmp.Compare(y, x)
	}
	return cmp.Compare(a.Text, b.Text)
}

// numberOf returns a number of a total to sort by.
func numberOf(t *tracer.Total, of string) float64 {
	n := any(t.Mean())
	switch of {
	case "sum":
		n = t.Sum
	case "min":
		n = t.Min
	case "max":
		n = t.Max
	}
	x, _ := (&mapview.Value{Scalar: n}).Number()
	return x
}
