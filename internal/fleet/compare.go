package fleet

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/bpfprologue/bpfprologue/types"
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
		for _, level := range []func(form) string{typeText, sizeText, placeText} {
			if x, y := a.describe(level), b.describe(level); x != y {
				out = append(out, fmt.Sprintf("%s is %s, on %s %s", b.Name, y, was.Kernel, x))
				break
			}
		}
		if x, y := a.describe(memberText), b.describe(memberText); x != y {
			out = append(out, fmt.Sprintf("%s: %s", b.Name, changedMembers(x, y)))
		}
	}
	return out
}

// What a form is for a program, from what matters most to what matters least.
func typeText(f form) string   { return f.typ }
func sizeText(f form) string   { return fmt.Sprintf("%s of %d bytes", f.typ, f.size) }
func placeText(f form) string  { return fmt.Sprintf("at %d of the record", f.offset) }
func memberText(f form) string { return f.members }

// describe says something of all forms of an argument.
func (a *Arg) describe(text func(form) string) string {
	var texts []string
	for f := range a.forms {
		texts = append(texts, text(f))
	}
	slices.Sort(texts)
	return strings.Join(slices.Compact(texts), " or ")
}

// membersOf returns a line for each member of a structure, with where it is and its type, those of unnamed structures and unions in it
// among them; "" for any other type.
func membersOf(t *types.Type) string {
	var b strings.Builder
	appendMembers(&b, t, 0, 0)
	return b.String()
}

// maxUnnamed is how deep unnamed structures are in each other.
const maxUnnamed = 8

func appendMembers(b *strings.Builder, t *types.Type, from uint64, depth int) {
	t, err := t.Complete()
	if err != nil || !t.IsRecord() || depth > maxUnnamed {
		return
	}
	all, err := t.Members()
	if err != nil {
		return
	}
	for _, m := range all {
		if m.Name == "" {
			appendMembers(b, m.Type, from+m.BitOffset, depth+1)
			continue
		}
		fmt.Fprintf(b, "%s\t%d %v\n", m.Name, from+m.BitOffset, m.Type)
	}
}

// maxNamed is how many members are named.
const maxNamed = 3

// changedMembers says which members of a structure are gone, new, or elsewhere or of another type.
func changedMembers(was, is string) string {
	read := func(lines string) (names []string, at map[string]string) {
		at = make(map[string]string)
		for line := range strings.Lines(lines) {
			name, rest, _ := strings.Cut(line, "\t")
			names, at[name] = append(names, name), rest
		}
		return names, at
	}
	before, old := read(was)
	after, now := read(is)
	var gone, fresh, moved []string
	for _, n := range before {
		if _, there := now[n]; !there {
			gone = append(gone, n)
		}
	}
	for _, n := range after {
		if at, there := old[n]; !there {
			fresh = append(fresh, n)
		} else if at != now[n] {
			moved = append(moved, n)
		}
	}
	var parts []string
	for _, x := range []struct {
		what  string
		names []string
	}{{"gone", gone}, {"new", fresh}, {"elsewhere or of another type", moved}} {
		text := x.what + ": " + strings.Join(x.names[:min(len(x.names), maxNamed)], ", ")
		if n := len(x.names) - maxNamed; n > 0 {
			text += fmt.Sprintf(" and %d more", n)
		}
		if len(x.names) > 0 {
			parts = append(parts, text)
		}
	}
	return "members " + strings.Join(parts, "; ")
}
