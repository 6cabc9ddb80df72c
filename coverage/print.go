package coverage

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/bpfprologue/bpfprologue/internal/order"
	"github.com/bpfprologue/bpfprologue/internal/terminal"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// barWidth is the width of a bar in characters.
const barWidth = 40

// bar draws a part of a whole.
func bar(part, whole int) string {
	if whole == 0 {
		return strings.Repeat("·", barWidth)
	}
	full := (part*barWidth + whole/2) / whole
	if full == 0 && part > 0 {
		return "▏" + strings.Repeat("·", barWidth-1) // not 0
	}
	return strings.Repeat("█", full) + strings.Repeat("·", barWidth-full)
}

func percent(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return 100 * float64(part) / float64(whole)
}

// Print writes a report as text with bar charts. It ignores errors of w: use a bufio.Writer and
// check Flush.
func (r *Report) Print(w io.Writer) {
	fmt.Fprintf(w, "%s\n", terminal.Text(r.Image))
	if m := r.Missing; m != nil {
		fmt.Fprintf(w, "incomplete: %d of %d units are in files that are not there\n", m.Units, m.Of)
	}
	for _, c := range []struct {
		title string
		*Counts
	}{{"out of line", &r.Entry}, {"inlined", &r.Inline}} {
		with := c.Sites - c.NoParams
		fmt.Fprintf(w, "\n%s: %d sites, %d of them with parameters, %d parameters\n\n", c.title, c.Sites, with, c.Parameters)
		line := func(name string, part, whole int) {
			fmt.Fprintf(w, "  %-26s %s %8d  %5.1f %%\n", name, bar(part, whole), part, percent(part, whole))
		}
		fmt.Fprintln(w, " sites with parameters")
		line("all located", c.All, with)
		line("some located", c.Some, with)
		line("none located", c.None, with)
		line("all described", c.Described, with)
		group := func(title string, m map[string]int) {
			fmt.Fprintln(w, " "+title)
			for _, name := range order.LargestFirst(m) {
				line(name, m[name], c.Parameters)
			}
		}
		fmt.Fprintln(w, " parameters")
		line("located", c.Located, c.Parameters)
		group("located, by kind of location", c.ByKind)
		group("located, by rule", c.ByRule)
		if len(c.ByDoubt) > 0 {
			group("located and doubtful, by reason", c.ByDoubt)
		}
		group("not located, by reason", c.ByReason)
	}
	if len(r.Controls) > 0 {
		fmt.Fprintln(w, "\nwhat instructions say, where the debug information says it too")
		for _, rule := range slices.Sorted(maps.Keys(r.Controls)) {
			n := r.Controls[rule]
			fmt.Fprintf(w, "  %-10s %d equal; %d differ, which silence %d\n", rule, n.Equal, n.Differ, n.Silenced)
		}
	}
	if r.Ways != nil {
		r.Ways.print(w, r.Entry.Sites)
	}
	if r.Probes != nil {
		r.Probes.print(w)
	}
	e := &r.Emitted
	fmt.Fprintf(w, "\nprologues that fetch every parameter, up to %d each: %d, distinct: %d\n", prologue.MaxArgs, e.Prologues, e.Distinct)
	fmt.Fprintf(w, "  %d instructions, %.2f a prologue; %d helper calls, %.2f a prologue\n",
		e.Instructions, ratio(e.Instructions, e.Prologues), e.HelperCalls, ratio(e.HelperCalls, e.Prologues))
}

func ratio(a, b int) float64 { return float64(a) / float64(max(b, 1)) }

// Change is a figure that differs in two reports.
type Change struct {
	Name string `json:"name"` // "inline.reasons.optimized-out"
	Old  int    `json:"old"`
	New  int    `json:"new"`
}

// Diff returns the figures that differ in two reports, sorted by name.
func Diff(a, b *Report) []Change {
	old, now := a.figures(), b.figures()
	for name := range old {
		if _, ok := now[name]; !ok {
			now[name] = 0
		}
	}
	var out []Change
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if old[name] != now[name] {
			out = append(out, Change{name, old[name], now[name]})
		}
	}
	return out
}

// figures returns a report's numbers by name.
func (r *Report) figures() map[string]int {
	e := &r.Emitted
	m := map[string]int{
		"emitted.prologues": e.Prologues, "emitted.distinct": e.Distinct,
		"emitted.instructions": e.Instructions, "emitted.helper_calls": e.HelperCalls,
	}
	for kind, c := range map[string]*Counts{"entry": &r.Entry, "inline": &r.Inline} {
		for name, n := range map[string]int{
			"sites": c.Sites, "sites_without_parameters": c.NoParams, "sites_all_located": c.All,
			"sites_some_located": c.Some, "sites_none_located": c.None, "sites_all_described": c.Described,
			"parameters": c.Parameters, "located": c.Located,
		} {
			m[kind+"."+name] = n
		}
		for group, g := range map[string]map[string]int{"kinds": c.ByKind, "rules": c.ByRule, "reasons": c.ByReason, "doubts": c.ByDoubt} {
			for name, n := range g {
				m[kind+"."+group+"."+name] = n
			}
		}
	}
	if r.Ways != nil {
		for name, n := range r.Ways.figures() {
			m["ways."+name] = *n
		}
	}
	if r.Probes != nil {
		for name, n := range r.Probes.figures() {
			m["probes."+name] = n
		}
	}
	return m
}
