package truth

import (
	"fmt"

	"github.com/bpfprologue/bpfprologue/loc"
)

// Why a value was not compared, besides the reasons of package loc.
const (
	reasonNoCode  = "no-code" // no code of the function is left
	reasonMissed  = "missed"  // no probe fired in the run
	reasonUnread  = "unread"  // memory could not be read
	reasonRefused = "refused" // the definition is an error in this image
)

// Place is where values were: how the locations were chosen and what they are.
type Place struct {
	Compiler string // "gcc", "clang", "rustc" or "go"
	Rule     loc.Rule
	Kind     loc.Kind
}

// Loss is why values of a function were not compared.
type Loss struct{ Reason, Label string }

// Count counts compared values.
type Count struct{ Compared, Wrong int }

// Wrong is a value that is not what the program passed.
type Wrong struct {
	Build     string
	Label     string
	Site      string
	Address   uint64
	Arg       string
	Location  string
	Rule      loc.Rule
	Got, Want string
	Call      uint64
	Times     int // at the same site
}

func (w *Wrong) String() string {
	return fmt.Sprintf("%s: %s at %#x (%s): %s in %s (%v) is %s, and was %s in call %d; %d times",
		w.Build, w.Label, w.Address, w.Site, w.Arg, w.Location, w.Rule, w.Got, w.Want, w.Call, w.Times)
}

// Result is what comparing gave for one build, or for several.
type Result struct {
	Sites    int // that were probed
	Runs     int // that the programs recorded
	Repeated int // hits of a run after its first
	Count        // values
	Lost     map[Loss]int
	Outside  map[string]int // by label: hits between calls
	Places   map[Place]Count
	Wrong    []Wrong  // one for each argument of a site
	Notes    []string // what was refused
}

func newResult() *Result {
	return &Result{Lost: make(map[Loss]int), Outside: make(map[string]int), Places: make(map[Place]Count)}
}

// Sum adds results. Those that are nil count nothing.
func Sum(all []*Result) *Result {
	sum := newResult()
	for _, r := range all {
		if r == nil {
			continue
		}
		sum.Sites += r.Sites
		sum.Runs += r.Runs
		sum.Repeated += r.Repeated
		sum.Compared += r.Compared
		sum.Count.Wrong += r.Count.Wrong
		for l, n := range r.Lost {
			sum.Lost[l] += n
		}
		for label, n := range r.Outside {
			sum.Outside[label] += n
		}
		sum.Wrong = append(sum.Wrong, r.Wrong...)
		for p, n := range r.Places {
			c := sum.Places[p]
			sum.Places[p] = Count{c.Compared + n.Compared, c.Wrong + n.Wrong}
		}
	}
	return sum
}

// LostValues is how many values were not compared.
func (r *Result) LostValues() int {
	n := 0
	for _, lost := range r.Lost {
		n += lost
	}
	return n
}

// byReason is how many values were lost for each reason.
func (r *Result) byReason() map[string]int {
	sums := make(map[string]int)
	for l, n := range r.Lost {
		sums[l.Reason] += n
	}
	return sums
}
