package truth

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/sites"
	"github.com/bpfprologue/bpfprologue/tracer"
)

// counting is the folder of the programs that count their runs.
const counting = "runs"

// Body is a function of a program that counts its runs, in one build.
type Body struct {
	Build   string
	Family  string // of the compiler: "gcc"
	Label   string
	Runs    int  // as the program counted
	Inlined bool // at least at one place
	NoCode  bool // the debug information has no place
	NoExits bool // its ways out were not traced
	// NotDescribed is set if the debug information has no record of the calls whose runs were missed, and others were not.
	NotDescribed bool
	records      map[callLine]bool // of calls that were inlined
	Unknown      int               // inlined places whose ways in are not known
	Why          string
	Refused      []string // sites that the kernel refused
	Sites        int      // inlined places: what the debug information names
	Ways         int      // ways into them
	// Entry is what was seen at the places that the debug information names, In at all ways in,
	// and Out at all ways out.
	Entry, In, Out Tally
}

// Tally compares hits with runs.
type Tally struct {
	Hits   int
	Missed int // runs without a hit
	Twice  int // hits of a run after its first
	Marked int // such hits at sites that say so: see dwarfloc.Way.Again
	// Shifted are hits that saw the count when it was already made, at ways in, or not yet, at
	// ways out, or that of a neighbour: the compiler moved it. There is one hit for each run.
	Shifted int
	Where   []string
	missed  []int // the runs, if their numbers are known
}

// Exact reports whether each run had one hit, not counting hits after its first that are marked.
func (t *Tally) Exact() bool { return t.Missed == 0 && t.Twice == 0 }

// nested are functions that run in runs of themselves, and how many runs are not: runs do not
// end in the order in which they began. In C and Rust the compiler may make a loop of a call of
// itself, and no run begins there any more.
var nested = map[string]int{"factorial": 12, "walk": 12, "recursive": 12, "grown": 12}

// role is what a plan is for.
type role struct {
	label string
	kind  kind
	tag   bool // it fetches the number of the run
}

type kind uint8

const (
	ofEntry kind = iota
	ofIn
	ofOut
)

// sighting is one hit: the number that the counter had, or -1, and whether the site is marked.
type sighting struct {
	number int64
	again  bool
	site   string
}

// CountRuns makes some builds, in a folder, of the programs that count their runs, traces every
// function at all its ways in and out, and compares.
func CountRuns(ctx context.Context, dir string, builds []Build, done func(i int, bodies []Body, err error)) error {
	w, err := newWorkshop(ctx, dir)
	if err != nil {
		return err
	}
	return each(ctx, builds, w.count, done)
}

// count makes one build, traces its program and compares.
func (w *workshop) count(ctx context.Context, b *Build, number int) ([]Body, error) {
	defs, err := definitionsIn(path.Join(counting, string(b.Language)))
	if err != nil {
		return nil, err
	}
	for i := range defs {
		defs[i].Label = strings.TrimRight(defs[i].Label, "*")
	}
	if err := sorted(b.Language, defs); err != nil {
		return nil, err
	}
	file, err := w.make(ctx, b, counting, fmt.Sprintf("runs%d", number))
	if err != nil {
		return nil, err
	}
	bodies, err := traceRuns(ctx, file, b, defs)
	if err == nil {
		err = w.notDescribed(ctx, b, defs, bodies)
	}
	if err != nil {
		err = fmt.Errorf("%v: %w", b, err)
	}
	return bodies, err
}

