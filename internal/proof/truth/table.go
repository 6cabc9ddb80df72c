package truth

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// WriteTable writes results as Markdown: a row for each build, and the sums. A result may be
// nil, for a build that failed.
func WriteTable(w io.Writer, builds []Build, results []*Result) {
	total := Sum(results)
	made := 0
	for _, r := range results {
		if r != nil {
			made++
		}
	}
	fmt.Fprintf(w, "%d builds, %d runs of functions, %d values compared, %d wrong, %d lost.\n\n", made, total.Runs, total.Compared, total.Count.Wrong, total.LostValues())
	reasons := mostFirst(total.byReason())
	writeLosses(w, total, reasons)
	writeWrong(w, total)
	writePlaces(w, total)
	fmt.Fprintln(w, "\n| build | sites | runs | repeated | compared | wrong | lost | of these |")
	fmt.Fprintln(w, "| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |")
	for i, r := range results {
		if r == nil {
			fmt.Fprintf(w, "| %v | failed | | | | | | |\n", &builds[i])
			continue
		}
		var parts []string
		lost := r.byReason()
		for _, why := range reasons {
			if lost[why] > 0 {
				parts = append(parts, fmt.Sprintf("%d %s", lost[why], why))
			}
		}
		fmt.Fprintf(w, "| %v | %d | %d | %d | %d | %d | %d | %s |\n", &builds[i], r.Sites, r.Runs, r.Repeated, r.Compared, r.Count.Wrong, r.LostValues(), strings.Join(parts, ", "))
	}
}

// writeLosses writes how many values were lost for each reason, and of which functions most.
func writeLosses(w io.Writer, total *Result, reasons []string) {
	const most = 6
	fmt.Fprintln(w, "| lost because | values | most of them in |")
	fmt.Fprintln(w, "| --- | ---: | --- |")
	sums := total.byReason()
	for _, why := range reasons {
		labels := make(map[string]int)
		for l, n := range total.Lost {
			if l.Reason == why {
				labels[l.Label] = n
			}
		}
		var parts []string
		for _, label := range mostFirst(labels) {
			if len(parts) == most {
				break
			}
			parts = append(parts, fmt.Sprintf("%s %d", label, labels[label]))
		}
		fmt.Fprintf(w, "| `%s` | %d | %s |\n", why, sums[why], strings.Join(parts, ", "))
	}
}

// writeWrong lists what is wrong: for each argument an example.
func writeWrong(w io.Writer, total *Result) {
	if len(total.Wrong) == 0 {
		return
	}
	type argument struct{ label, arg, why string }
	values, sites := make(map[argument]int), make(map[argument]int)
	examples := make(map[argument]*Wrong)
	for i := range total.Wrong {
		x := &total.Wrong[i]
		a := argument{x.Label, x.Arg, x.Known()}
		values[a] += x.Times
		sites[a]++
		if examples[a] == nil {
			examples[a] = x
		}
	}
	fmt.Fprintln(w, "\n| wrong | values | sites | for example in | where it was said to be | why |")
	fmt.Fprintln(w, "| --- | ---: | ---: | --- | --- | --- |")
	arguments := slices.SortedFunc(maps.Keys(values), func(a, b argument) int {
		return cmp.Or(cmp.Compare(values[b], values[a]), strings.Compare(a.label, b.label), strings.Compare(a.arg, b.arg))
	})
	for _, a := range arguments {
		x := examples[a]
		fmt.Fprintf(w, "| %s %s | %d | %d | %s | `%s` (`%v`) | %s |\n", a.label, a.arg, values[a], sites[a], x.Build, x.Location, x.Rule, a.why)
	}
}

// mostFirst returns the keys of counts, those with the largest first.
func mostFirst(counts map[string]int) []string {
	return slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a, b))
	})
}

// writePlaces writes how many values were right and wrong by where they were.
func writePlaces(w io.Writer, total *Result) {
	fmt.Fprintln(w, "\n| compiler | rule | place | compared | wrong |")
	fmt.Fprintln(w, "| --- | --- | --- | ---: | ---: |")
	places := slices.SortedFunc(maps.Keys(total.Places), func(a, b Place) int {
		return cmp.Or(strings.Compare(a.Compiler, b.Compiler), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Kind, b.Kind))
	})
	for _, p := range places {
		n := total.Places[p]
		fmt.Fprintf(w, "| %s | `%v` | %v | %d | %d |\n", p.Compiler, p.Rule, p.Kind, n.Compared, n.Wrong)
	}
}
