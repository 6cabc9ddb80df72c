// Package hits prints what was traced: hits as text, lines of JSON or a trace for ui.perfetto.dev, rows of what was counted with their
// histograms, the maps of programs, and how many hits were left out.
package hits

import (
	"encoding/json"
	"io"
	"strings"

	"github.com/bpfprologue/bpfprologue/internal/jsonline"
	"github.com/bpfprologue/bpfprologue/internal/screen"
	"github.com/bpfprologue/bpfprologue/internal/terminal"
	"github.com/bpfprologue/bpfprologue/recording"
)

// Form is how hits are printed.
type Form struct {
	Format string // "text", "json" or "perfetto"
	Look   screen.Look
	Clock  *Clock // nil: the machine's
	Line   *Line  // of text, or nil
}

// Printer returns a function that prints hits, and one that prints what is after the last one, if the work was done.
func Printer(w io.Writer, f *Form) (show func(*recording.Hit) error, end func(done bool)) {
	switch {
	case f.Format == "json":
		return func(h *recording.Hit) error { return printHitJSON(w, f.Clock, h) }, func(bool) {}
	case f.Format == "perfetto":
		p := perfetto{w: w}
		return p.hit, p.end
	case f.Line != nil:
		return func(h *recording.Hit) error { return f.Line.print(w, f.Clock, h) }, func(bool) {}
	}
	return func(h *recording.Hit) error { return printHit(w, f.Clock, f.Look, h) }, func(bool) {}
}

func printHit(w io.Writer, c *Clock, look screen.Look, h *recording.Hit) error {
	var b strings.Builder
	terminal.Fprintf(&b, "%s  %-15s %7d  %s", c.text(h.Time), h.Comm, h.TID, look.Styled(screen.RolePlace, h.Site.Text))
	for i := range h.Values {
		terminal.Fprintf(&b, "  %s=%s", look.Styled(screen.RoleName, h.Site.Args[i].Name), h.Values[i].Text)
	}
	if h.End != nil {
		for i := range h.Results {
			terminal.Fprintf(&b, "  %s=%s", look.Styled(screen.RoleName, h.End.Args[i].Name), h.Results[i].Text)
		}
		terminal.Fprintf(&b, "  %s", look.Styledf(screen.RoleFound, "%v", h.Duration))
	}
	if h.Outcome != "" {
		terminal.Fprintf(&b, "  %s", look.Styled(screen.RoleMissing, h.Outcome))
	}
	b.WriteByte('\n')
	for _, f := range h.Stack {
		terminal.Fprintf(&b, "        %v\n", f)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func printHitJSON(w io.Writer, c *Clock, h *recording.Hit) error {
	type value struct {
		Name  string `json:"name"`
		Type  string `json:"type"`
		Value any    `json:"value,omitempty"` // as plan.Value.Any returns it
		Lost  bool   `json:"lost,omitempty"`
		Doubt string `json:"doubt,omitempty"`
	}
	type frame struct {
		Addr     uint64 `json:"address"`
		Function string `json:"function,omitempty"`
		Offset   uint64 `json:"offset"`
		Inlined  bool   `json:"inlined,omitempty"`
		File     string `json:"file,omitempty"`
		Line     int    `json:"line,omitempty"`
		Object   string `json:"object,omitempty"`
	}
	values := func(s *recording.Site, list []recording.Value) []value {
		out := make([]value, len(list))
		for i, v := range list {
			out[i] = value{Name: s.Args[i].Name, Type: s.Args[i].Type, Value: v.Any, Lost: v.Lost}
			if v.Lost {
				continue
			}
			out[i].Doubt = s.Args[i].Doubt
			if v.Any == nil {
				out[i].Value = json.RawMessage("null") // NULL: without the field it would be one that was lost
			}
		}
		return out
	}
	site := h.Site
	out := struct {
		Time  float64 `json:"time"` // seconds
		Comm  string  `json:"comm"`
		PID   int     `json:"pid"`
		TID   int     `json:"tid"`
		Event string  `json:"event,omitempty"`
		Func  string  `json:"function"`
		Name  string  `json:"qualified,omitempty"`
		Place string  `json:"place"`
		Addr  uint64  `json:"address"`
		Again bool    `json:"refires,omitempty"` // the site's: perhaps no run began, or ended
		Args  []value `json:"args"`

		Results  []value  `json:"results,omitempty"`
		Duration *float64 `json:"duration,omitempty"` // seconds
		End      string   `json:"end,omitempty"`      // where the run ended
		Outcome  string   `json:"outcome,omitempty"`  // why it has no end

		Stack []frame `json:"stack,omitempty"` // the innermost first
	}{c.since(h.Time).Seconds(), h.Comm, h.PID, h.TID, site.Plan.Event, site.Function, jsonline.Qualified(site.Function, site.Qualified), site.Place, site.Addr, site.Again, values(site, h.Values), nil, nil, "", h.Outcome, nil}
	if h.End != nil {
		out.Results = values(h.End, h.Results)
		seconds := h.Duration.Seconds()
		out.Duration, out.End = &seconds, h.End.Place
	}
	for _, f := range h.Stack {
		out.Stack = append(out.Stack, frame(f))
	}
	return jsonline.Write(w, out)
}
