package prologue

import (
	"strings"
)

// noteKind is the kind of a comment.
type noteKind uint8

const (
	noNote     noteKind = iota
	noteWhere           // where an argument is
	noteUnit            // where a unit's arguments are
	noteReason          // why an argument is not fetched
	noteErrs            // which err bits are always set
	noteNoArgs          // that there are no arguments
	noteIf              // which conditions must hold
)

// comment returns the text of a note at a site.
func (f *fetcher) comment(n note, site string) string {
	var text string
	switch n.kind {
	case noteWhere:
		text = f.argText(n.of)
	case noteUnit:
		parts := make([]string, n.unit.n)
		for i, t := range n.unit.fetches[:n.unit.n] {
			parts[i] = f.argText(t)
		}
		text = strings.Join(parts, ", ")
	case noteReason:
		text = f.args[n.of.arg].Name + ": not fetched: " + n.of.reason.String()
	case noteErrs:
		var parts []string
		for i := range f.args {
			if f.missing&(1<<i) != 0 {
				parts = append(parts, f.args[i].Name+": "+f.reasons[i].String())
			}
		}
		for i := range f.args {
			if f.doubtful()&(1<<i) != 0 {
				parts = append(parts, f.args[i].Name+": doubtful")
			}
		}
		text = "err: " + strings.Join(parts, "; ")
	case noteNoArgs:
		text = "no arguments"
	case noteIf:
		parts := make([]string, len(f.o.If))
		for i, e := range f.o.If {
			parts[i] = e.Text(f.o.Arch)
		}
		text = "if " + strings.Join(parts, " and ")
	}
	if site != "" {
		text += " · " + site
	}
	return text
}

func (f *fetcher) argText(t *fetch) string {
	arg := &f.args[t.arg]
	if arg.Kind == KindComm {
		return arg.Name + ": the task's name"
	}
	mark := ""
	if f.o.Doubts && arg.Doubtful {
		mark = "~"
	}
	return arg.Name + ": " + mark + arg.Loc.Text(f.o.Arch)
}

// noteArg makes the next comment say where an argument is.
func (f *fetcher) noteArg(t *fetch) { f.pending = note{kind: noteWhere, of: t} }

// notePlace makes the next comment say where an argument of a record is, or why it is not
// fetched.
func (f *fetcher) notePlace(t *fetch) {
	if t.value == nil && !t.fetched() {
		f.noteReason(t)
	} else {
		f.noteArg(t)
	}
}

// noteUnit makes the next comment say where a unit's arguments are.
func (f *fetcher) noteUnit(u *unit) { f.pending = note{kind: noteUnit, unit: u} }

// noteReason makes the next comment say why an argument is not fetched.
func (f *fetcher) noteReason(t *fetch) { f.pending = note{kind: noteReason, of: t} }

// noteErr makes the next comment say which err bits are always set.
func (f *fetcher) noteErr() {
	switch {
	case f.missing|f.doubtful() != 0:
		f.pending = note{kind: noteErrs}
	case len(f.args) == 0:
		f.pending = note{kind: noteNoArgs}
	}
}
