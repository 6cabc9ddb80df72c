package hits

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/bpfprologue/bpfprologue/internal/suggest"
	"github.com/bpfprologue/bpfprologue/internal/terminal"
	"github.com/bpfprologue/bpfprologue/recording"
)

// Clock says which times of hits are printed.
type Clock struct {
	name  string
	wall  time.Time     // when the machine's clock was 0, for wall
	first time.Duration // the first hit, for relative
	begun bool
}

// Clocks are the names of clocks: since the machine started, of the day, or since the first hit.
var Clocks = []string{"mono", "wall", "relative"}

// NewClock returns a clock. A wall needs to know when the machine's clock was 0.
func NewClock(name string, boot time.Time) *Clock { return &Clock{name: name, wall: boot} }

// since returns a time as it is printed in JSON: of the day since 1970.
func (c *Clock) since(d time.Duration) time.Duration {
	switch {
	case c == nil, c.name == "mono", c.name == "":
	case c.name == "wall":
		return time.Duration(c.wall.Add(d).UnixNano())
	default:
		if !c.begun {
			c.begun, c.first = true, d
		}
		return d - c.first
	}
	return d
}

// text returns a time as it is printed in a line, in 12 characters or more.
func (c *Clock) text(d time.Duration) string {
	if c != nil && c.name == "wall" {
		return c.wall.Add(d).Format("15:04:05.000000")
	}
	return fmt.Sprintf("%12.6f", c.since(d).Seconds())
}

// Line is a format of lines that the user has written: a template of Go, which knows arguments by their names, and what else there is of a hit.
type Line struct {
	text *form
}

// facts are what a line can have besides arguments.
var facts = map[string]func(c *Clock, h *recording.Hit) string{
	"time":     func(c *Clock, h *recording.Hit) string { return strings.TrimLeft(c.text(h.Time), " ") },
	"comm":     func(_ *Clock, h *recording.Hit) string { return h.Comm },
	"pid":      func(_ *Clock, h *recording.Hit) string { return fmt.Sprint(h.PID) },
	"tid":      func(_ *Clock, h *recording.Hit) string { return fmt.Sprint(h.TID) },
	"site":     func(_ *Clock, h *recording.Hit) string { return h.Site.Text },
	"function": func(_ *Clock, h *recording.Hit) string { return h.Site.Qualified },
	"event":    func(_ *Clock, h *recording.Hit) string { return h.Site.Plan.Event },
	"duration": func(_ *Clock, h *recording.Hit) string {
		if h.End == nil {
			return ""
		}
		return h.Duration.String()
	},
	"outcome": func(_ *Clock, h *recording.Hit) string { return h.Outcome },
	"stack": func(_ *Clock, h *recording.Hit) string {
		var names []string
		for _, f := range h.Stack {
			names = append(names, f.Name())
		}
		return strings.Join(names, ";")
	},
}

// NewLine parses a format: {{.Time}} {{.comm}} {{.n}}.
func NewLine(format string) (*Line, error) {
	f, err := newForm(format)
	if err != nil {
		return nil, fmt.Errorf("a format of lines %q: %w", format, err)
	}
	return &Line{f}, nil
}

// Check returns the error for a name that no hit has: args are the names of arguments.
func (l *Line) Check(args []string) error {
	known := make(map[string]bool)
	for name := range facts {
		known[name], known[capital(name)] = true, true
	}
	for _, a := range args {
		known[a] = true
	}
	for _, name := range l.text.names {
		if known[name] {
			continue
		}
		near := suggest.Nearest(name, maps.Keys(known), 3)
		hint := "nearest: " + strings.Join(near, ", ")
		if len(near) == 0 {
			hint = "there are " + strings.Join(slices.Sorted(maps.Keys(known)), ", ")
		}
		return fmt.Errorf("a format of lines: no hit has {{.%s}}; %s", name, hint)
	}
	return nil
}

func capital(name string) string { return strings.ToUpper(name[:1]) + name[1:] }

// print prints a hit.
func (l *Line) print(w io.Writer, c *Clock, h *recording.Hit) error {
	data := make(map[string]string)
	for name, of := range facts {
		text := terminal.Text(of(c, h))
		data[name], data[capital(name)] = text, text
	}
	add := func(s *recording.Site, values []recording.Value) {
		for i := range values {
			data[s.Args[i].Name] = terminal.Text(values[i].Text)
		}
	}
	if h.End != nil {
		add(h.End, h.Results)
	}
	add(h.Site, h.Values)
	var b strings.Builder
	l.text.write(&b, data)
	_, err := io.WriteString(w, b.String()+"\n")
	return err
}
