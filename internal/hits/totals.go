package hits

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/bpfprologue/bpfprologue/internal/references"
	"github.com/bpfprologue/bpfprologue/internal/screen"
	"github.com/bpfprologue/bpfprologue/internal/terminal"
	"github.com/bpfprologue/bpfprologue/recording"
	"github.com/bpfprologue/bpfprologue/tracer"
)

// PrintTotals says how many hits were printed, and how many not.
func PrintTotals(w io.Writer, hits int, t *recording.Totals) {
	terminal.Fprintf(w, "%s, %d lost%s%s%s\n", screen.Count(hits, "hit"), t.Lost, limitedText(t.Limited), missingText(t.Missing), unpairedText(&t.Unpaired))
}

// Add adds what another image's summary left out.
func Add(to, u *tracer.Unreported) {
	to.Limited += u.Limited
	to.Missing += u.Missing
	to.Overflow += u.Overflow
	to.Excluded += u.Excluded
	to.Without += u.Without
	to.Ends += u.Ends
	to.Begins += u.Begins
	to.Open += u.Open
	to.Full += u.Full
}

// Nothing is what is known of why there was no hit.
type Nothing struct {
	Not      *tracer.Unreported
	File     string        // the program or the library; "" for a kernel
	Unmapped bool          // no process has mapped it
	Command  string        // that has ended, or ""
	After    time.Duration // since it began
}

// PrintNothing says why there was no hit, if it is known.
func PrintNothing(w io.Writer, n *Nothing) {
	text := ""
	switch {
	case n.Not.Excluded >= references.MaxFalse:
		text = fmt.Sprintf("the condition was false at all hits (%d or more)", references.MaxFalse)
	case n.Not.Excluded > 0:
		text = "the condition was false at " + screen.Count(int(n.Not.Excluded), "hit")
	case n.Not.Without > 0:
		text = "the condition did not hold for " + screen.Count(int(n.Not.Without), "run")
	case n.Not.Missing+n.Not.Lost+n.Not.Limited > 0:
		return // that is said with the counts
	case n.Unmapped:
		text = "no process ran or loaded " + n.File + " meanwhile"
	case n.File == "":
		text = "nothing came to one of the sites"
	default:
		text = "no process that ran or loaded " + n.File + " came to one of the sites"
	}
	if n.Command != "" {
		text += fmt.Sprintf("; %s ended after %v", n.Command, TimeText(n.After))
	}
	terminal.Fprintf(w, "no hit: %s\n", text)
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
		if not.Without > 0 {
			text += ", the condition did not hold for " + screen.Count(int(not.Without), "run")
		}
		text += strings.ReplaceAll(unpairedText(&tracer.Unpaired{Ends: not.Ends, Full: not.Full}), ";", ",")
	} else if not.Open > 0 {
		text += fmt.Sprintf(", %s", unseenText(not.Open))
	}
	if text != "" {
		terminal.Fprintf(w, "%s\n", strings.TrimPrefix(text, ", "))
	}
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
