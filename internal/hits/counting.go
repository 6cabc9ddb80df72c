package hits

import (
	"bufio"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/bpfprologue/bpfprologue/internal/radix"
	"github.com/bpfprologue/bpfprologue/internal/screen"
	"github.com/bpfprologue/bpfprologue/stacks"
	"github.com/bpfprologue/bpfprologue/tracer"
)

// Counting shows what is counted while it is.
type Counting struct {
	View      View // what is shown of the rows
	Out       io.Writer
	Format    string                    // text, json, folded or pprof
	Summaries []*tracer.Summary         // one for each image
	Interval  time.Duration             // in which they are printed; 0: on a terminal anew each second, elsewhere at the end
	Total     bool                      // at an interval all is printed, not what was counted in it
	Frames    map[string][]stacks.Frame // of stacks, by their text

	began, last time.Time // of the interval
	before      []tracer.Row
}

// lookEvery is how often Show looks for processes that it has not seen, and firstLook when it looks first: one
// may end soon that was there before.
const (
	firstLook = 5 * time.Millisecond
	lookEvery = 160 * time.Millisecond
)

// redrawEvery is how often a table on a terminal is drawn anew, if nobody says it.
const redrawEvery = time.Second

// Show prints what was counted, until the context ends, and returns the last rows.
func (c *Counting) Show(ctx context.Context) ([]tracer.Row, error) {
	live := c.Format == "text" && c.Out == screen.Stdout && screen.StdoutHeight() > 0
	every := c.Interval
	if every <= 0 && live {
		every = redrawEvery
	}
	var ticks <-chan time.Time
	if every > 0 {
		t := time.NewTicker(every)
		defer t.Stop()
		ticks = t.C
	}
	// Addresses in a process are known as long as it is there.
	var looks <-chan time.Time
	wait := firstLook
	if slices.Contains(c.View.Options.By, "stack") || slices.Contains(c.View.Options.By, "caller") {
		looks = time.After(wait)
	}
	c.began = time.Now()
	c.last = c.began
	for {
		select {
		case now := <-ticks:
			if err := c.tick(now, live); err != nil {
				return nil, err
			}
			continue
		case <-looks:
			if _, err := c.count(); err != nil {
				return nil, err
			}
			wait = min(2*wait, lookEvery)
			looks = time.After(wait)
			continue
		case <-ctx.Done():
		}
		break
	}
	for _, s := range c.Summaries {
		if err := s.Silence(true); err != nil {
			return nil, err
		}
	}
	rows, err := c.count()
	if err != nil {
		return nil, err
	}
	if live {
		screen.Redraw("")
	}
	v := c.View
	v.Seconds = time.Since(c.began).Seconds()
	return rows, c.print(c.Out, rows, &v)
}

// count returns the rows of all images, those with the most hits first.
func (c *Counting) count() (out []tracer.Row, err error) {
	for _, s := range c.Summaries {
		rows, err := s.Rows()
		if err != nil {
			return nil, err
		}
		out = append(out, rows...)
	}
	radix.Sort(out, func(r *tracer.Row) uint64 { return ^r.Hits })
	return out, nil
}

// Unreported returns what all images did not count.
func (c *Counting) Unreported() (sum tracer.Unreported, err error) {
	for _, s := range c.Summaries {
		u, one := s.Unreported()
		Add(&sum, &u)
		err = errors.Join(err, one)
	}
	return sum, err
}

// tick prints at the end of an interval: on a terminal in the place of what was there, as far as there is room.
func (c *Counting) tick(now time.Time, live bool) error {
	rows, err := c.count()
	if err != nil {
		return err
	}
	v := c.View
	v.Seconds, v.Interval, v.Before = now.Sub(c.began).Seconds(), now.Sub(c.last).Seconds(), c.before
	v.Since = c.Interval > 0 && !c.Total
	c.before, c.last = rows, now
	if !live {
		return c.print(c.Out, rows, &v)
	}
	height := screen.StdoutHeight()
	if room := max(height-4, 1); v.Top == 0 || v.Top > room {
		v.Top = room
	}
	var text strings.Builder
	if err := c.print(&text, rows, &v); err != nil {
		return err
	}
	lines := strings.SplitAfter(text.String(), "\n")
	screen.Redraw(strings.Join(lines[:min(len(lines), height-1)], ""))
	return nil
}

func (c *Counting) print(w io.Writer, rows []tracer.Row, v *View) (err error) {
	out := bufio.NewWriter(w)
	switch c.Format {
	case "json":
		err = PrintRowsJSON(out, rows, v)
	case "pprof":
		err = PrintPprof(out, rows, v.Options, c.began, time.Since(c.began), func(text string) []stacks.Frame { return c.Frames[text] })
	case "folded":
		PrintFolded(out, rows, v.Options)
	default:
		err = PrintRows(out, rows, v)
	}
	return screen.Flush(out, err)
}
