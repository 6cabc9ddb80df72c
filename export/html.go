package export

import (
	_ "embed"
	"fmt"
	"io"
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
		Definition string         `json:"definition"`
		Image      string         `json:"image"`
		BuildID    string         `json:"buildID"`
		Arguments  []string       `json:"arguments"`
		Sites      []htmlSite     `json:"sites"`
		Instances  []htmlInstance `json:"instances"`
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
// and its prologue. probe, if not nil, says of a site why the kernel accepts no probe, or how it runs one.
func HTML(w io.Writer, p *plan.Plan, probe func(*plan.Site) (refused, method string)) error {
	r := htmlReport{Definition: terminal.Text(p.Definition.String()), Image: terminal.Text(p.Image.Path()), BuildID: p.Image.BuildID(), Sites: make([]htmlSite, len(p.Sites))}
	for i := range p.Sites {
		s, err := htmlSiteOf(p, &p.Sites[i])
		if err != nil {
			return err
		}
		if probe != nil {
			refused, method := probe(&p.Sites[i])
			s.Method = method
			if refused != "" {
				s.NoProbe = refused
			}
		}
		r.Sites[i] = s
		for k := range s.Args {
			if n := s.Args[k].Name; k >= len(r.Arguments) {
				r.Arguments = append(r.Arguments, n)
			} else if r.Arguments[k] != n {
				r.Arguments[k] = "argument " + strconv.Itoa(k+1) // with $params they differ from site to site
			}
		}
	}
	for i := range p.Instances {
		in := &p.Instances[i]
		r.Instances = append(r.Instances, htmlInstance{len(in.Sites), in.Prologue.String()})
	}
	return page.Write(w, &page.Page{Title: r.Definition, Body: htmlBody, Script: htmlScript, Data: &r})
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
