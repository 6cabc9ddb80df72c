package hits

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/bpfprologue/bpfprologue/internal/jsonline"
	"github.com/bpfprologue/bpfprologue/internal/screen"
	"github.com/bpfprologue/bpfprologue/internal/terminal"
	"github.com/bpfprologue/bpfprologue/tracer"
)

// View is how rows are shown.
type View struct {
	Options *tracer.SummaryOptions
	Seconds float64       // since counting began
	Top     int           // so many rows; 0: all
	Cost    time.Duration // what the probes add to the duration of a run, at most; 0 if it is not known
}

// PrintRows prints a table of what was counted, and the histograms after it.
func PrintRows(w io.Writer, rows []tracer.Row, v *View) error {
	o, seconds, top := v.Options, v.Seconds, v.Top
	hits := uint64(0)
	for i := range rows {
		hits += rows[i].Hits
	}
	noun := "hit"
	if len(o.Spans) > 0 {
		noun = "run"
	}
	terminal.Fprintf(w, "%s in %.1f s", screen.Count(int(hits), noun), seconds)
	all := len(rows)
	if top > 0 && top < all {
		rows = rows[:top]
		terminal.Fprintf(w, ", %d of %s", top, screen.Count(all, "row"))
	}
	terminal.Fprintf(w, "\n")
	several := false
	for i := range rows {
		several = several || rows[i].Definition != rows[0].Definition
	}
	head := []string{strings.ToUpper(noun) + "S"}
	for _, arg := range o.Totals {
		name := strings.ToUpper(arg) + " "
		head = append(head, name+"SUM", "MIN", "MEAN", "MAX")
	}
	missing, outcome := false, false
	for i := range rows {
		outcome = outcome || rows[i].Outcome != ""
		for k := range rows[i].Totals {
			missing = missing || rows[i].Totals[k].Missing > 0
		}
	}
	if missing {
		head = append(head, "WITHOUT")
	}
	numbers := len(head)
	for _, by := range o.By {
		if by == "stack" {
			continue // below the line
		}
		head = append(head, strings.ToUpper(by))
	}
	if outcome {
		head = append(head, "OUTCOME")
	}
	if several {
		head = append(head, "DEFINITION")
	}
	lines, below := [][]string{head}, [][]string{nil}
	for i := range rows {
		r := &rows[i]
		line := []string{strconv.FormatUint(r.Hits, 10)}
		without := uint64(0)
		for k := range r.Totals {
			t := &r.Totals[k]
			without = max(without, t.Missing)
			if t.Count == 0 {
				line = append(line, "-", "-", "-", "-")
				continue
			}
			mean := strconv.FormatFloat(t.Mean(), 'f', 1, 64)
			if o.Totals[k] == duration {
				mean = numberText(duration, uint64(t.Mean()))
			}
			line = append(line, numberText(o.Totals[k], t.Sum), numberText(o.Totals[k], t.Min), mean, numberText(o.Totals[k], t.Max))
		}
		if missing {
			line = append(line, strconv.FormatUint(without, 10))
		}
		var frames []string
		for k, key := range r.Keys {
			if o.By[k] != "stack" {
				line = append(line, key.Text)
				continue
			}
			frames = strings.Split(key.Text, ";")
			slices.Reverse(frames)
		}
		if outcome {
			line = append(line, cmp.Or(r.Outcome, "ended"))
		}
		if several {
			line = append(line, r.Definition.String())
		}
		lines, below = append(lines, line), append(below, frames)
	}
	if len(rows) > 0 && (len(o.By) > 0 || len(head) > 1) {
		if err := printTable(w, lines, below, numbers); err != nil {
			return err
		}
	}
	for i := range rows {
		for k := range rows[i].Histograms {
			if rows[i].Outcome != "" && len(rows[i].Histograms[k].Buckets) == 0 {
				continue // it has no duration
			}
			printHistogram(w, &rows[i], o.Histograms[k].Arg, &rows[i].Histograms[k])
		}
	}
	return nil
}

// printTable prints lines of cells in columns, of which the first so many are numbers, each with other
// lines below it.
func printTable(w io.Writer, lines, below [][]string, numbers int) error {
	var t screen.Table // of any width: a number is not shortened
	widths := make([]int, numbers)
	for _, l := range lines {
		for i, c := range l[:numbers] {
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	for _, l := range lines {
		cells := make([]any, len(l))
		for i, c := range l {
			if i < numbers {
				c = strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c)) + c
			}
			cells[i] = c
		}
		t.Row(cells...)
	}
	var b bytes.Buffer
	if err := t.Print(&b); err != nil {
		return err
	}
	at := 0
	for line := range strings.Lines(b.String()) {
		if _, err := io.WriteString(w, line); err != nil {
			return err
		}
		for _, text := range below[at] {
			terminal.Fprintf(w, "    %s\n", text)
		}
		at++
	}
	return nil
}

