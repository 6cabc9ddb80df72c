package hits

import (
	"io"
	"strconv"

	"github.com/bpfprologue/bpfprologue/internal/jsonline"
	"github.com/bpfprologue/bpfprologue/internal/mapview"
	"github.com/bpfprologue/bpfprologue/internal/screen"
	"github.com/bpfprologue/bpfprologue/internal/terminal"
)

// PrintMap prints a map: its entries, and the histograms in them.
func PrintMap(w io.Writer, m *mapview.Map) {
	switch {
	case m.Unread != "":
		terminal.Fprintf(w, "%s: %s\n", m.Name, m.Unread)
		return
	case m.Variables:
		terminal.Fprintf(w, "%s: %s\n", m.Name, screen.Count(len(m.Entries), "variable"))
		for _, e := range m.Entries {
			name, _ := e.Key.Scalar.(string)
			terminal.Fprintf(w, "  %s = %v\n", name, e.Value)
		}
		return
	}
	n := strconv.Itoa(len(m.Entries)) + " entries"
	if len(m.Entries) == 1 {
		n = "1 entry"
	}
	terminal.Fprintf(w, "%s: %s\n", m.Name, n)
	if m.Slots {
		var texts []string
		var counts []float64
		for _, e := range m.Entries {
			n, _ := e.Value.Number()
			texts, counts = append(texts, e.Key.String()), append(counts, n)
		}
		screen.PrintBars(w, "", texts, counts)
		return
	}
	for _, e := range m.Entries {
		name, slots, rest := e.Value.Histogram()
		terminal.Fprintf(w, "  %v: %v\n", e.Key, rest)
		first, last := len(slots), 0
		for i, s := range slots {
			if n, _ := s.Number(); n != 0 {
				first, last = min(first, i), i+1
			}
		}
		var texts []string
		var counts []float64
		for i := first; i < last; i++ {
			n, _ := slots[i].Number()
			texts, counts = append(texts, strconv.Itoa(i)), append(counts, n)
		}
		if len(texts) > 0 {
			terminal.Fprintf(w, "    %s\n", name)
			screen.PrintBars(w, "    ", texts, counts)
		}
	}
}

// PrintMapJSON prints a map as an object. docs/json.md documents the fields.
func PrintMapJSON(w io.Writer, m *mapview.Map) error {
	type entry struct {
		Key   *mapview.Value `json:"key"`
		Value *mapview.Value `json:"value"`
	}
	out := struct {
		Map       string  `json:"map"`
		Type      string  `json:"type"`
		Variables bool    `json:"variables,omitempty"`
		Entries   []entry `json:"entries"`
		Unread    string  `json:"unread,omitempty"`
	}{m.Name, m.Type.String(), m.Variables, []entry{}, m.Unread}
	for _, e := range m.Entries {
		out.Entries = append(out.Entries, entry(e))
	}
	return jsonline.Write(w, out)
}
