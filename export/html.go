package export

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/bpfprologue/bpfprologue/internal/page"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/terminal"
	"github.com/bpfprologue/bpfprologue/plan"
)

// Names in an image are anybody's choice: what a browser would not show, or elsewhere than it is, is
// replaced as for a terminal.
var (
	//go:embed html/report.html
	htmlBody string
	//go:embed html/report.js
	htmlScript string
)

type (
	htmlReport struct {
		Definition string                  `json:"definition"`
		Image      string                  `json:"image"`
		BuildID    string                  `json:"buildID"`
		Arguments  []htmlArgument          `json:"arguments"`
		Probes     int                     `json:"probes"`        // of the plan
		Sites      []json.RawMessage       `json:"sites"`         // of htmlSite
		Count      int                     `json:"instanceCount"` // of the plan
		Instances  map[int]json.RawMessage `json:"instances"`     // of htmlInstance: those of the sites
	}
	// htmlArgument is how often an argument is fetched, over all sites of the plan, and why not elsewhere.
	htmlArgument struct {
		Name    string         `json:"name"`
		All     int            `json:"all"`
		Reasons map[string]int `json:"reasons"`
	}
	htmlSite struct {
		Place    string       `json:"place"`
		Address  string       `json:"address"`
		View     uint64       `json:"view"`
		Kind     string       `json:"kind"`
		Function string       `json:"function"`
		Section  string       `json:"section"`
		Source   string       `json:"source"` // position of a line's site
		Way      string       `json:"way"`
		Again    bool         `json:"again"`
		Chain    []htmlCaller `json:"chain"`
		Args     []htmlArg    `json:"args"`
		Instance int          `json:"instance"`
		NoProbe  string       `json:"noProbe"`
		Method   string       `json:"method"`
		Moved    string       `json:"moved"`
	}
	htmlCaller struct {
		Function string `json:"function"`
		Call     string `json:"call"`
	}
	htmlArg struct {
		Name     string `json:"name"`
		Type     string `json:"type"`
		Location string `json:"location"`
		Rule     string `json:"rule"`
		From     string `json:"from"`
		Reason   string `json:"reason"` // short name, by which they are counted
		Why      string `json:"why"`
	}
	htmlInstance struct {
		Sites int    `json:"sites"`
		Text  string `json:"text"`
	}
)

// HTML writes a plan as a page for a browser, which needs nothing else: how often each argument is fetched,
// and a table of the sites to filter, each with the functions it is inlined into, locations with their rules,
// and its prologue. Of many sites the table has every second, fourth and so on, so that the page has 20 MB at most, and says so.
// probe, if not nil, says of a site why the kernel accepts no probe, or how it runs one.
func HTML(w io.Writer, p *plan.Plan, probe func(*plan.Site) (refused, method string)) error {
	r := htmlReport{
		Definition: terminal.Text(p.Definition.String()), Image: terminal.Text(p.Image.Path()), BuildID: p.Image.BuildID(),
		Arguments: htmlArguments(p), Probes: len(p.Sites), Count: len(p.Instances), Sites: []json.RawMessage{},
	}
	t := htmlTable{plan: p, step: 1}
	for i := range p.Sites {
		if err := t.add(i, probe); err != nil {
			return err
		}
	}
	r.Instances = t.instances
	for i := range t.rows {
		r.Sites = append(r.Sites, t.rows[i].text)
	}
	return page.Write(w, &page.Page{Title: r.Definition, Body: htmlBody, Script: htmlScript, Data: &r})
}

// htmlArguments counts how often arguments are fetched.
func htmlArguments(p *plan.Plan) (out []htmlArgument) {
	for i := range p.Sites {
		for k := range p.Sites[i].Args {
			a := &p.Sites[i].Args[k]
			if k == len(out) {
				out = append(out, htmlArgument{Name: a.Name, Reasons: make(map[string]int)})
			}
			x := &out[k]
			if x.All++; x.Name != a.Name {
				x.Name = "argument " + strconv.Itoa(k+1) // with $params they differ from site to site
			}
			if a.Unfetched.Code != reasons.None {
				x.Reasons[a.Unfetched.Code.String()]++
			}
		}
	}
	for k := range out {
		out[k].Name = terminal.Text(out[k].Name)
	}
	return out
}

// htmlRoom is how many bytes rows and instances may have.
const htmlRoom = 19_500_000

