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

// PrintRows prints a table of what was counted, and the histograms after it.
func PrintRows(w io.Writer, all []tracer.Row, v *View) error {
	o := v.Options
	rows, count := v.rows(all)
	noun := "hit"
	if len(o.Spans) > 0 {
		noun = "run"
	}
	hits := uint64(0)
	every := View{Options: o, Interval: v.Interval, Before: v.Before, Since: v.Since}
	list, _ := every.rows(all)
	for i := range list {
		if !v.Since || !open(list[i].Row) {
			hits += list[i].Hits
		}
	}
	seconds := v.Seconds
	if v.Since {
		seconds = v.Interval
	}
	terminal.Fprintf(w, "%s in %.1f s", screen.Count(int(hits), noun), seconds)
	if v.Since {
		terminal.Fprintf(w, ", until %.1f s", v.Seconds)
	}
	if len(rows) < count {
		terminal.Fprintf(w, ", %d of %s", len(rows), screen.Count(count, "row"))
	}
	terminal.Fprintf(w, "\n")
	if err := printCells(w, rows, v, strings.ToUpper(noun)+"S"); err != nil {
		return err
	}
	for i := range rows {
		for k := range rows[i].Histograms {
			if rows[i].Outcome != "" && len(rows[i].Histograms[k].Buckets) == 0 {
				continue // it has no duration
			}
			printHistogram(w, rows[i].Row, v, k)
		}
	}
	return nil
}

// printCells prints the table. Without keys and sums its one number is said already.
func printCells(w io.Writer, rows []shown, v *View, noun string) error {
	o := v.Options
	several, missing, outcome := false, false, false
	for i := range rows {
		several = several || rows[i].Definition != rows[0].Definition
		outcome = outcome || rows[i].Outcome != ""
		for k := range rows[i].Totals {
			missing = missing || rows[i].Totals[k].Missing > 0
		}
	}
	head := []string{noun}
	if v.Interval > 0 {
		head = append(head, "RATE")
	}
	for _, arg := range o.Totals {
		head = append(head, strings.ToUpper(arg)+" SUM")
		if v.Since {
			head = append(head, "MEAN")
		} else {
			head = append(head, "MIN", "MEAN", "MAX")
		}
	}
	if missing {
		head = append(head, "WITHOUT")
	}
	numbers := len(head)
	for _, by := range o.By {
		if by != "stack" { // which is below the line
			head = append(head, strings.ToUpper(by))
		}
	}
	if outcome {
		head = append(head, "OUTCOME")
	}
	if several {
		head = append(head, "DEFINITION")
	}
	if v.Images {
		head = append(head, "IMAGE")
	}
	if len(rows) == 0 || len(o.By) == 0 && len(head) == 1 {
		return nil
	}
	lines, below := [][]string{head}, [][]string{nil}
	for i := range rows {
		r := &rows[i]
		line := []string{strconv.FormatUint(r.Hits, 10)}
		if v.Interval > 0 {
			rate := "-"
			if !open(r.Row) {
				rate = rateText(r.rate)
			}
			line = append(line, rate)
		}
		without := uint64(0)
		for k := range r.Totals {
			without = max(without, r.Totals[k].Missing)
			line = append(line, totalCells(&r.Totals[k], o.Totals[k], v.Since)...)
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
		if v.Images {
			line = append(line, r.Plan.Image.Path())
		}
		lines, below = append(lines, line), append(below, frames)
	}
	return printTable(w, lines, below, numbers)
}

// totalCells returns the cells of an argument that is added up.
func totalCells(t *tracer.Total, arg string, since bool) []string {
	sum, mean := numberText(arg, t.Sum), strconv.FormatFloat(t.Mean(), 'f', 1, 64)
	if arg == duration {
		mean = numberText(arg, uint64(t.Mean()))
	}
	switch {
	case t.Count == 0 && since:
		return []string{"-", "-"}
	case t.Count == 0:
		return []string{"-", "-", "-", "-"}
	case since:
		return []string{sum, mean}
	}
	return []string{sum, numberText(arg, t.Min), mean, numberText(arg, t.Max)}
}

// rateText prints how many there were in a second.
func rateText(rate float64) string {
	if rate >= 100 {
		return strconv.FormatFloat(rate, 'f', 0, 64) + "/s"
	}
	return strconv.FormatFloat(rate, 'g', 3, 64) + "/s"
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
func printHistogram(w io.Writer, r *tracer.Row, v *View, index int) {
	arg, h := v.Options.Histograms[index].Arg, &r.Histograms[index]
	var keys []string
	for _, k := range r.Keys {
		keys = append(keys, k.Text)
	}
	if r.Outcome != "" {
		keys = append(keys, r.Outcome)
	}
	if v.Images {
		keys = append(keys, r.Plan.Image.Path())
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
	switch ns := n.(type) {
	case uint64:
		if arg == duration && ns <= math.MaxInt64 {
			return TimeText(time.Duration(ns))
		}
	case int64: // of a histogram with steps
		if arg == duration {
			return TimeText(time.Duration(ns))
		}
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
func PrintRowsJSON(w io.Writer, all []tracer.Row, v *View) error {
	o := v.Options
	rows, _ := v.rows(all)
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
	for i := range rows {
		r := &rows[i]
		var rate *float64
		if v.Interval > 0 && !open(r.Row) {
			rate = &r.rate
		}
		out := struct {
			Seconds    float64     `json:"seconds"`            // since counting began
			Interval   float64     `json:"interval,omitempty"` // seconds, of which the rate is
			Rate       *float64    `json:"rate,omitempty"`     // hits in a second
			Definition string      `json:"definition"`
			Image      string      `json:"image,omitempty"` // if several have the definition
			Hits       uint64      `json:"hits"`
			Outcome    string      `json:"outcome,omitempty"` // of runs that have no duration
			Cost       int64       `json:"cost,omitempty"`    // nanoseconds
			Keys       []key       `json:"keys"`
			Totals     []total     `json:"totals,omitempty"`
			Histograms []histogram `json:"histograms,omitempty"`
		}{v.Seconds, v.Interval, rate, r.Definition.String(), "", r.Hits, r.Outcome, int64(v.Cost), []key{}, nil, nil}
		if v.Images {
			out.Image = r.Plan.Image.Path()
		}
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
