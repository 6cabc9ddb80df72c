package fleet

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/bpfprologue/bpfprologue/prologue"
)

// compare says what differs from the first kernel on which a definition works: what a program that was compiled for that one would read
// wrongly on another one.
func compare(cells []Cell) {
	first := slices.IndexFunc(cells, func(c Cell) bool { return c.Error == "" })
	if first < 0 {
		return
	}
	base := &cells[first]
	for i := range cells {
		if c := &cells[i]; i != first && c.Error == "" {
			c.Changed = changes(base, c)
		}
	}
}

func changes(was, is *Cell) (out []string) {
	if was.Record != is.Record {
		convention := map[bool]string{false: "registers", true: "a record"}
		return []string{fmt.Sprintf("the program gets its arguments in %s, on %s in %s", convention[is.Record], was.Kernel, convention[was.Record])}
	}
	if len(was.Args) != len(is.Args) {
		return []string{fmt.Sprintf("%d arguments, on %s %d", len(is.Args), was.Kernel, len(was.Args))}
	}
	for i := range is.Args {
		a, b := &was.Args[i], &is.Args[i]
		if len(a.forms) == 0 || len(b.forms) == 0 || maps.Equal(a.forms, b.forms) {
			continue
		}
		if x, y := a.describe(false), b.describe(false); x != y {
			out = append(out, fmt.Sprintf("%s is %s, on %s %s", b.Name, y, was.Kernel, x))
		} else if x, y := a.describe(true), b.describe(true); x != y {
			out = append(out, fmt.Sprintf("%s is %s, on %s %s", b.Name, y, was.Kernel, x))
		}
	}
	return out
}

// describe says what an argument is for a program: its types, and their sizes and places in the record if they matter.
func (a *Arg) describe(sizes bool) string {
	var texts []string
	for f := range a.forms {
		text := f.typ
		if sizes {
			text += fmt.Sprintf(" of %d bytes", f.size)
			if f.kind != prologue.KindScalar || f.offset != 0 {
				text += fmt.Sprintf(" at %d of the record", f.offset)
			}
		}
		texts = append(texts, text)
	}
	slices.SortFunc(texts, func(x, y string) int { return cmp.Compare(x, y) })
	return strings.Join(slices.Compact(texts), " or ")
}