// traceRuns traces a program that counts its runs.
func traceRuns(ctx context.Context, file string, b *Build, defs []Definition) ([]Body, error) {
	img, err := dwarfloc.Open(file, nil)
	if err != nil {
		return nil, err
	}
	defer img.Close()
	running, err := instances.Find(img, instances.FindOptions{})
	if err != nil {
		return nil, err
	}
	bodies := make([]Body, len(defs))
	roles := make(map[*plan.Plan]role)
	var plans []*plan.Plan
	for i, d := range defs {
		body := &bodies[i]
		body.Build, body.Family, body.Label = b.String(), b.family(), d.Label
		for k := range 2 * (ofOut + 1) {
			r := role{d.Label, k / 2, k%2 == 1}
			p, err := planOf(ctx, img, running.Target(), b, &d, r)
			var notFound *sites.NotFoundError
			switch {
			case errors.As(err, &notFound):
				body.NoCode = true
				continue
			case err != nil && r.tag:
				continue // there is the plan without the number
			case err != nil:
				return nil, fmt.Errorf("%s: %w", d.Text, err)
			}
			if r.kind == ofOut && b.Language == CPP && slices.ContainsFunc(p.Sites, func(s plan.Site) bool { return !s.Inlined() }) {
				// An exception that passes a return probe ends the program: the unwinder finds the
				// probe's address in place of the caller's.
				body.NoExits = true
				continue
			}
			if !r.tag {
				body.describe(r.kind, p)
			}
			if p.NumProbes() > 0 {
				plans = append(plans, p)
				roles[p] = r
			}
		}
	}
	var t traced
	session, plans, err := t.open(ctx, running, plans)
	if err != nil {
		return nil, err
	}
	defer session.Close()
	for i, a := range session.Attachments {
		for _, refused := range a.Refused {
			r := roles[plans[i]]
			k := slices.IndexFunc(bodies, func(b Body) bool { return b.Label == r.label })
			bodies[k].Refused = append(bodies[k].Refused, fmt.Sprintf("%v: %v", plans[i].Sites[refused.Site].String(), refused.Err))
		}
	}
	seen := make(map[role][]sighting)
	counts, err := watch(ctx, session, file, func(h *tracer.Hit) {
		site := &h.Plan.Sites[h.Site]
		s := sighting{number: -1, again: site.Way.Again, site: site.String()}
		if len(h.Values) > 0 && !h.Values[0].Lost {
			s.number = int64(binary.LittleEndian.Uint64(h.Values[0].Data))
		}
		seen[roles[h.Plan]] = append(seen[roles[h.Plan]], s)
	})
	if err != nil {
		return nil, err
	}
	if not, err := session.Unreported(); not.Lost != 0 || err != nil {
		return nil, fmt.Errorf("%d hits did not fit into the buffer (%v)", not.Lost, err)
	}
	for i := range bodies {
		body := &bodies[i]
		n, ok := counts[body.Label]
		if !ok {
			return nil, fmt.Errorf("the program has no count of %s", body.Label)
		}
		body.Runs = n
		for k, t := range []*Tally{&body.Entry, &body.In, &body.Out} {
			if kind(k) == ofOut && body.NoExits {
				continue
			}
			t.judge(n, kind(k), body.Label, seen)
			if least := nested[body.Label]; least > 0 && b.Language != Go && t.Hits >= least {
				t.Missed = 0
			}
		}
	}
	return bodies, nil
}

// planOf makes the plan of a definition for a role.
func planOf(ctx context.Context, img *dwarfloc.Image, target plan.Target, b *Build, d *Definition, r role) (*plan.Plan, error) {
	text := d.Text
	if r.kind == ofOut {
		text += "%exit"
	}
	if r.tag {
		counter := "runs_" + d.Label
		if b.Language == Go {
			counter = "main.runs" + strings.ToUpper(d.Label[:1]) + d.Label[1:]
		}
		text += " number=@" + counter + ":u64"
	}
	def, err := probe.Parse(text)
	if err != nil {
		return nil, err
	}
	o := plan.Options{Target: target}
	if r.kind == ofEntry {
		o.EntryOnly = true
	}
	return plan.New(ctx, img, def, o)
}

// describe notes what a plan says of the body.
func (b *Body) describe(k kind, p *plan.Plan) {
	for i := range p.Sites {
		s := p.Sites[i].Site
		switch {
		case k == ofEntry && s.Kind == dwarfloc.SiteInline:
			b.Sites++
			b.Inlined = true
			b.noteRecord(p.Sites[i].Site)
		case k == ofIn && s.Kind == dwarfloc.SiteInline:
			b.Ways++
			if s.Way.Unknown != "" {
				b.Unknown++
				b.Why = s.Way.Unknown
			}
		}
	}
}

