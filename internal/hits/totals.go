package hits

import (
	"fmt"
	"io"
	"strings"

	"github.com/bpfprologue/bpfprologue/internal/screen"
	"github.com/bpfprologue/bpfprologue/internal/terminal"
	"github.com/bpfprologue/bpfprologue/recording"
	"github.com/bpfprologue/bpfprologue/tracer"
)

// PrintTotals says how many hits were printed, and how many not.
func PrintTotals(w io.Writer, hits int, t *recording.Totals) {
	terminal.Fprintf(w, "%s, %d lost%s%s%s\n", screen.Count(hits, "hit"), t.Lost, limitedText(t.Limited), missingText(t.Missing), unpairedText(&t.Unpaired))
}

// PrintUncounted says how many hits, or runs, a summary left out, which counts one of so many, and why; nothing if it left out none.
// Of runs those without an end are rows.
func PrintUncounted(w io.Writer, not *tracer.Unreported, runs bool, sample int) {
	text := limitedText(not.Limited) + missingText(not.Missing)
	if sample > 1 {
		text += fmt.Sprintf(", counted 1 of %d", sample)
	}
	if not.Overflow > 0 {
		text += fmt.Sprintf(", %d not counted for want of room (--max-keys)", not.Overflow)
	}
	if runs {
		text += condition(not.Without) + strings.ReplaceAll(unpairedText(&tracer.Unpaired{Ends: not.Ends, Full: not.Full}), ";", ",")
	} else if not.Open > 0 {
		text += fmt.Sprintf(", %s", unseenText(not.Open))
	}
	if text != "" {
		terminal.Fprintf(w, "%s\n", strings.TrimPrefix(text, ", "))
	}
}

// condition says for how many runs a condition did not hold.
func condition(n uint64) string {
	if n == 0 {
		return ""
	}
	return ", the condition did not hold for " + screen.Count(int(n), "run")
}

// missingText says how many hits were not seen since their condition could not be computed.
func missingText(n uint64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", %d without what the condition needs", n)
}

// unseenText says of how many runs, or calls, the end was not seen.
func unseenText(n uint64) string {
	return fmt.Sprintf("%d whose end was not seen (they go on, or a return probe does not see it: after longjmp, or nested deeper than 64)", n)
}

// unpairedText names what was not one run.
func unpairedText(u *tracer.Unpaired) string {
	text := ""
	for _, c := range []struct {
		n    uint64
		what string
	}{
		{u.Ends, "ended whose beginning was not seen"}, {u.Begins, "began again whose end was not seen"},
		{u.Full, "had no room"},
	} {
		if c.n > 0 {
			text += fmt.Sprintf("; %d %s", c.n, c.what)
		}
	}
	if u.Open > 0 {
		text += "; " + unseenText(u.Open)
	}
	return text
}

// limitedText says how many hits a rate held back.
func limitedText(n uint64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", %d more than --max-rate", n)
}
