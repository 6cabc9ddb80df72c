package recording

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"

	"github.com/bpfprologue/bpfprologue/internal/page"
	"github.com/bpfprologue/bpfprologue/internal/terminal"
)

// What a page has at most. All hits are counted; the table, and the marks in the timeline, are of some.
const (
	htmlHits       = 4000
	htmlTasks      = 200
	htmlLanes      = 40
	htmlHistograms = 100
	htmlFrames     = 64
)

var (
	//go:embed html/recording.html
	htmlBody string
	//go:embed html/recording.js
	htmlScript string
)

// Times are in nanoseconds since the first hit.
type (
	htmlRecording struct {
		Title       string          `json:"title"`
		Definitions []string        `json:"definitions"`
		Count       uint64          `json:"count"`
		Totals      []htmlTotal     `json:"totals"`
		Note        string          `json:"note"` // why it ends early
		Start       string          `json:"start"`
		Span        uint64          `json:"span"`
		Sites       []htmlSite      `json:"sites"`
		Tasks       []htmlTask      `json:"tasks"`
		AllTasks    int             `json:"allTasks"`
		Histograms  []htmlHistogram `json:"histograms"`
		AllHist     int             `json:"allHistograms"`
		Bin         uint64          `json:"bin"` // width
		Threads     htmlLaneList    `json:"threads"`
		Functions   htmlLaneList    `json:"functions"`
		Hits        []htmlHit       `json:"hits"`
	}
	htmlTotal struct {
		What  string `json:"what"`
		Count uint64 `json:"n,string"`
	}
	htmlSite struct {
		Text       string `json:"text"`
		Definition string `json:"definition"`
		Count      uint64 `json:"n"`
	}
	htmlTask struct {
		Text  string `json:"text"`
		Count uint64 `json:"n"`
	}
	htmlHistogram struct {
		Name       string       `json:"name"`
		Definition string       `json:"definition"`
		Buckets    []htmlBucket `json:"buckets"`
		Lost       uint64       `json:"lost"`
		Words      bool         `json:"words"` // not in an order of their own
	}
	htmlBucket struct {
		Text  string `json:"text"`
		Count uint64 `json:"n"`
	}
	htmlLaneList struct {
		All   int        `json:"all"`
		Lanes []htmlLane `json:"lanes"`
	}
	htmlLane struct {
		Name  string     `json:"name"`
		Count uint64     `json:"n"`
		Bins  [][2]int64 `json:"bins"` // number and hits
	}
	htmlHit struct {
		Time     uint64   `json:"time"`
		Clock    string   `json:"clock"`
		Task     int      `json:"task"`
		Who      string   `json:"who"`
		Site     int      `json:"site"`
		Function string   `json:"function"`
		Values   string   `json:"values"`
		Took     int64    `json:"took"` // or -1
		Duration string   `json:"duration"`
		End      string   `json:"end"`
		Stack    []string `json:"stack"`
		In       [][2]int `json:"in"` // histogram and bucket
	}
)

// HTML reads a recording to its end, and writes it as a page for a browser, which needs nothing else: what
// was counted, hits over time by thread and by function, histograms, and a table to filter of at most some
// thousands of hits, chosen at random where there are more. If the recording is damaged or was not finished,
// the page has what is before that, and says so, and Next's error is returned.
func HTML(w io.Writer, r *Reader) error {
	c := newCounted()
	readErr := c.read(r)
	out := c.page()
	t := r.Totals()
	out.Totals = []htmlTotal{{"hits", c.count}}
	if readErr != nil {
		out.Note = terminal.Text(readErr.Error())
	} else {
		out.Totals = append(out.Totals, htmlTotal{"lost", t.Lost}, htmlTotal{"limited", t.Limited}, htmlTotal{"without what the condition needs", t.Missing},
			htmlTotal{"ended whose beginning was not seen", t.Unpaired.Ends}, htmlTotal{"began again whose end was not seen", t.Unpaired.Begins},
			htmlTotal{"whose end was not seen", t.Unpaired.Open}, htmlTotal{"had no room", t.Unpaired.Full})
		out.Totals = slices.DeleteFunc(out.Totals, func(t htmlTotal) bool { return t.Count == 0 && strings.Contains(t.What, " ") })
	}
	return errors.Join(page.Write(w, &page.Page{Title: out.Title, Body: htmlBody, Script: htmlScript, Data: out}), readErr)
}

// page returns what was counted.
func (c *counted) page() *htmlRecording {
	out := &htmlRecording{
		Definitions: []string{}, Count: c.count, Sites: []htmlSite{}, Tasks: []htmlTask{}, AllTasks: len(c.tasks), Histograms: []htmlHistogram{},
		Start: clock(c.first), Span: uint64(c.last - c.first), Bin: 1 << c.shift, Hits: []htmlHit{},
	}
	sites := make(map[*Site]int)
	for _, s := range byCount(c.sites, func(n uint64) uint64 { return n }, func(s *Site) string { return s.Text }) {
		sites[s] = len(out.Sites)
		out.Sites = append(out.Sites, htmlSite{terminal.Text(s.Text), terminal.Text(s.Plan.Definition), c.sites[s]})
		if d := terminal.Text(s.Plan.Definition); !slices.Contains(out.Definitions, d) {
			out.Definitions = append(out.Definitions, d)
		}
	}
	slices.Sort(out.Definitions)
	out.Title = strings.Join(out.Definitions, "; ")
	tasks := make(map[task]int)
	for _, t := range byCount(c.tasks, laneCount, task.text) {
		if len(out.Tasks) < htmlTasks {
			tasks[t] = len(out.Tasks)
			out.Tasks = append(out.Tasks, htmlTask{t.text(), c.tasks[t].count})
		}
	}
	out.Threads = lanes(c, c.tasks, task.text)
	out.Functions = lanes(c, c.functions, terminal.Text)
	places := c.histogramsOf(out)
	sort.Slice(c.kept, func(i, j int) bool { return c.kept[i].number < c.kept[j].number })
	for i := range c.kept {
		h := c.kept[i].hit
		t := taskOf(h)
		row := htmlHit{
			Time: uint64(h.Time - c.first), Clock: clock(h.Time), Task: -1, Who: t.text(), Site: sites[h.Site], Function: terminal.Text(h.Site.Qualified),
			Took: -1, Values: valuesText(h.Site, h.Values), Stack: []string{}, In: [][2]int{},
		}
		if n, ok := tasks[t]; ok {
			row.Task = n
		}
		if h.End != nil {
			row.Took, row.Duration, row.End = int64(h.Duration), h.Duration.String(), terminal.Text(h.End.Text)
			row.Values = strings.TrimSpace(row.Values + "  " + valuesText(h.End, h.Results))
		}
		for k := range h.Stack[:min(len(h.Stack), htmlFrames)] {
			row.Stack = append(row.Stack, terminal.Text(h.Stack[k].String()))
		}
		eachValue(h, func(k histogramKey, v *Value) {
			if at, ok := places[k]; ok {
				if b, ok := binOf(v); ok {
					row.In = append(row.In, [2]int{at.index, at.of(b)})
				}
			}
		})
		out.Hits = append(out.Hits, row)
	}
	return out
}

func valuesText(s *Site, list []Value) string {
	var b strings.Builder
	for i := range list {
		fmt.Fprintf(&b, "  %s=%s", terminal.Text(s.Args[i].Name), terminal.Text(list[i].Text))
	}
	return strings.TrimSpace(b.String())
}