// PrintFolded prints a line for each row: its other keys and its stack, the outermost first, and its hits.
func PrintFolded(w io.Writer, rows []tracer.Row, o *tracer.SummaryOptions) {
	for i := range rows {
		var parts []string
		stack := ""
		for k, key := range rows[i].Keys {
			if o.By[k] == "stack" {
				stack = key.Text
				continue
			}
			parts = append(parts, strings.ReplaceAll(key.Text, ";", ":"))
		}
		terminal.Fprintf(w, "%s %d\n", strings.Join(append(parts, stack), ";"), rows[i].Hits)
	}
}

// printHistogram prints a bar for each bucket.
func printHistogram(w io.Writer, r *tracer.Row, arg string, h *tracer.Histogram) {
	var keys []string
	for _, k := range r.Keys {
		keys = append(keys, k.Text)
	}
	if r.Outcome != "" {
		keys = append(keys, r.Outcome)
	}
	title := arg
	if len(keys) > 0 {
		title += " of " + strings.Join(keys, ", ")
	}
	terminal.Fprintf(w, "\n%s\n", title)
	texts, counts := make([]string, len(h.Buckets)), make([]float64, len(h.Buckets))
	for i, b := range h.Buckets {
		texts[i], counts[i] = rangeText(arg, b), float64(b.Count)
	}
	screen.PrintBars(w, "", texts, counts)
	if h.Missing > 0 {
		terminal.Fprintf(w, "  and %d without a value\n", h.Missing)
	}
}

// duration is the argument that is shown as a time.
const duration = "$duration"

// TimeText prints a time with three digits.
func TimeText(d time.Duration) string {
	step := time.Duration(1)
	for d/step >= 1000 {
		step *= 10
	}
	return d.Round(step).String()
}

// numberText prints a number of an argument.
func numberText(arg string, n any) string {
	if ns, is := n.(uint64); is && arg == duration && ns <= math.MaxInt64 {
		return TimeText(time.Duration(ns))
	}
	return fmt.Sprint(n)
}

// rangeText prints the range of a bucket.
func rangeText(arg string, b tracer.Bucket) string {
	const lowest, highest, highestUnsigned = "-9223372036854775808", "9223372036854775807", "18446744073709551615"
	low, high := fmt.Sprint(b.Low), fmt.Sprint(b.High)
	switch {
	case low == high:
		return low
	case low == lowest:
		return "up to " + high
	case high == highest, high == highestUnsigned:
		return "from " + numberText(arg, b.Low)
	}
	return numberText(arg, b.Low) + " to " + numberText(arg, b.High)
}

// PrintRowsJSON prints an object for each row. docs/json.md documents the fields.
func PrintRowsJSON(w io.Writer, rows []tracer.Row, v *View) error {
	o := v.Options
	type key struct {
		By    string `json:"by"`
		Value any    `json:"value"`
	}
	type total struct {
		Name    string  `json:"name"`
		Count   uint64  `json:"count"`
		Missing uint64  `json:"missing"`
		Sum     any     `json:"sum"`
		Min     any     `json:"min"`
		Mean    float64 `json:"mean"`
		Max     any     `json:"max"`
	}
	type bucket struct {
		Low   any    `json:"low"`
		High  any    `json:"high"`
		Count uint64 `json:"count"`
	}
	type histogram struct {
		Name    string   `json:"name"`
		Missing uint64   `json:"missing"`
		Buckets []bucket `json:"buckets"`
	}
	if v.Top > 0 {
		rows = rows[:min(v.Top, len(rows))]
	}
	for i := range rows {
		r := &rows[i]
		out := struct {
			Seconds    float64     `json:"seconds"` // since counting began
			Definition string      `json:"definition"`
			Hits       uint64      `json:"hits"`
			Outcome    string      `json:"outcome,omitempty"` // of runs that have no duration
			Cost       int64       `json:"cost,omitempty"`    // nanoseconds
			Keys       []key       `json:"keys"`
			Totals     []total     `json:"totals,omitempty"`
			Histograms []histogram `json:"histograms,omitempty"`
		}{v.Seconds, r.Definition.String(), r.Hits, r.Outcome, int64(v.Cost), []key{}, nil, nil}
		for k, x := range r.Keys {
			if o.By[k] == "stack" && x.Value != nil {
				x.Value = strings.Split(x.Text, ";")
			}
			out.Keys = append(out.Keys, key{o.By[k], x.Value})
		}
		for k := range r.Totals {
			t := &r.Totals[k]
			x := total{Name: o.Totals[k], Count: t.Count, Missing: t.Missing, Sum: t.Sum, Mean: t.Mean()}
			if t.Count > 0 {
				x.Min, x.Max = t.Min, t.Max
			}
			out.Totals = append(out.Totals, x)
		}
		for k := range r.Histograms {
			h := histogram{Name: o.Histograms[k].Arg, Missing: r.Histograms[k].Missing, Buckets: []bucket{}}
			for _, b := range r.Histograms[k].Buckets {
				h.Buckets = append(h.Buckets, bucket{b.Low, b.High, b.Count})
			}
			out.Histograms = append(out.Histograms, h)
		}
		if err := jsonline.Write(w, out); err != nil {
			return err
		}
	}
	return nil
}
