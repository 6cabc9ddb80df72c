package listing

import (
	"cmp"
	"fmt"
	"io"

	"github.com/bpfprologue/bpfprologue/attachable"
	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/internal/order"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/screen"
	"github.com/bpfprologue/bpfprologue/internal/terminal"
	"github.com/bpfprologue/bpfprologue/plan"
)

// AttachedOptions say what is printed of attached sites.
type AttachedOptions struct {
	Name    string // of the plan; "" is its definition
	Verbose bool   // the sites that have probes
	List    int    // how many refused sites are listed for each cause
	Predict func() (func(*dwarfloc.Site) attachable.Cause, error)
}

// Attached prints at how many sites a plan is attached, and why not at the others. The
// kernel returns the same error for most causes, so the cause is predicted from the image.
func Attached(w io.Writer, p *plan.Plan, a *instances.Attachment, o *AttachedOptions) error {
	terminal.Fprintf(w, "%s: attached at %d of %s\n", cmp.Or(o.Name, p.Definition.String()), len(a.Attached), screen.Count(len(p.Sites), "site"))
	summarize(p).printFetched(w, true)
	for _, i := range a.Attached {
		if !o.Verbose {
			break
		}
		site := &p.Sites[i]
		terminal.Fprintf(w, "  %v", site)
		for j := range site.Args {
			terminal.Fprintf(w, "  %s=%s", site.Args[j].Name, answerText(p, &site.Args[j]))
		}
		terminal.Fprintf(w, "\n")
	}
	if again := countSites(p, func(s *plan.Site) bool { return s.Way.Again && s.Instance >= 0 }); again > 0 {
		terminal.Fprintf(w, "  at %s a hit may be no run: it may fire again in one, or without any\n", screen.Count(again, "site"))
	}
	doubts := make(map[string]int)
	for i := range p.Sites {
		for j := range p.Sites[i].Args {
			if a := &p.Sites[i].Args[j]; a.Fetched() && a.Doubt() != reasons.None {
				doubts[fmt.Sprintf("~%s at %%s: %v, %s", p.Definition.Args[a.DefinitionArg].Name, a.Doubt(), a.Doubt().Describe())]++
			}
		}
	}
	for _, text := range order.LargestFirst(doubts) {
		terminal.Fprintf(w, "  "+text+"\n", screen.Count(doubts[text], "site"))
	}
	never := 0
	for i := range p.Sites {
		if p.Sites[i].Never != nil {
			never++
		}
	}
	if never > 0 {
		terminal.Fprintf(w, "  not at %s: the condition never holds there\n", screen.Count(never, "site"))
	}
	if n := len(p.Sites) - len(a.Attached) - len(a.Refused) - never; n > 0 {
		terminal.Fprintf(w, "  not at %s: an argument is not there, and --missing says skip\n", screen.Count(n, "site"))
	}
	if len(a.Refused) == 0 {
		return nil
	}
	predict, err := o.Predict()
	if err != nil {
		return err
	}
	causes, counts := make(map[string][]int), make(map[string]int)
	for _, r := range a.Refused {
		text := r.Err.Error()
		if c := predict(p.Sites[r.Site].Site); c != attachable.CauseNone {
			text = c.String() + ": " + c.Describe()
		}
		causes[text] = append(causes[text], r.Site)
		counts[text]++
	}
	for _, text := range order.LargestFirst(counts) {
		sites := causes[text]
		terminal.Fprintf(w, "  not at %s: %s\n", screen.Count(len(sites), "site"), text)
		for _, i := range sites[:min(len(sites), o.List)] {
			terminal.Fprintf(w, "    %v\n", &p.Sites[i])
		}
		if more := len(sites) - o.List; more > 0 && o.List > 0 {
			terminal.Fprintf(w, "    and %d more (--attachable lists all)\n", more)
		}
	}
	return nil
}

// countSites returns how many sites of a plan are such.
func countSites(p *plan.Plan, such func(s *plan.Site) bool) (n int) {
	for i := range p.Sites {
		if such(&p.Sites[i]) {
			n++
		}
	}
	return n
}
