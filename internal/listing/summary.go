package listing

import (
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/bpfprologue/bpfprologue/attachable"
	"github.com/bpfprologue/bpfprologue/internal/order"
	"github.com/bpfprologue/bpfprologue/internal/screen"
	"github.com/bpfprologue/bpfprologue/internal/terminal"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
)

// summary is the totals of a plan. Several goroutines may add sites at once.
type summary struct {
	def *probe.Definition

	mu        sync.Mutex
	functions map[string]struct{}
	places    int // sites of the plan
	sites     int // several ways into one inlined body, or out of it, count once
	inlined   int // of these
	unknown   int // places whose ways are not known
	again     int // places that may fire again
	never     int // places where the condition never holds
	args      []argSummary
}

// argSummary is how often an argument of a definition is fetched.
type argSummary struct {
	sites   int // where all that the argument stands for is fetched
	fetched int // arguments
	total   int
	reasons map[string]int // why others are not fetched
}

func newSummary(def *probe.Definition) *summary {
	s := &summary{def: def, functions: make(map[string]struct{}), args: make([]argSummary, len(def.Args))}
	for i := range s.args {
		s.args[i].reasons = make(map[string]int)
	}
	return s
}

// summarize returns the summary of a whole plan.
func summarize(p *plan.Plan) *summary {
	s := newSummary(p.Definition)
	for i := range p.Sites {
		s.add(&p.Sites[i])
	}
	return s
}

func (s *summary) add(site *plan.Site) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.functions[functionName(site.Site)] = struct{}{}
	s.places++
	if site.Way.Number <= 1 {
		s.sites++
		if site.Inlined() {
			s.inlined++
		}
	}
	if site.Way.Unknown != "" {
		s.unknown++
	}
	if site.Way.Again {
		s.again++
	}
	if site.Never != nil {
		s.never++
	}
	for i := range s.args {
		x := &s.args[i]
		all := true
		for k := range site.Args {
			a := &site.Args[k]
			switch {
			case a.DefinitionArg != i:
				continue
			case a.Fetched():
				x.fetched++
			default:
				all = false
				x.reasons[a.Unfetched.Code.String()]++
			}
			x.total++
		}
		if all {
			x.sites++
		}
	}
}

// print writes totals: sites, instances, and for each argument how often it is located and why it
// is not.
func (s *summary) print(look screen.Look, w io.Writer, instances int) {
	terminal.Fprintf(w, "\n%s %s of %s (%d out of line, %d inlined%s), %s\n", look.Styledf(screen.RolePlace, "%s:", s.def),
		screen.Count(s.sites, "site"), screen.Count(len(s.functions), "function"), s.sites-s.inlined, s.inlined, s.waysText(), screen.Count(instances, "instance"))
	if s.def.Options.If != nil {
		terminal.Fprintf(w, "  if %s: can hold at %d of %s\n", s.def.Options.If, s.places-s.never, s.counted())
	}
	s.printFetched(w, false)
}

// waysText says how many probes a plan's sites have, if there are more than sites, and how many
// sites may see only some runs.
func (s *summary) waysText() string {
	text := ""
	if s.places != s.sites {
		text = fmt.Sprintf(", %d probes", s.places)
	}
	if s.unknown > 0 {
		text += fmt.Sprintf(", ways not known at %d", s.unknown)
	}
	if s.again > 0 {
		text += fmt.Sprintf(", %d may fire again", s.again)
	}
	return text
}

// printFetched prints at how many sites each argument is fetched, and why not at the others.
// With missing it leaves out arguments that are fetched everywhere.
func (s *summary) printFetched(w io.Writer, missing bool) {
	for i := range s.args {
		d, x := &s.def.Args[i], &s.args[i]
		if missing && x.sites == s.places {
			continue
		}
		if d.Expr.Kind.Several() {
			terminal.Fprintf(w, "  %s: %d of %s fetched, all of a site at %d of %s", d.Expr, x.fetched, screen.Count(x.total, "argument"), x.sites, s.counted())
		} else {
			terminal.Fprintf(w, "  %s: fetched at %d of %s", d.Name, x.sites, s.counted())
		}
		for k, n := range order.LargestFirst(x.reasons) {
			terminal.Fprintf(w, "%s%d %s", map[bool]string{true: "; ", false: ", "}[k == 0], x.reasons[n], n)
		}
		terminal.Fprintf(w, "\n")
	}
}

// printProbes prints at how many places there are probes, and the counts of what is said of the
// others, or of these.
func printProbes[K attachable.Cause | attachable.Method](w io.Writer, s *summary, verb string, counts map[K]int, others bool) {
	var parts []string
	n := 0
	for _, k := range order.LargestFirst(counts) {
		parts = append(parts, fmt.Sprintf("%d %v", counts[k], k))
		n += counts[k]
	}
	if others {
		n = s.places - n
	}
	terminal.Fprintf(w, "  probes %s at %d of %s", verb, n, s.counted())
	if len(parts) > 0 {
		terminal.Fprintf(w, "; %s", strings.Join(parts, ", "))
	}
	terminal.Fprintf(w, "\n")
}

// counted counts where a plan's arguments are fetched.
func (s *summary) counted() string {
	if s.places == s.sites {
		return screen.Count(s.places, "site")
	}
	return screen.Count(s.places, "probe")
}
