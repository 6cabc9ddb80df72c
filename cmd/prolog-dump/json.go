package main

import (
	"encoding/json"
	"io"

	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// siteJSON is one line of --format json. docs/json.md documents it; fields are added,
// never renamed.
type siteJSON struct {
	Function string       `json:"function"` // the DWARF name
	Kind     string       `json:"kind"`     // "entry", "inline", "line" or "address"
	Addr     string       `json:"addr"`     // link-time address, hexadecimal
	View     uint64       `json:"view"`     // location view at the address
	Symbol   string       `json:"symbol"`   // symbol that holds the address
	Offset   uint64       `json:"offset"`   // bytes from the symbol
	Section  string       `json:"section"`
	File     string       `json:"file,omitempty"` // source position of a line or an address
	Line     int          `json:"line,omitempty"`
	Callers  []callerJSON `json:"callers"`   // functions it is inlined into, innermost first
	CallFile *string      `json:"call_file"` // null at an entry
	CallLine *int         `json:"call_line"`
	After    bool         `json:"after_prologue,omitempty"` // the site is after the function's prologue
	Way      int          `json:"way,omitempty"`            // number of the way into an inlined body, or out of it, from 1
	Ways     int          `json:"ways,omitempty"`           // how many ways there are
	Again    bool         `json:"refires,omitempty"`        // a probe there also fires without a run beginning or ending
	NoWays   string       `json:"ways_unknown,omitempty"`   // why the ways are not known
	Args     []argJSON    `json:"args"`
	Instance *int         `json:"instance"`           // null for a site that was skipped
	Record   int          `json:"record,omitempty"`   // bytes of the record that the program gets
	NoProbe  string       `json:"no_probe,omitempty"` // why no probe can be there; for kernels with --attachable
	Method   string       `json:"method,omitempty"`   // how the kernel runs the probe; with --cost
}

type callerJSON struct {
	Function string `json:"function"`
	CallFile string `json:"call_file,omitempty"`
	CallLine int    `json:"call_line,omitempty"`
}

// argJSON has either a location or a reason. An argument that has a location but does not
// fit the convention has unfetched too.
type argJSON struct {
	Name      string  `json:"name"`
	Type      string  `json:"type"`
	Location  *string `json:"location"`
	Reason    *string `json:"reason"`
	Detail    string  `json:"detail,omitempty"` // of the reason
	Rule      string  `json:"rule,omitempty"`   // that chose the location
	Unfetched string  `json:"unfetched,omitempty"`
	// Field is the argument's place in the record. It is nil if arguments are in registers.
	Field *fieldJSON `json:"field,omitempty"`
}

type fieldJSON struct {
	Offset int `json:"offset"`
	Bytes  int `json:"bytes"` // a multiple of 8
}

// printJSON writes one object per site and nothing else.
func (s *settings) printJSON(w io.Writer, x *subject, p *plan.Plan) error {
	probing, err := s.probing(x, p)
	if err != nil {
		return err
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for i := range p.Sites {
		o := siteObject(p, &p.Sites[i])
		if probing != nil {
			if probing.takes {
				o.NoProbe = probing.sites[i].cause.String()
			}
			o.Method = probing.sites[i].method.String()
		}
		if err := enc.Encode(o); err != nil {
			return err
		}
	}
	return nil
}

func siteObject(p *plan.Plan, s *plan.Site) *siteJSON {
	o := &siteJSON{
		Function: s.Function, Kind: s.Kind.String(), Addr: hex(s.Addr), View: s.View,
		Symbol: s.Symbol, Offset: s.Offset, Section: s.Section, File: s.File, Line: s.Line,
		Way: s.Way, Ways: s.Ways, Again: s.Again, NoWays: s.WaysUnknown,
		After: s.AfterPrologue, Callers: []callerJSON{}, Args: []argJSON{},
	}
	if s.Inlined() {
		o.CallFile, o.CallLine = &s.CallFile, &s.CallLine
	}
	if s.Instance >= 0 {
		o.Instance = &s.Instance
	}
	if s.Refused != nil {
		o.NoProbe = s.Refused.Error()
	}
	var fields []prologue.Field
	if p.Convention == prologue.ConventionRecord {
		o.Record, fields = s.Layout.Size, s.Layout.Fields
	}
	for _, c := range s.Callers {
		o.Callers = append(o.Callers, callerJSON(c))
	}
	for i := range s.Args {
		a := &s.Args[i]
		j := argJSON{Name: a.Name, Type: typeText(a)}
		if a.Variable.Located() {
			text := locationText(p, a)
			j.Location, j.Rule = &text, a.Variable.Loc.Rule.String()
			if !a.Fetched() {
				j.Unfetched = a.Unfetched.String()
			}
		} else {
			code := a.Variable.Reason.Code.String()
			j.Reason, j.Detail = &code, a.Variable.Reason.Detail
		}
		if fields != nil {
			j.Field = &fieldJSON{fields[i].Offset, fields[i].Size}
		}
		o.Args = append(o.Args, j)
	}
	return o
}
