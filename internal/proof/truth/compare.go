package truth

import (
	"maps"
	"slices"

	"github.com/bpfprologue/bpfprologue/plan"
)

// compare compares what was traced with what the program recorded. With mixed, the hits of a function in one call need not be
// in the order of its runs, as where a compiler put several of its bodies at one address.
func compare(b *Build, t *traced, rec record, mixed bool) *Result {
	c := comparison{Result: newResult(), build: b, traced: t}
	c.Sites, c.Notes = t.sites, t.notes
	maps.Copy(c.Outside, t.outside)
	for _, call := range slices.Sorted(maps.Keys(rec)) {
		byLabel := make(map[string][]expectedRun)
		for _, run := range rec[call] {
			byLabel[run.label] = append(byLabel[run.label], run)
		}
		for _, label := range slices.Sorted(maps.Keys(byLabel)) {
			runs, hits := byLabel[label], t.hits[call][label]
			c.Runs += len(runs)
			if mixed {
				c.anyRun = runs
			}
			c.Repeated += max(len(hits)-len(runs), 0)
			for i, h := range match(runs, hits) {
				c.run(call, &runs[i], h)
			}
		}
	}
	return c.Result
}

type comparison struct {
	*Result
	build  *Build
	traced *traced
	// anyRun are the runs of a call's function, one of which a hit is to be of. It is nil if it is to be of its own.
	anyRun []expectedRun
}

// match returns the hit of each run of one function in one call, or nil. With as many hits as
// runs each has its own. A single run has the first hit: the others are later turns of a
// loop. Else some runs had no hit or some had several, and hits are matched in order so that
// as few values as possible differ.
func match(runs []expectedRun, hits []hit) []*hit {
	out := make([]*hit, len(runs))
	switch {
	case len(runs) == len(hits):
		for i := range hits {
			out[i] = &hits[i]
		}
	case len(hits) == 0:
	case len(runs) == 1:
		out[0] = &hits[0]
	default:
		align(runs, hits, out)
	}
	return out
}

// align finds, of all ways to pair min(runs, hits) of both in order, one with the fewest
// values that differ.
func align(runs []expectedRun, hits []hit, out []*hit) {
	const never = 1 << 30
	pairs := min(len(runs), len(hits))
	// best[i][j] is the cost of pairing all that can be paired of runs[i:] and hits[j:].
	best := make([][]int, len(runs)+1)
	for i := range best {
		best[i] = make([]int, len(hits)+1)
	}
	cost := func(i, j int) int {
		n := 0
		for k := range runs[i].values {
			want := &runs[i].values[k]
			if v, ok := hits[j].values[want.name]; ok && !v.Lost && !equal(want, &v) {
				n++
			}
		}
		return n
	}
	skips := func(i, j int) int { // what may be skipped from here
		if len(runs) > len(hits) {
			return (len(runs) - i) - (len(hits) - j)
		}
		return (len(hits) - j) - (len(runs) - i)
	}
	for i := len(runs); i >= 0; i-- {
		for j := len(hits); j >= 0; j-- {
			if skips(i, j) < 0 || skips(i, j) > max(len(runs), len(hits))-pairs {
				best[i][j] = never
				continue
			}
			if i == len(runs) || j == len(hits) {
				continue // the rest is skipped
			}
			best[i][j] = best[i+1][j+1] + cost(i, j)
			if skips(i, j) > 0 {
				if len(runs) > len(hits) {
					best[i][j] = min(best[i][j], best[i+1][j])
				} else {
					best[i][j] = min(best[i][j], best[i][j+1])
				}
			}
		}
	}
	for i, j := 0, 0; i < len(runs) && j < len(hits); {
		switch {
		case best[i][j] == best[i+1][j+1]+cost(i, j):
			out[i] = &hits[j]
			i, j = i+1, j+1
		case len(runs) > len(hits):
			i++
		default:
			j++
		}
	}
}

// run compares the values of one run with those of its hit, which may be nil.
func (c *comparison) run(call uint64, run *expectedRun, h *hit) {
	for i := range run.values {
		want := &run.values[i]
		why, refused := c.traced.refused[run.label][want.name]
		switch {
		case refused:
			c.Lost[Loss{why, run.label}]++
		case c.traced.noCode[run.label]:
			c.Lost[Loss{reasonNoCode, run.label}]++
		case h == nil:
			c.Lost[Loss{reasonMissed, run.label}]++
		default:
			// A name that the definition does not ask for is not counted.
			if got, ok := h.values[want.name]; ok {
				c.value(call, run.label, want, h, &got)
			}
		}
	}
}

func (c *comparison) value(call uint64, label string, want *expected, h *hit, got *plan.Value) {
	if got.Lost {
		c.Lost[Loss{reason(got), label}]++
		return
	}
	place := Place{Compiler: c.build.family(), Rule: got.Variable.Loc.Rule, Kind: got.Variable.Loc.Kind}
	n := c.Places[place]
	c.Compared++
	n.Compared++
	if !equal(want, got) && !c.otherRun(want.name, h, got) {
		c.Count.Wrong++
		n.Wrong++
		c.wrong(call, label, want, h, got)
	}
	c.Places[place] = n
}

// otherRun reports whether a value is that of another run that it may be of, or of the midst of one.
func (c *comparison) otherRun(name string, h *hit, got *plan.Value) bool {
	return c.anyRun != nil && h.site.Way.Again || slices.ContainsFunc(c.anyRun, func(run expectedRun) bool {
		return slices.ContainsFunc(run.values, func(v expected) bool { return v.name == name && equal(&v, got) })
	})
}

func (c *comparison) wrong(call uint64, label string, want *expected, h *hit, got *plan.Value) {
	for i := range c.Wrong {
		if w := &c.Wrong[i]; w.Label == label && w.Arg == want.name && w.Address == h.site.Addr && w.Site == h.site.String() {
			w.Times++
			return
		}
	}
	c.Wrong = append(c.Wrong, Wrong{
		Build: c.build.String(), Label: label, Site: h.site.String(), Address: h.site.Addr, Arg: want.name,
		Location: got.Loc.Text(h.site.Image.Arch()), Rule: got.Variable.Loc.Rule,
		Got: shown(want, got), Want: want.String(), Call: call, Times: 1,
	})
}
