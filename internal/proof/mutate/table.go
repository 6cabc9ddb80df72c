package mutate

import (
	"fmt"
	"io"
	"slices"
)

// count is what came of some variants.
type count struct{ variants, damaged, unchanged, changed, findings int }

func (c *count) add(o *Outcome) {
	c.variants++
	switch {
	case len(o.Faults) > 0:
		c.findings++
	case o.Answer == "damaged":
		c.damaged++
	case o.Answer == "unchanged":
		c.unchanged++
	default:
		c.changed++
	}
}

// Findings returns the number of variants with a fault.
func Findings(results map[int]*Outcome) (n int) {
	for _, o := range results {
		if len(o.Faults) > 0 {
			n++
		}
	}
	return n
}

// WriteTable prints what came of a run, as a page.
func WriteTable(w io.Writer, subjects []Subject, results map[int]*Outcome) {
	byKind, byCompiler, bySubject := make(map[string]*count), make(map[string]*count), make(map[string]*count)
	var all count
	add := func(m map[string]*count, key string, o *Outcome) {
		if m[key] == nil {
			m[key] = new(count)
		}
		m[key].add(o)
	}
	for n, o := range results {
		if o.Done == nil {
			continue
		}
		s := &subjects[SubjectOf(subjects, n)]
		all.add(o)
		add(byKind, o.Kind, o)
		add(byCompiler, s.Compiler, o)
		add(bySubject, s.Name, o)
	}
	fmt.Fprintf(w, "%d variants of %d files.\n\n", all.variants, len(bySubject))
	var order []string
	for i := range kinds {
		order = append(order, kinds[i].name)
	}
	table(w, "mutations of", append(order, keptKind, objectKind), byKind, &all)
	order = nil
	for c := range byCompiler {
		order = append(order, c)
	}
	slices.Sort(order)
	table(w, "files of", order, byCompiler, &all)
	fmt.Fprint(w, "The files, with the variants of each:\n\n")
	for i := range subjects {
		if c := bySubject[subjects[i].Name]; c != nil {
			fmt.Fprintf(w, "- %s: %d\n", subjects[i].Name, c.variants)
		}
	}
}

// table prints counts by a key.
func table(w io.Writer, what string, order []string, counts map[string]*count, all *count) {
	fmt.Fprintf(w, "| %s | variants | damaged | unchanged | changed | findings |\n| --- | ---: | ---: | ---: | ---: | ---: |\n", what)
	row := func(name string, c *count) {
		fmt.Fprintf(w, "| %s | %d | %d | %d | %d | %d |\n", name, c.variants, c.damaged, c.unchanged, c.changed, c.findings)
	}
	for _, name := range order {
		if c := counts[name]; c != nil {
			row(name, c)
		}
	}
	row("all", all)
	fmt.Fprintln(w)
}
