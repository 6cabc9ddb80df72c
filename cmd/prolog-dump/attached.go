package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/bpfprologue/bpfprologue/attachable"
	"github.com/bpfprologue/bpfprologue/instances"
)

// tellAttached says where a plan is attached, and why not at the other sites: a kernel's
// own answer is the same for most causes, so the image is asked.
func (x *subject) tellAttached(w io.Writer, p *instances.Plan, a *instances.Attachment) error {
	fmt.Fprintf(w, "%v: attached at %d of %s\n", p.Definition, len(a.Attached), count(len(p.Sites), "site"))
	printFetched(w, p, true)
	if n := len(p.Sites) - p.Served(); n > 0 {
		fmt.Fprintf(w, "  not at %s: an argument is not there, and --missing says skip\n", count(n, "site"))
	}
	if len(a.Refused) == 0 {
		return nil
	}
	why := func(r instances.Refusal) string { return r.Err.Error() + instances.Hint(r.Err) }
	if x.kernel {
		table, err := attachable.New(x.img)
		if err != nil {
			return err
		}
		why = func(r instances.Refusal) string {
			if c := table.At(p.Sites[r.Site].Addr); c != attachable.None {
				return c.String() + ": " + c.Text()
			}
			return r.Err.Error() + instances.Hint(r.Err)
		}
	}
	causes := make(map[string][]int)
	for _, r := range a.Refused {
		text := why(r)
		causes[text] = append(causes[text], r.Site)
	}
	for _, text := range slices.SortedFunc(maps.Keys(causes), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(causes[b]), len(causes[a])), cmp.Compare(a, b))
	}) {
		sites := causes[text]
		fmt.Fprintf(w, "  not at %s: %s\n", count(len(sites), "site"), text)
		for _, i := range sites[:min(len(sites), x.list)] {
			fmt.Fprintf(w, "    %v\n", &p.Sites[i])
		}
		if more := len(sites) - x.list; more > 0 && x.list > 0 {
			fmt.Fprintf(w, "    and %d more (--attachable lists all)\n", more)
		}
	}
	return nil
}
