package twin

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// doubtful begins the reason of a value that may not be what was passed.
const doubtful = "doubtful: "

// Verdict is what was seen of one function in B.
type Verdict struct {
	Function
	Runs, Hits int
	Compared   int            // values
	Doubtful   int            // values that B says may not be what was passed
	Lost       map[string]int // other values that B does not have, by reason
	Reordered  int            // runs that were found out of order
	Missed     int            // runs without a hit
	Extra      int            // hits without a run, at sites that do not say that they fire again
	Marked     int            // such hits at sites that do
	// Missing and More are the parts of Missed and Extra that a rule explains.
	Missing, More map[Rule]int
	Wrong         []Wrong
}

// Wrong is values that were sure and are not what was passed, of one parameter at one site.
type Wrong struct {
	Param, Place      string
	Count             int
	Passed, Delivered string // of the first
}

// Exact reports whether each run was seen once, but for what rules explain, and no value is wrong.
func (v *Verdict) Exact() bool {
	return len(v.Wrong) == 0 && v.Unexplained() == (Unexplained{})
}

// Unexplained is what no rule explains.
type Unexplained struct{ Missed, Extra int }

// Unexplained returns how many missed runs and unmarked extra hits no rule explains.
func (v *Verdict) Unexplained() Unexplained {
	return Unexplained{v.Missed - sum(v.Missing), v.Extra - sum(v.More)}
}

func sum[K comparable](of map[K]int) (n int) {
	for _, x := range of {
		n += x
	}
	return n
}

// yard is A, with what cannot be compared left out.
type yard struct {
	*trace
	names *names
	code  *code
	// off has the functions that are not compared, and why.
	off map[Function]string
}

// measure makes A's trace a yardstick, by a trace with other addresses and by the numbers of calls.
func measure(n *names, a, again *trace, c *code, calls map[string]int) *yard {
	y := &yard{trace: a, names: n, code: c, off: make(map[Function]string)}
	hits := make(map[string]int)
	for f, s := range a.functions {
		hits[f.Name] += len(s.hits)
	}
	for f, s := range a.functions {
		var other seen
		if o := again.functions[f]; o != nil {
			other = *o
		}
		switch {
		case strings.Contains(f.File, "/include/c++/"):
			y.off[f] = "it is of the language's library, which A has calls of in other files"
			continue
		case calls != nil && hits[f.Name] != calls[f.Name]:
			y.off[f] = fmt.Sprintf("%d hits of A, %d calls", hits[f.Name], calls[f.Name])
			continue
		case len(s.hits) != len(other.hits):
			y.off[f] = fmt.Sprintf("%d hits of A, then %d", len(s.hits), len(other.hits))
			continue
		}
		for k := range n.params[f] {
			if !slices.EqualFunc(s.hits, other.hits, func(a, b hit) bool { return a.value(k) == b.value(k) }) {
				for i := range s.hits {
					s.hits[i].values[k] = 0
				}
			}
		}
	}
	return y
}

// value is the number of a parameter's value, or 0.
func (h *hit) value(k int) int32 {
	if k >= len(h.values) {
		return 0
	}
	return h.values[k]
}

// compare compares B's hits with A's runs, function by function.
func (y *yard) compare(b *trace, c *code) (all []Verdict) {
	var removed []bool
	if len(y.runs) > 0 {
		removed = y.removed(c)
	}
	for f, runs := range y.functions {
		if y.off[f] != "" || len(runs.hits) == 0 && (b.functions[f] == nil || len(b.functions[f].hits) == 0) {
			continue
		}
		of := b.functions[f]
		if of == nil {
			of = new(seen)
		}
		all = append(all, y.verdict(f, runs, of, c, removed))
	}
	slices.SortFunc(all, func(a, b Verdict) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.File, b.File))
	})
	return all
}

// verdict compares the hits of one function with its runs.
func (y *yard) verdict(f Function, a, b *seen, c *code, removed []bool) Verdict {
	v := Verdict{Function: f, Runs: len(a.hits), Hits: len(b.hits), Lost: make(map[string]int), Missing: make(map[Rule]int), More: make(map[Rule]int)}
	unknown := func(hit *hit) bool { return !hit.site.Inlined() || len(y.runs) == 0 }
	called := func(run, hit *hit) bool {
		return !unknown(hit) && y.called(run.run, []place{hit.site.called()}, c.near)
	}
	p := align(a.hits, b.hits, func(run, hit *hit) bool { return unknown(hit) || called(run, hit) }, called)
	v.Reordered = p.reordered
	for i, j := range p.of {
		if j >= 0 {
			y.values(&v, &a.hits[i], &b.hits[j])
			continue
		}
		v.Missed++
		for _, x := range a.hits[i].values {
			if x != 0 {
				v.Lost["missed run"]++
			}
		}
	}
	var extra []*hit
	marked := 0 // hits that are runs, at marked sites
	for j, i := range p.at {
		switch h := &b.hits[j]; {
		case i >= 0 && h.site.Way.Again:
			marked++
		case i < 0 && h.site.Way.Again:
			v.Marked++
		case i < 0:
			extra = append(extra, h)
		}
	}
	// Where two sites saw one run, either of the hits can be the one too many. That of the marked site is.
	swapped := min(len(extra), marked)
	v.Marked += swapped
	extra = extra[swapped:]
	v.Extra = len(extra)
	if removed != nil {
		y.explain(&v, a, b, extra, c, removed)
	}
	return v
}

// values compares the values of a run with those of its hit.
func (y *yard) values(v *Verdict, run, hit *hit) {
	for k, x := range run.values {
		if x == 0 {
			continue
		}
		switch got, why := hit.value(k), hit.site.absent[k]; {
		case got == x:
			v.Compared++
		case got != 0:
			v.Compared++
			v.wrong(y.names.params[v.Function][k], hit.site.place, y.names.texts[x], y.names.texts[got])
		case len(why) > len(doubtful) && why[:len(doubtful)] == doubtful:
			v.Doubtful++
		case why == "":
			v.Lost["unreadable"]++
		default:
			v.Lost[why]++
		}
	}
}

// wrong notes a wrong value.
func (v *Verdict) wrong(param, place, passed, delivered string) {
	i := slices.IndexFunc(v.Wrong, func(w Wrong) bool { return w.Param == param && w.Place == place })
	if i < 0 {
		i = len(v.Wrong)
		v.Wrong = append(v.Wrong, Wrong{param, place, 0, passed, delivered})
	}
	v.Wrong[i].Count++
}
