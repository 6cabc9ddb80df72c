// Package coverage measures which parameters a probe can fetch in an image: for every site of
// every function, which parameters have a location, of what kind and by which rule, and why
// the others have none; and how many prologues and instructions fetch them all.
//
//	report, err := coverage.Measure(ctx, img)
//	report.Inline.Sites, report.Inline.Located, report.Emitted.Distinct
//
// Diff compares two reports, to see the effect of another compiler or of other options.
package coverage

import (
	"context"
	"runtime"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/claim"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/runs"
	"github.com/bpfprologue/bpfprologue/internal/share"
	"github.com/bpfprologue/bpfprologue/loc"
)

// Counts are the totals for one kind of sites. Parameters are counted as the debug
// information lists them, as other readers count: a parameter that it describes twice at a
// site counts twice. GCC 12 does so for 0.4 % of a kernel's parameters of inlined functions.
type Counts struct {
	Sites      int            `json:"sites"`
	NoParams   int            `json:"sites_without_parameters"`
	All        int            `json:"sites_all_located"`  // every parameter has its whole value
	Some       int            `json:"sites_some_located"` // at least one has, and one has not
	None       int            `json:"sites_none_located"`
	Described  int            `json:"sites_all_described"` // every parameter is described at the site, whole or not
	Parameters int            `json:"parameters"`
	Repeated   int            `json:"parameters_repeated"` // of them, second and further entries for a parameter
	Located    int            `json:"-"`                   // of them, those with their whole value: the sum of ByKind
	ByKind     map[string]int `json:"located_by_kind"`
	ByRule     map[string]int `json:"located_by_rule"`
	ByReason   map[string]int `json:"reasons"`
	ByDoubt    map[string]int `json:"doubts,omitempty"` // located, and perhaps not what was passed: by reason
}

// Report is the coverage of one image.
type Report struct {
	Image   string `json:"image"`
	BuildID string `json:"build_id"`
	// Missing says which units are not counted, since they are not there; or nil.
	Missing *dwarfloc.MissingError `json:"missing_units,omitempty"`
	Entry   Counts                 `json:"entry"`
	Inline  Counts                 `json:"inline"`
	// Controls are, for each rule by which instructions say what debug information has lost, how many say it of other bodies of the functions
	// where debug information knows it: the same (equal), or the same where another one of their group does not, which silences the group
	// (silenced), or another (differ).
	Controls map[string]claim.Count `json:"controls,omitempty"`
	// Emitted counts the prologues that fetch every parameter of every site, up to three
	// in each.
	Emitted Emitted `json:"emitted"`
	// Ways are from MeasureAll. They may be nil.
	Ways *Ways `json:"ways,omitempty"`
	// Probes are from MeasureAll. They may be nil.
	Probes *Probes `json:"probes,omitempty"`
}

// Emitted are totals of prologues.
type Emitted struct {
	Prologues    int `json:"prologues"`    // of all sites
	Distinct     int `json:"distinct"`     // of these
	Instructions int `json:"instructions"` // of all prologues
	HelperCalls  int `json:"helper_calls"` // of all prologues, when no read faults
}

// described reports whether the debug information has a location for a parameter with this
// reason, though not one of the whole value.
func described(c loc.ReasonCode) bool {
	switch c {
	case reasons.OptimizedOut, reasons.NotAtSite, reasons.EntryValueOnly, reasons.Damaged:
		return false
	}
	return true
}

// tally is one goroutine's part of Counts. It has no maps: there are millions of parameters.
type tally struct {
	sites, noParams, all, some, none, described, params, repeated int
	kinds                                                         [16]int
	rules                                                         [32]int
	reasons                                                       [32]int
	doubts                                                        [32]int
}

func (t *tally) add(params []*dwarfloc.Variable) {
	t.sites++
	located, seen := 0, 0
	for _, v := range params {
		n := v.Entries
		t.params += n
		t.repeated += n - 1
		if v.Located() {
			located++
			t.kinds[v.Loc.Kind] += n
			t.rules[v.Loc.Rule] += n
			t.doubts[v.Loc.Doubt] += n
		} else {
			t.reasons[v.Reason.Code] += n
		}
		if described(v.Reason.Code) {
			seen++
		}
	}
	switch {
	case len(params) == 0:
		t.noParams++
		return
	case located == len(params):
		t.all++
	case located > 0:
		t.some++
	default:
		t.none++
	}
	if seen == len(params) {
		t.described++
	}
}