// htmlTable is the rows of the table, and the instances that they name.
type htmlTable struct {
	plan      *plan.Plan
	step      int // sites with numbers that it divides are in the table
	rows      []htmlRow
	instances map[int]json.RawMessage
	size      int // of all
}

type htmlRow struct {
	number, instance int
	text             json.RawMessage
}

// add adds a site.
func (t *htmlTable) add(number int, probe func(*plan.Site) (refused, method string)) error {
	if number%t.step != 0 {
		return nil
	}
	site := &t.plan.Sites[number]
	s, err := htmlSiteOf(t.plan, site)
	if err != nil {
		return err
	}
	if probe != nil {
		refused, method := probe(site)
		s.Method = method
		if refused != "" {
			s.NoProbe = refused
		}
	}
	row := htmlRow{number: number, instance: site.Instance}
	if row.text, err = json.Marshal(&s); err != nil {
		return err
	}
	t.rows = append(t.rows, row)
	if err := t.count(&row); err != nil {
		return err
	}
	for t.size > htmlRoom && len(t.rows) > 1 {
		t.step *= 2
		t.rows = slices.DeleteFunc(t.rows, func(r htmlRow) bool { return r.number%t.step != 0 })
		t.instances, t.size = nil, 0
		for i := range t.rows {
			if err := t.count(&t.rows[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// count adds a row's size and, if no row has named it before, its instance.
func (t *htmlTable) count(r *htmlRow) (err error) {
	t.size += len(r.text) + 1
	if _, known := t.instances[r.instance]; known || r.instance < 0 {
		return nil
	}
	if t.instances == nil {
		t.instances = make(map[int]json.RawMessage)
	}
	in := &t.plan.Instances[r.instance]
	t.instances[r.instance], err = json.Marshal(htmlInstance{len(in.Sites), in.Prologue.String()})
	t.size += len(t.instances[r.instance]) + len(`"1000000":,`)
	return err
}

func htmlSiteOf(p *plan.Plan, s *plan.Site) (out htmlSite, err error) {
	out = htmlSite{
		Place: terminal.Text(s.Place()), Address: fmt.Sprintf("%#x", s.Addr), View: s.View, Kind: s.Kind.String(), Section: terminal.Text(s.Section),
		Again: s.Way.Again, Instance: s.Instance, Chain: []htmlCaller{}, Args: []htmlArg{},
	}
	name, err := s.QualifiedName()
	if err != nil {
		return out, err
	}
	out.Function = terminal.Text(name)
	if s.File != "" {
		out.Source = position(s.File, s.Line)
	}
	if s.Way.Of > 1 {
		out.Way = fmt.Sprintf("%d of %d", s.Way.Number, s.Way.Of)
	}
	if s.MovedFrom != 0 {
		out.Moved = fmt.Sprintf("%#x", s.MovedFrom)
	}
	if s.Refused != nil {
		out.NoProbe = terminal.Text(s.Refused.Error())
	}
	file, line := s.CallFile, s.CallLine
	for _, c := range s.Callers {
		out.Chain = append(out.Chain, htmlCaller{terminal.Text(c.Qualified), position(file, line)})
		file, line = c.CallFile, c.CallLine
	}
	for i := range s.Args {
		a := &s.Args[i]
		h := htmlArg{Name: terminal.Text(a.Name)}
		if a.Variable.Type != nil {
			h.Type = terminal.Text(a.Variable.Type.String())
		}
		if a.Variable.Located() {
			at := &a.Loc
			if missingForDoubt(a) {
				at = &a.Variable.Loc
			}
			h.Location, h.Rule = at.Text(p.Image.Arch()), a.Variable.Loc.Rule.Describe()
			if a.Doubtful {
				h.Location, h.Rule = "~"+h.Location, fmt.Sprintf("%s; %v: %s", h.Rule, a.Doubt(), a.Doubt().Describe())
			}
		}
		if _, section, off := a.Variable.Expression(); section != "" {
			h.From = fmt.Sprintf("%s (%s+%#x)", a.Variable.ExpressionText(), section, off)
		}
		if a.Unfetched.Code != reasons.None {
			h.Reason, h.Why = a.Unfetched.Code.String(), a.Unfetched.Code.Describe()
			if a.Unfetched.Detail != "" {
				h.Why += ": " + terminal.Text(a.Unfetched.Detail)
			}
		}
		out.Args = append(out.Args, h)
	}
	return out, nil
}

// position is a place in a source file.
func position(file string, line int) string { return terminal.Text(file) + ":" + strconv.Itoa(line) }
