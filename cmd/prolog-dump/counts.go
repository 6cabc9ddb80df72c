package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/bpfprologue/bpfprologue/internal/hits"
	"github.com/bpfprologue/bpfprologue/internal/screen"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/prologue"
	"github.com/bpfprologue/bpfprologue/stacks"
	"github.com/bpfprologue/bpfprologue/tracer"
)

// counts shows what is counted.
type counts struct {
	*settings
	w      io.Writer
	all    []*tracer.Summary // one for each image
	what   *statOptions
	cost   time.Duration
	frames map[string][]stacks.Frame // of stacks, by their text
	images bool                      // several have a definition

	began, last time.Time // of the interval
	before      []tracer.Row
}

// lookEvery is how often stat looks for processes that it has not seen, and firstLook when it looks first: one
// may end soon that was there before.
const (
	firstLook = 5 * time.Millisecond
	lookEvery = 160 * time.Millisecond
)

// redrawEvery is how often a table on a terminal is drawn anew, if nobody says it.
const redrawEvery = time.Second

// show prints what was counted, until the context ends, and returns the last rows.
func (c *counts) show(ctx context.Context) ([]tracer.Row, error) {
	live := c.format == "text" && c.w == screen.Stdout && screen.StdoutHeight() > 0
	every := c.what.interval
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
	if slices.Contains(c.what.By, "stack") || slices.Contains(c.what.By, "caller") {
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
			if _, err := c.rows(); err != nil {
				return nil, err
			}
			wait = min(2*wait, lookEvery)
			looks = time.After(wait)
			continue
		case <-ctx.Done():
		}
		break
	}
	for _, s := range c.all {
		if err := s.Silence(true); err != nil {
			return nil, err
		}
	}
	rows, err := c.rows()
	if err != nil {
		return nil, err
	}
	if live {
		screen.Redraw("")
	}
	return rows, c.print(c.w, rows, &hits.View{Seconds: time.Since(c.began).Seconds(), Top: c.what.top})
}

// rows returns the rows of all images, those with the most hits first.
func (c *counts) rows() (out []tracer.Row, err error) {
	for _, s := range c.all {
		rows, err := s.Rows()
		if err != nil {
			return nil, err
		}
		out = append(out, rows...)
	}
	slices.SortStableFunc(out, func(a, b tracer.Row) int { return cmp.Compare(b.Hits, a.Hits) })
	return out, nil
}

// unreported returns what all images did not count.
func (c *counts) unreported() (sum tracer.Unreported, err error) {
	for _, s := range c.all {
		u, one := s.Unreported()
		hits.Add(&sum, &u)
		err = errors.Join(err, one)
	}
	return sum, err
}

// tick prints at the end of an interval: on a terminal in the place of what was there, as far as there is room.
func (c *counts) tick(now time.Time, live bool) error {
	rows, err := c.rows()
	if err != nil {
		return err
	}
	v := &hits.View{
		Seconds: now.Sub(c.began).Seconds(), Top: c.what.top, Interval: now.Sub(c.last).Seconds(), Before: c.before,
		Since: c.what.interval > 0 && !c.what.total,
	}
	c.before, c.last = rows, now
	if !live {
		return c.print(c.w, rows, v)
	}
	height := screen.StdoutHeight()
	if room := max(height-4, 1); v.Top == 0 || v.Top > room {
		v.Top = room
	}
	var text strings.Builder
	if err := c.print(&text, rows, v); err != nil {
		return err
	}
	lines := strings.SplitAfter(text.String(), "\n")
	screen.Redraw(strings.Join(lines[:min(len(lines), height-1)], ""))
	return nil
}

func (c *counts) print(w io.Writer, rows []tracer.Row, v *hits.View) (err error) {
	v.Options, v.Sort, v.Cost, v.Images = &c.what.SummaryOptions, c.what.sort, c.cost, c.images
	out := bufio.NewWriter(w)
	switch c.format {
	case "json":
		err = hits.PrintRowsJSON(out, rows, v)
	case "pprof":
		err = hits.PrintPprof(out, rows, v.Options, c.began, time.Since(c.began), func(text string) []stacks.Frame { return c.frames[text] })
	case "folded":
		hits.PrintFolded(out, rows, v.Options)
	default:
		err = hits.PrintRows(out, rows, v)
	}
	return screen.Flush(out, err)
}

// unread says why values are missing, if it is known: another function returns them, or programs which may sleep would have read them.
func unread(plans []*plan.Plan, rows []tracer.Row, not *tracer.Unreported) string {
	n := int(not.Missing)
	for i := range rows {
		for _, k := range rows[i].Keys {
			if k.Text == "?" && rows[i].Outcome == "" {
				n += int(rows[i].Hits)
			}
		}
		for k := range rows[i].Totals {
			n += int(rows[i].Totals[k].Missing)
		}
	}
	fetched := slices.ContainsFunc(plans, func(p *plan.Plan) bool {
		return p.Target.Reads == prologue.ReadUser && slices.ContainsFunc(p.Sites, func(s plan.Site) bool {
			return slices.ContainsFunc(s.Args, func(a plan.Argument) bool { return a.Fetched() }) || len(s.If) > 0
		})
	})
	elsewhere := slices.ContainsFunc(plans, func(p *plan.Plan) bool {
		return slices.ContainsFunc(p.Sites, func(s plan.Site) bool {
			return slices.ContainsFunc(s.Args, func(a plan.Argument) bool { return ofOther(&a) })
		})
	})
	switch {
	case n == 0:
		return ""
	case elsewhere:
		return whyElsewhere
	case !fetched:
		return ""
	}
	return screen.Count(n, "value") + " (?) could not be read: " + whyUnread(plans[0].Target) + ", but not with --by stack"
}