// judge compares what was seen of a function with the number of its runs.
func (t *Tally) judge(runs int, k kind, label string, seen map[role][]sighting) {
	plain, numbered := seen[role{label, k, false}], seen[role{label, k, true}]
	t.Hits = len(plain)
	marked := slices.ContainsFunc(plain, func(s sighting) bool { return s.again })
	t.Missed = max(0, runs-t.Hits)
	if more := max(0, t.Hits-runs); marked {
		t.Marked = more
	} else {
		t.Twice = more
	}
	if k == ofOut && nested[label] > 0 || len(numbered) == 0 || slices.ContainsFunc(numbered, func(s sighting) bool { return s.number < 0 }) {
		return
	}
	// A run is the number that its counter has before it, and has after it, less one.
	first := int64(0)
	if k == ofOut {
		first = 1
	}
	sure := slices.DeleteFunc(slices.Clone(numbered), func(s sighting) bool { return s.again })
	if len(sure) == runs {
		off := func(i int) int64 { return sure[i].number - first - int64(i) }
		shifted, most := 0, int64(1)
		if k == ofOut {
			most = 3
		}
		for i := range sure {
			if d := off(i); max(d, -d) > most {
				shifted = -runs
			} else if d != 0 {
				shifted++
			}
		}
		if shifted > 0 {
			t.Shifted = shifted
			return
		}
	}
	type count struct{ plain, marked int }
	counts := make([]count, runs)
	missed, twice, extra := 0, 0, 0
	where := make(map[string]int)
	for _, s := range numbered {
		n := s.number - first
		switch out := n < 0 || n >= int64(runs); {
		case out && s.again:
			extra++
		case out:
			twice++ // a hit outside of runs
			where["outside: "+s.site]++
		case s.again:
			counts[n].marked++
		default:
			if counts[n].plain++; counts[n].plain > 1 {
				where["twice: "+s.site]++
			}
		}
	}
	var numbers []string
	for i, c := range counts {
		if c.plain+c.marked == 0 {
			missed++
			t.missed = append(t.missed, i)
			numbers = append(numbers, strconv.Itoa(i))
			continue
		}
		twice += max(0, c.plain-1)
		extra += c.plain + c.marked - 1 - max(0, c.plain-1)
	}
	if missed > 0 {
		t.Where = append(t.Where, "missed: runs "+strings.Join(numbers[:min(len(numbers), 6)], " "))
	}
	for _, s := range mostFirst(where) {
		t.Where = append(t.Where, fmt.Sprintf("%s %d times", s, where[s]))
	}
	t.Missed, t.Twice = max(t.Missed, missed), max(t.Twice, twice)
	t.Marked = max(t.Marked, extra)
}

// watch runs a program and returns the counts that it prints.
func watch(ctx context.Context, session *tracer.Session, file string, hit func(*tracer.Hit)) (map[string]int, error) {
	ctx, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, file)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	done := make(chan error, 1)
	go func() {
		done <- cmd.Wait()
		stop()
	}()
	err := session.Run(ctx, func(h *tracer.Hit) error {
		hit(h)
		return nil
	})
	if err := errors.Join(err, <-done); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, errs.String())
	}
	counts := make(map[string]int)
	for lines := bufio.NewScanner(&out); lines.Scan(); {
		name, number, _ := strings.Cut(lines.Text(), " ")
		n, err := strconv.Atoi(number)
		if err != nil {
			return nil, fmt.Errorf("the program printed %q", lines.Text())
		}
		counts[name] = n
	}
	return counts, nil
}

// Differences says where hits at ways in or out are not runs.
func (b *Body) Differences() []string {
	var out []string
	for k, t := range b.tallies() {
		if kind(k) == ofEntry || t.Exact() {
			continue
		}
		at := []string{ofIn: "ways in", ofOut: "ways out"}[k]
		switch {
		case b.NoCode:
			out = append(out, fmt.Sprintf("%s %s: no record in the debug information, %d runs", b.Label, at, b.Runs))
			continue
		case b.NotDescribed:
			out = append(out, fmt.Sprintf("%s %s: no record of the calls of %d runs", b.Label, at, t.Missed))
			continue
		case b.Unknown > 0:
			out = append(out, fmt.Sprintf("%s %s: %d sites: %s", b.Label, at, b.Unknown, b.Why))
			continue
		}
		out = append(out, fmt.Sprintf("%s %s: %d runs, %d hits (%d at the entries), %d missed, %d twice, %d marked; %d sites, %d ways in; %s",
			b.Label, at, b.Runs, t.Hits, b.Entry.Hits, t.Missed, t.Twice, t.Marked, b.Sites, b.Ways, strings.Join(slices.Concat(t.Where, b.Refused), "; ")))
	}
	return out
}
