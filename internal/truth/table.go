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
	var total Result
	n := 0
	for _, r := range results {
		if r != nil {
			n++
			total.Add(r)
		}
	}
	fmt.Fprintf(w, "%d builds, %d runs of functions, %d values compared, %d wrong, %d lost.\n\n", n, total.Runs, total.Compared, total.WrongValues(), total.LostValues())
	fmt.Fprintln(w, "| lost because | values |")
	fmt.Fprintln(w, "| --- | ---: |")
	reasons := slices.SortedFunc(maps.Keys(total.Lost), func(a, b string) int {
		return cmp.Or(cmp.Compare(total.Lost[b], total.Lost[a]), strings.Compare(a, b))
	})
	for _, why := range reasons {
		fmt.Fprintf(w, "| `%s` | %d |\n", why, total.Lost[why])
	}
	fmt.Fprintln(w, "\n| build | sites | runs | repeated | compared | wrong | lost | of these |")
	fmt.Fprintln(w, "| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |")
	for i, r := range results {
		if r == nil {
			fmt.Fprintf(w, "| %v | failed | | | | | | |\n", &builds[i])
			continue
		}
		var parts []string
		for _, why := range reasons {
			if r.Lost[why] > 0 {
				parts = append(parts, fmt.Sprintf("%d %s", r.Lost[why], why))
			}
		}
		fmt.Fprintf(w, "| %v | %d | %d | %d | %d | %d | %d | %s |\n", &builds[i], r.Sites, r.Runs, r.Repeated, r.Compared, r.WrongValues(), r.LostValues(), strings.Join(parts, ", "))
	}
}

// LostValues is how many values were not fetched.
func (r *Result) LostValues() int {
	n := 0
	for _, lost := range r.Lost {
		n += lost
	}
	return n
}
