package hits

import (
	"bytes"
	"io"

	"github.com/bpfprologue/bpfprologue/internal/jsonline"
	"github.com/bpfprologue/bpfprologue/internal/terminal"
	"github.com/bpfprologue/bpfprologue/recording"
)

// event is an event of the Trace Event Format, which ui.perfetto.dev and chrome://tracing read:
// "Trace Event Format", in the Chromium project's documentation of its tracing. Times are in microseconds.
type event struct {
	Name  string         `json:"name"`
	Phase string         `json:"ph"` // "X": with a duration; "i": an instant; "M": the name of a process or thread
	Time  float64        `json:"ts"`
	Dur   *float64       `json:"dur,omitempty"`
	PID   int            `json:"pid"`
	TID   int            `json:"tid"`
	Scope string         `json:"s,omitempty"` // of an instant: "t", its thread
	Args  map[string]any `json:"args"`
}

// perfetto writes hits as a trace: spans have durations, other hits are instants.
type perfetto struct {
	w     io.Writer
	begun bool
	named map[int]bool // threads
}

// hit writes a hit, and before the first one of a thread its name.
func (p *perfetto) hit(h *recording.Hit) error {
	if p.named == nil {
		p.named = make(map[int]bool)
	}
	if !p.named[h.TID] {
		p.named[h.TID] = true
		if err := p.write(&event{Name: "thread_name", Phase: "M", PID: h.PID, TID: h.TID, Args: map[string]any{"name": h.Comm}}); err != nil {
			return err
		}
	}
	e := event{Name: h.Site.Qualified, Phase: "i", Scope: "t", Time: h.Time.Seconds() * 1e6, PID: h.PID, TID: h.TID, Args: map[string]any{"at": h.Site.Text}}
	add := func(s *recording.Site, values []recording.Value) {
		for i := range values {
			e.Args[s.Args[i].Name] = values[i].Text
		}
	}
	add(h.Site, h.Values)
	if h.End != nil {
		add(h.End, h.Results)
		us := h.Duration.Seconds() * 1e6
		e.Phase, e.Scope, e.Dur = "X", "", &us
	}
	if h.Outcome != "" {
		e.Args["outcome"] = h.Outcome
	}
	return p.write(&e)
}

// write writes an element of the array, without its newline.
func (p *perfetto) write(e *event) error {
	var b bytes.Buffer
	if err := jsonline.Write(&b, e); err != nil {
		return err
	}
	before := ",\n"
	if !p.begun {
		before, p.begun = "[\n", true
	}
	_, err := io.WriteString(p.w, before+string(bytes.TrimSuffix(b.Bytes(), []byte("\n"))))
	return err
}

// end ends the array. Where nothing has begun and nothing was done, there is none.
func (p *perfetto) end(done bool) {
	if !p.begun && !done {
		return
	}
	if !p.begun {
		terminal.Fprintf(p.w, "[")
	}
	terminal.Fprintf(p.w, "\n]\n")
}
