package truth

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
)

// Why a value was not compared, besides the reasons of package loc.
const (
	reasonNoCode  = "no-code" // no code of the function is left
	reasonMissed  = "missed"  // no probe fired in the run
	reasonUnread  = "unread"  // memory could not be read
	reasonRefused = "refused" // the definition is an error in this image
)

// Wrong is a value that is not what the program passed.
type Wrong struct {
	Build     string
	Label     string
	Site      string
	Address   uint64
	Arg       string
	Location  string
	Rule      string
	Got, Want string
	Call      uint64
	Times     int // at the same site
}

func (w *Wrong) String() string {
	return fmt.Sprintf("%s: %s at %#x (%s): %s in %s (%s) is %s, and was %s in call %d; %d times",
		w.Build, w.Label, w.Address, w.Site, w.Arg, w.Location, w.Rule, w.Got, w.Want, w.Call, w.Times)
}

// Result is what comparing gave.
type Result struct {
	Build    string
	Sites    int // that were probed
	Runs     int // that the program recorded
	Compared int // values
	Lost     map[string]int
	Wrong    []Wrong
	Repeated int      // hits of a run after its first
	Outside  int      // hits between calls
	Notes    []string // what was refused
}

// Add adds the counts of another result.
func (r *Result) Add(o *Result) {
	r.Sites += o.Sites
	r.Runs += o.Runs
	r.Compared += o.Compared
	r.Repeated += o.Repeated
	r.Outside += o.Outside
	r.Wrong = append(r.Wrong, o.Wrong...)
	if r.Lost == nil {
		r.Lost = make(map[string]int)
	}
	for why, n := range o.Lost {
		r.Lost[why] += n
	}
}

// WrongValues is how many values were wrong.
func (r *Result) WrongValues() int {
	n := 0
	for i := range r.Wrong {
		n += r.Wrong[i].Times
	}
	return n
}

// compare compares what was traced with what the program recorded.
func compare(build string, t *traced, rec record) *Result {
	r := &Result{Build: build, Sites: t.sites, Outside: t.outside, Notes: t.notes, Lost: make(map[string]int)}
	for _, call := range slices.Sorted(maps.Keys(rec)) {
		byLabel := make(map[string][]expectedRun)
		for _, run := range rec[call] {
			byLabel[run.label] = append(byLabel[run.label], run)
		}
		for _, label := range slices.Sorted(maps.Keys(byLabel)) {
			runs, hits := byLabel[label], t.hits[call][label]
			r.Runs += len(runs)
			r.Repeated += max(len(hits)-len(runs), 0)
			for i, h := range match(runs, hits) {
				r.run(call, &runs[i], h, t)
			}
		}
	}
	return r
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
			if v, ok := hits[j].values[want.name]; ok && v.Unfetched.Code == 0 && !v.Lost && !equal(want, &v) {
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
func (r *Result) run(call uint64, run *expectedRun, h *hit, t *traced) {
	for i := range run.values {
		want := &run.values[i]
		if why, ok := t.refused[run.label][want.name]; ok {
			r.Lost[why]++
			continue
		}
		switch {
		case t.noCode[run.label]:
			r.Lost[reasonNoCode]++
			continue
		case h == nil:
			r.Lost[reasonMissed]++
			continue
		}
		got, ok := h.values[want.name]
		switch {
		case !ok: // the definition does not ask for it
		case got.Lost:
			r.Lost[reason(&got)]++
		case equal(want, &got):
			r.Compared++
		default:
			r.Compared++
			r.wrong(call, run.label, want, h, &got)
		}
	}
}

func (r *Result) wrong(call uint64, label string, want *expected, h *hit, got *plan.Value) {
	for i := range r.Wrong {
		if w := &r.Wrong[i]; w.Label == label && w.Arg == want.name && w.Address == h.site.Addr {
			w.Times++
			return
		}
	}
	arch := h.site.Image.Arch()
	r.Wrong = append(r.Wrong, Wrong{
		Build: r.Build, Label: label, Site: h.site.String(), Address: h.site.Addr, Arg: want.name,
		Location: got.Loc.Text(arch), Rule: got.Variable.Loc.Rule.String(),
		Got: shown(want, got), Want: want.String(), Call: call, Times: 1,
	})
}

// equal reports whether a value is as expected.
func equal(want *expected, got *plan.Value) bool {
	switch want.kind {
	case 'x':
		return word(got.Data) == want.word
	case 's':
		return text(got.Data) == string(want.bytes)
	}
	// A number of fewer bytes is extended.
	return len(got.Data) >= len(want.bytes) && bytes.Equal(got.Data[:len(want.bytes)], want.bytes)
}

func word(data []byte) uint64 {
	if len(data) < 8 {
		return 0
	}
	return binary.NativeEndian.Uint64(data)
}

func text(data []byte) string {
	s, _, _ := strings.Cut(string(data), "\x00")
	return s
}

// shown prints a value in the form of what was expected.
func shown(want *expected, got *plan.Value) string {
	switch want.kind {
	case 'x':
		return fmt.Sprintf("%#x", word(got.Data))
	case 's':
		return strconv.Quote(text(got.Data))
	}
	return hex.EncodeToString(got.Data)
}

// refusal names the error of a definition.
func refusal(err error) string {
	var e *probe.Error
	if errors.As(err, &e) && strings.HasPrefix(e.Msg, "no variable") {
		return loc.ReasonNoSuchVariable.String()
	}
	return reasonRefused
}
