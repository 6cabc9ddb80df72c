package prologue

import (
	"strings"
)

// The comments of a prologue. They are made only when they are wanted: a text
// takes longer than the instructions it explains.

// say makes a text and the site the comment of the next instruction.
func (f *fetcher) say(text string) {
	if f.o.Site != "" {
		text += " · " + f.o.Site
	}
	f.comment = text
}

func (f *fetcher) argText(t *fetch) string {
	arg := &f.args[t.arg]
	if arg.Kind == Comm {
		return arg.Name + ": the task's name"
	}
	return arg.Name + ": " + arg.Loc.Text(f.o.Arch)
}

// noteArg says where an argument is.
func (f *fetcher) noteArg(t *fetch) {
	if f.noted {
		f.say(f.argText(t))
	}
}

// notePlace says where an argument of a record is, or why it is not fetched.
func (f *fetcher) notePlace(t *fetch) {
	if t.value == nil && !t.fetched() {
		f.noteReason(t)
	} else {
		f.noteArg(t)
	}
}

// noteUnit says where a unit's arguments are.
func (f *fetcher) noteUnit(u *unit) {
	if !f.noted {
		return
	}
	parts := make([]string, u.n)
	for i, t := range u.fetches[:u.n] {
		parts[i] = f.argText(t)
	}
	f.say(strings.Join(parts, ", "))
}

// noteReason says why an argument is not fetched.
func (f *fetcher) noteReason(t *fetch) {
	if f.noted {
		f.say(f.args[t.arg].Name + ": not fetched: " + t.reason.String())
	}
}

// noteErr says which err bits are set in any case.
func (f *fetcher) noteErr() {
	switch {
	case !f.noted:
	case f.missing != 0:
		parts := make([]string, len(f.unfetched))
		for i, u := range f.unfetched {
			parts[i] = f.args[u.Arg].Name + ": " + u.Reason.String()
		}
		f.say("err: " + strings.Join(parts, "; "))
	case len(f.args) == 0:
		f.say("no arguments")
	}
}
