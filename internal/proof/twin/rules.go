package twin

import (
	"slices"
	"strings"
)

// Rule is a reason for which B's hits of a function may be others than A's runs.
type Rule string

const (
	// NoCode is that B has no site of the function: the compiler removed it, with its calls, or made them part of something else.
	NoCode Rule = "the function has no code"
	// Removed is that B has neither a call of the function nor its body where A calls it, or none for a call on the way there.
	Removed Rule = "the call has no code"
	// Vectorized is that of each two, four, eight or sixteen runs one has a hit, in code that computes several numbers with one
	// instruction.
	Vectorized Rule = "vectorized"
	// Refused is that no probe can be at a site.
	Refused Rule = "no probe possible"
	// Ways is that the tool says of a site that it does not know all ways into the body.
	Ways Rule = "ways not known, as the site says"
	// Equal is that another function has the same instructions in A: the compiler may keep one of both for the runs of both.
	Equal Rule = "an equal function's runs"
	// Split is that the site is in a part of a function that the compiler split off, whose runs are not the function's.
	Split Rule = "a part that was split off"
)

// explain finds the rules that explain a function's missed runs and extra hits.
func (y *yard) explain(v *Verdict, a, b *seen, extra []*hit, c *code, removed []bool) {
	missed := func(r Rule, n int) {
		if n = min(n, v.Missed-sum(v.Missing)); n > 0 {
			v.Missing[r] += n
		}
	}
	if len(b.sites) == 0 {
		missed(NoCode, v.Missed)
	}
	gone := 0
	for i := range a.hits {
		if removed[a.hits[i].run] {
			gone++
		}
	}
	if gone < v.Missed && b.vectorized(v.Runs, c) {
		missed(Vectorized, v.Runs) // of the calls one is left, of which the others have become a part
	}
	missed(Removed, gone)
	if left := v.Runs - v.Missing[Removed]; b.vectorized(left, c) {
		missed(Vectorized, left)
	}
	if slices.ContainsFunc(b.sites, func(s *site) bool { return s.refused }) {
		missed(Refused, v.Missed)
	}
	if slices.ContainsFunc(b.sites, func(s *site) bool { return s.Way.Unknown != "" }) {
		missed(Ways, v.Missed)
	}
	others := y.equals(v.Function) // runs that can be taken for this function's
	for _, h := range extra {
		switch s := h.site; {
		case strings.Contains(s.Symbol, ".part."):
			v.More[Split]++
		case s.Way.Unknown != "":
			v.More[Ways]++
		case others > 0:
			v.More[Equal]++
			others--
		}
	}
}

// vectorized reports whether the hits are so many runs, vectorized.
func (s *seen) vectorized(runs int, c *code) bool {
	lanes := runs / max(len(s.hits), 1)
	return slices.Contains([]int{2, 4, 8, 16}, lanes) && lanes*len(s.hits) == runs &&
		!slices.ContainsFunc(s.hits, func(h hit) bool { return !c.packed[h.site.Symbol] })
}

// equals is how many runs A has of other functions with the same instructions.
func (y *yard) equals(f Function) (runs int) {
	shape := y.code.shapes[f.Name]
	for g, s := range y.functions {
		if g != f && shape != "" && y.code.shapes[g.Name] == shape {
			runs += len(s.hits)
		}
	}
	return runs
}
