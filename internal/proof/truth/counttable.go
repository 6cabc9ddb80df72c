package truth

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// counted sums what is known of the bodies of some builds.
type counted struct {
	Bodies, Runs, Unknown, NoCode int
	Sites, Ways                   int
	Exact                         [3]int // bodies, by kind
	Tallies                       [3]Tally
}

func (c *counted) add(bodies []Body) {
	for i := range bodies {
		b := &bodies[i]
		if b.Runs == 0 {
			continue
		}
		c.Runs += b.Runs
		switch {
		case b.NoCode, b.NotDescribed:
			c.NoCode++
			continue
		case b.Unknown > 0:
			c.Unknown++
			continue
		}
		c.Bodies++
		c.Sites += b.Sites
		c.Ways += b.Ways
		for k, t := range b.tallies() {
			s := &c.Tallies[k]
			s.Hits, s.Missed, s.Twice = s.Hits+t.Hits, s.Missed+t.Missed, s.Twice+t.Twice
			s.Marked, s.Shifted = s.Marked+t.Marked, s.Shifted+t.Shifted
			if t.Exact() {
				c.Exact[k]++
			}
		}
	}
}

// tallies are those of a body by kind.
func (b *Body) tallies() [3]*Tally { return [3]*Tally{ofEntry: &b.Entry, ofIn: &b.In, ofOut: &b.Out} }

// WriteRuns writes as Markdown what counting gave for builds: a row for each, and sums. What is
// nil is of a build that failed.
func WriteRuns(w io.Writer, builds []Build, all [][]Body) {
	var total counted
	for _, bodies := range all {
		total.add(bodies)
	}
	fmt.Fprintf(w, "%d builds, %d functions with code in them, %d runs.\n\n", len(builds), total.Bodies, total.Runs)
	fmt.Fprint(w, "A function is exact if each of its runs had one hit. *Entry* is with probes where the debug information says that\n"+
		"bodies begin (`--ways entry`), *in* with probes at all ways in, *out* at all ways out. *Missed* are runs without a hit,\n"+
		"*twice* hits of a run after its first, *marked* such hits at sites that say so (`refires`). *Unknown* functions, some of\n"+
		"whose ways are not known, and those without a record in the debug information, or without one of the calls whose runs were\n"+
		"missed, are not in the other numbers.\n\n")
	byCompiler := make(map[string]*counted)
	var compilers []string
	for i := range builds {
		name := string(builds[i].Language) + " " + builds[i].Compiler
		if byCompiler[name] == nil {
			byCompiler[name] = new(counted)
			compilers = append(compilers, name)
		}
		byCompiler[name].add(all[i])
	}
	writeCountHead(w, "compiler")
	for _, name := range compilers {
		byCompiler[name].row(w, name)
	}
	total.row(w, "all")
	writeDifferences(w, all)
	fmt.Fprintln(w)
	writeCountHead(w, "build")
	for i := range builds {
		if all[i] == nil {
			fmt.Fprintf(w, "| %v | failed |\n", &builds[i])
			continue
		}
		var c counted
		c.add(all[i])
		c.row(w, builds[i].String())
	}
}

func writeCountHead(w io.Writer, what string) {
	fmt.Fprintf(w, "| %s | functions | sites | ways in | exact, entry | in | out | missed, entry | in | out | twice, entry | in | out | marked, in | out | unknown | no record |\n", what)
	fmt.Fprintln(w, "| --- |"+strings.Repeat(" ---: |", 16))
}

func (c *counted) row(w io.Writer, name string) {
	e, i, o := &c.Tallies[ofEntry], &c.Tallies[ofIn], &c.Tallies[ofOut]
	fmt.Fprintf(w, "| %s |", name)
	for _, n := range []int{
		c.Bodies, c.Sites, c.Ways, c.Exact[ofEntry], c.Exact[ofIn], c.Exact[ofOut], e.Missed, i.Missed, o.Missed,
		e.Twice, i.Twice, o.Twice, i.Marked, o.Marked, c.Unknown, c.NoCode,
	} {
		fmt.Fprintf(w, " %d |", n)
	}
	fmt.Fprintln(w)
}

// writeDifferences lists the functions that are not exact, with an example each.
func writeDifferences(w io.Writer, all [][]Body) {
	type difference struct {
		family, label string
		kind          kind
	}
	type sum struct {
		builds, missed, twice int
		example               *Body
	}
	sums := make(map[difference]*sum)
	for _, bodies := range all {
		for i := range bodies {
			b := &bodies[i]
			for k, t := range b.tallies() {
				if kind(k) == ofEntry || t.Exact() || b.NoCode || b.NotDescribed || b.Unknown > 0 {
					continue
				}
				d := difference{b.Family, b.Label, kind(k)}
				if sums[d] == nil {
					sums[d] = &sum{example: b}
				}
				s := sums[d]
				s.builds, s.missed, s.twice = s.builds+1, s.missed+t.Missed, s.twice+t.Twice
			}
		}
	}
	if len(sums) == 0 {
		return
	}
	fmt.Fprintln(w, "\n| not exact | at | builds | missed | twice | for example in | runs | hits |")
	fmt.Fprintln(w, "| --- | --- | ---: | ---: | ---: | --- | ---: | ---: |")
	keys := slices.SortedFunc(maps.Keys(sums), func(a, b difference) int {
		return cmp.Or(strings.Compare(a.family, b.family), strings.Compare(a.label, b.label), cmp.Compare(a.kind, b.kind))
	})
	for _, d := range keys {
		s := sums[d]
		at := map[kind]string{ofIn: "ways in", ofOut: "ways out"}[d.kind]
		fmt.Fprintf(w, "| %s %s | %s | %d | %d | %d | %s | %d | %d |\n", d.family, d.label, at, s.builds, s.missed, s.twice, s.example.Build, s.example.Runs, s.example.tallies()[d.kind].Hits)
	}
}