func (c *Counts) sum(tallies []tally) {
	c.ByKind, c.ByRule, c.ByReason, c.ByDoubt = map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}
	add := func(m map[string]int, name string, n int) {
		if n != 0 {
			m[name] += n
		}
	}
	for i := range tallies {
		t := &tallies[i]
		c.Sites += t.sites
		c.NoParams += t.noParams
		c.All += t.all
		c.Some += t.some
		c.None += t.none
		c.Described += t.described
		c.Parameters += t.params
		c.Repeated += t.repeated
		for k, n := range t.kinds {
			add(c.ByKind, loc.Kind(k).String(), n)
			c.Located += n
		}
		for r, n := range t.rules {
			add(c.ByRule, loc.Rule(r).String(), n)
		}
		for r, n := range t.reasons {
			add(c.ByReason, loc.ReasonCode(r).String(), n)
		}
		for r, n := range t.doubts {
			if r != int(reasons.None) {
				add(c.ByDoubt, loc.ReasonCode(r).String(), n)
			}
		}
	}
}

// Measure resolves the parameters of all sites of an image, and writes the prologues that fetch
// them. The error is the cause of ctx if that ends, or about damaged debug information.
func Measure(ctx context.Context, img *dwarfloc.Image) (*Report, error) {
	if r := kept(img); r != nil {
		r.Ways, r.Probes = nil, nil
		return r, nil
	}
	m := newMeasurement(img)
	err := img.EachSite(ctx, nil, func(worker int, s dwarfloc.SiteRef) error {
		params, err := s.Params()
		if err != nil {
			return err
		}
		return m.add(worker, s.Kind, params)
	})
	if err != nil {
		return nil, err
	}
	return m.report(), nil
}

// MeasureAll is Measure, which also follows the code of all functions into which others were inlined, and predicts a probe at each
// address of an inlined site: kprobes in a kernel, uprobes in other files. Probes is nil for relocatable files, kernel modules among
// them. The report is kept with the image's index, if there is one, and then read from there.
func MeasureAll(ctx context.Context, img *dwarfloc.Image) (*Report, error) {
	if r := kept(img); r != nil {
		return r, nil
	}
	m := newMeasurement(img)
	ways, addrs := make([]Ways, len(m.sharers)), make([]addresses, len(m.sharers))
	err := inside.EachWays(img, ctx, func(worker int, s *dwarfloc.Site, w *runs.Ways) error {
		params, err := s.Params()
		if err != nil {
			return err
		}
		if w != nil {
			ways[worker].add(s, w)
			addrs[worker].add(s.Addr)
		}
		return m.add(worker, s.Kind, params)
	})
	if err != nil {
		return nil, err
	}
	r := m.report()
	r.Ways = sumWays(ways)
	if r.Probes, err = measureProbes(ctx, img, addrs); err == nil {
		keep(img, r)
	}
	return r, err
}

// measurement is what several goroutines have counted.
type measurement struct {
	img     *dwarfloc.Image
	tallies [2][]tally // by kind of site
	sharers []*share.Sharer
}

func newMeasurement(img *dwarfloc.Image) *measurement {
	n := runtime.GOMAXPROCS(0)
	m := &measurement{img, [2][]tally{make([]tally, n), make([]tally, n)}, make([]*share.Sharer, n)}
	for i := range m.sharers {
		m.sharers[i] = share.NewSharer(img, share.Options{})
	}
	return m
}

// add counts the parameters of a site.
func (m *measurement) add(worker int, kind dwarfloc.SiteKind, params []*dwarfloc.Variable) error {
	m.tallies[kind][worker].add(params)
	_, err := m.sharers[worker].Parameters(params)
	return err
}

func (m *measurement) report() *Report {
	r := &Report{Image: m.img.Path(), BuildID: m.img.BuildID(), Missing: m.img.Missing()}
	r.Entry.sum(m.tallies[dwarfloc.SiteEntry])
	r.Inline.sum(m.tallies[dwarfloc.SiteInline])
	r.Controls = inside.Controls(m.img)
	for _, s := range m.sharers[1:] {
		m.sharers[0].Merge(s)
	}
	r.Emitted = Emitted(m.sharers[0].Totals())
	return r
}
