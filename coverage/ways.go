package coverage

import (
	"fmt"
	"io"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/runs"
)

// Ways are totals of the places where runs of inlined bodies begin and end: see
// docs/definitions.md.
type Ways struct {
	Instances int `json:"instances"` // inlined instances
	One       int `json:"one_way"`   // of them, those with one way in
	Several   int `json:"several_ways"`
	Unknown   int `json:"unknown"` // those the code of which could not be followed
	Within    int `json:"within"`  // those that are parts of another one: GCC splits functions, and merges equal code
	// EntryAlone are instances of which a probe where the debug information says that the body
	// is entered sees each run, and sees it once. EntryNever are those of which it sees none:
	// no way in is there.
	EntryAlone int `json:"entry_alone"`
	EntryNever int `json:"entry_never"`
	In         int `json:"ways_in"`
	// InAgain are ways in at which a probe also fires on further turns of a loop of the body.
	InAgain int `json:"ways_in_again"`
	Out     int `json:"ways_out"`
	// OutUnsure are ways out that execution also passes without a run.
	OutUnsure int `json:"ways_out_unsure"`
	// NoReturn are calls in bodies that do not return.
	NoReturn int `json:"no_return"`
}

// sumWays returns the sum of what several goroutines have counted.
func sumWays(tallies []Ways) *Ways {
	sum := &tallies[0]
	for i := range tallies[1:] {
		sum.merge(&tallies[i+1])
	}
	return sum
}

func (t *Ways) add(s *dwarfloc.Site, w *runs.Ways) {
	t.Instances++
	switch {
	case w.Within:
		t.Within++
	case w.Unknown != "":
		t.Unknown++
		return
	case len(w.In) == 1:
		t.One++
	default:
		t.Several++
	}
	t.In += len(w.In)
	t.Out += len(w.Out)
	t.NoReturn += w.NoReturn
	at := 0
	for i := range w.In {
		if w.In[i].Again {
			t.InAgain++
		}
		if w.In[i].Probe == s.Addr {
			at++
		}
	}
	switch {
	case w.Within:
	case at == 0:
		t.EntryNever++
	case len(w.In) == 1 && !w.In[0].Again:
		t.EntryAlone++
	}
	for i := range w.Out {
		if w.Out[i].Again {
			t.OutUnsure++
		}
	}
}

func (t *Ways) merge(o *Ways) {
	for name, n := range t.figures() {
		*n += *o.figures()[name]
	}
}

// figures returns the totals by name.
func (t *Ways) figures() map[string]*int {
	return map[string]*int{
		"instances": &t.Instances, "one_way": &t.One, "several_ways": &t.Several, "unknown": &t.Unknown, "within": &t.Within,
		"entry_alone": &t.EntryAlone, "entry_never": &t.EntryNever, "ways_in": &t.In, "ways_in_again": &t.InAgain,
		"ways_out": &t.Out, "ways_out_unsure": &t.OutUnsure, "no_return": &t.NoReturn,
	}
}

func (t *Ways) print(w io.Writer, entries int) {
	fmt.Fprintf(w, "\nruns of inlined bodies: %d instances\n\n", t.Instances)
	line := func(name string, part, whole int) {
		fmt.Fprintf(w, "  %-26s %s %8d  %5.1f %%\n", name, bar(part, whole), part, percent(part, whole))
	}
	fmt.Fprintln(w, " ways in")
	line("one", t.One, t.Instances)
	line("several", t.Several, t.Instances)
	line("part of another one", t.Within, t.Instances)
	line("not known", t.Unknown, t.Instances)
	fmt.Fprintln(w, " runs that a probe at the entry in the debug information sees")
	line("each, once", t.EntryAlone, t.Instances)
	line("some, or some twice", t.Instances-t.Within-t.Unknown-t.EntryAlone-t.EntryNever, t.Instances)
	line("none", t.EntryNever, t.Instances)
	fmt.Fprintln(w, " ways out")
	line("only after a run", t.Out-t.OutUnsure, t.Out)
	line("also without one", t.OutUnsure, t.Out)
	probes := t.In + t.Unknown + entries
	fmt.Fprintf(w, "\n  %d ways in, %d of which a loop of the body comes back to; %d ways out; %d calls that do not return\n", t.In, t.InAgain, t.Out, t.NoReturn)
	fmt.Fprintf(w, "  %d probe points for %d sites, or %.1f %% more than there are sites with ways of their own\n", probes, t.Instances+entries, percent(probes+t.Within-t.Instances-entries, t.Instances+entries))
}
