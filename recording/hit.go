// Package recording keeps hits in a file, with what is needed to print them elsewhere: no image, no
// kernel and no privilege.
//
//	w, err := recording.NewWriter(file)
//	var source recording.Source
//	err = session.Run(ctx, func(h *tracer.Hit) error { return w.Write(source.Hit(h)) })
//	err = w.Close(recording.Totals{})
//
//	r, err := recording.NewReader(file)
//	for {
//		h, err := r.Next() // io.EOF after the last one
//		fmt.Println(h.Comm, h.Site.Text, h.Values)
//	}
//
// # The file
//
// A file begins with the eight bytes 89 "BPFPR" 0d 0a and a version, a number of 4 bytes. Then there are
// sections: a byte for the kind, the length of the contents in bytes and a CRC-32C of the kind and the
// contents, 4 bytes each, and the contents. These numbers are little-endian. In contents a number is an
// unsigned LEB128, or, where it can be negative, that of its zigzag form; a string is its length and its
// bytes. Sections may come in any order, but must precede references to them:
//
//   - 'P', a plan: the definition and the name of its event, strings. Plans are numbered from 0
//   - 'S', a site: the number of its plan, four strings (where it is in words, its function, that
//     as people write it, symbol and offset), its address, 1 if it may fire again in one run, the number of its arguments, and the name
//     and the type of each, strings. Sites are numbered from 0
//   - 'H', hits, one after the other. A string in them is 0 and a string, or n for the nth of the
//     section's strings that were written so. A hit is: the nanoseconds since the one before in the
//     section, or since the machine started, which may be negative; process; task; the task's name; the
//     number of the site; the values of its arguments; the number of frames of its stack, and of each its
//     address, the function, a string, the offset in that, 1 if it is inlined, the file, a string, the line,
//     and the object, a string; 1 if it is a whole run, and then the nanoseconds
//     that it took, the number of the site where it ended, and the values of that; 2 if it is one without an end, and then why, a string
//   - 'E', the end: the number of hits, and the numbers of Totals
//
// A value is a byte and what that says: 0 nothing, it was not fetched; 1 a signed number; 2 an unsigned
// one; 3 the 8 bytes of a floating-point number, little-endian; 4 false; 5 true; 6 a string that is
// printed in quotes; 7 one that is printed as it is; 8 the printed string, then the value; 9 NULL; 10 JSON,
// a string.
package recording

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/syntax"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/stacks"
	"github.com/bpfprologue/bpfprologue/tracer"
)

// Hit is a hit that was recorded, or can be.
type Hit struct {
	Time     time.Duration // since the machine started, not counting suspensions
	PID, TID int           // in the initial PID namespace
	Comm     string        // name of the task
	Site     *Site
	Values   []Value // of Site.Args

	Stack []stacks.Frame // the innermost first; nil without stacks

	// The rest is of a whole run.
	End      *Site // where it ended; nil for a hit that is not a run
	Duration time.Duration
	Results  []Value // of End.Args
	Outcome  string  // as in tracer.Hit: why a run has no end; "" of others
}

// Plan is a definition.
type Plan struct {
	Definition string
	Event      string // its name, or ""
}

// Site is where hits were.
type Site struct {
	Plan     *Plan
	Text     string // in words: dwarfloc.Site.String
	Function string // in the debug information
	// Qualified is the function's name as its language writes it: dwarfloc.Site.QualifiedName.
	Qualified string
	Place     string // symbol and offset
	Addr      uint64 // link-time address
	Again     bool   // it may fire again in one run
	Args      []Arg
}

// Arg is an argument at a site.
type Arg struct {
	Name, Type string
	// Doubt is why the values may not be what was passed, such as "reassigned", or "".
	Doubt string
}

// Value is a value as it is printed.
type Value struct {
	Text string // as plan.Value.String prints it
	Any  any    // as plan.Value.Any returns it: int64, uint64, float64, bool, string, json.RawMessage or nil
	Lost bool   // it was not fetched
}

// Totals are counts of what is not in a recording.
type Totals struct {
	Lost     uint64 // hits for which there was no room in the buffer
	Limited  uint64 // hits beyond a rate
	Missing  uint64 // hits at which the condition could not be computed
	Unpaired tracer.Unpaired
}

// Source makes recordable hits of a session's. The zero Source is ready. It is not for concurrent use.
type Source struct {
	// Names finds the functions of stacks, and those at addresses that the definition calls symbols. If nil, hits have no stacks, and addresses
	// are numbers.
	Names *stacks.Names

	plans map[*plan.Plan]*Plan
	sites map[siteKey]*Site
}

type siteKey struct {
	plan *plan.Plan
	site int
}

// Hit returns a hit with all its texts.
func (s *Source) Hit(h *tracer.Hit) *Hit {
	def := h.Plan.Definition
	if h.Span != nil {
		def = h.Span.Definition // its plans have what pairs beginnings with ends
	}
	out := &Hit{Time: h.Time, PID: h.PID, TID: h.TID, Comm: h.Comm, Site: s.site(h.Plan, def, h.Site, h.Values), Values: s.values(h.PID, h.Plan, h.Site, h.Values)}
	if s.Names != nil {
		out.Stack = s.Names.Frames(h.Stack)
	}
	if out.Outcome = h.Outcome; h.Span != nil && h.Outcome == "" {
		out.End, out.Duration = s.site(h.Span.End, def, h.End, h.Results), h.Duration
		out.Results = s.values(h.PID, h.Span.End, h.End, h.Results)
	}
	return out
}

func (s *Source) site(p *plan.Plan, def *probe.Definition, index int, values []plan.Value) *Site {
	if site := s.sites[siteKey{p, index}]; site != nil {
		return site
	}
	if s.sites == nil {
		s.sites, s.plans = make(map[siteKey]*Site), make(map[*plan.Plan]*Plan)
	}
	if s.plans[p] == nil {
		s.plans[p] = &Plan{def.String(), def.Event}
	}
	at := &p.Sites[index]
	site := &Site{Plan: s.plans[p], Text: at.String(), Function: at.Function, Qualified: qualified(at.Site), Place: at.SymbolOffset(), Addr: at.Addr, Again: at.Way.Again, Args: []Arg{}}
	for i := range values {
		a := Arg{Name: values[i].Name, Type: values[i].TypeText()}
		if d := values[i].Doubt(); d != reasons.None && values[i].Fetched() {
			a.Doubt = d.String()
		}
		site.Args = append(site.Args, a)
	}
	s.sites[siteKey{p, index}] = site
	return site
}

func (s *Source) values(pid int, p *plan.Plan, site int, list []plan.Value) []Value {
	out := make([]Value, len(list))
	for i := range list {
		v := &list[i]
		out[i] = Value{v.String(), v.Any(), v.Lost}
		if v.Type.Kind != syntax.TypeSymbol || v.Lost || s.Names == nil || len(v.Data) < 8 {
			continue
		}
		if name := s.symbol(pid, p, site, v); name != "" {
			out[i].Any = name
			if out[i].Text = name; v.Doubt() != reasons.None {
				out[i].Text = "~" + name
			}
		}
	}
	return out
}

// symbol returns the function at an address, and the offset in it, or "" if it is not known.
func (s *Source) symbol(pid int, p *plan.Plan, site int, v *plan.Value) string {
	addr := binary.NativeEndian.Uint64(v.Data)
	at := []uint64{addr}
	if p.Definition.Args[v.DefinitionArg].Expr.Kind == syntax.KindCaller && !p.Sites[site].Inlined() {
		at = append(at, addr) // as of a stack: the call before a return address counts
	}
	st := &tracer.Stack{PID: pid, Plan: p, Site: site}
	if p.Target.UserSpace() {
		st.User = at
	} else {
		st.Kernel = at
	}
	frames := s.Names.Frames(st)
	f := frames[len(frames)-1]
	switch {
	case f.Function == "":
		return ""
	case f.Offset == 0:
		return f.Function
	}
	return fmt.Sprintf("%s+%#x", f.Function, f.Offset)
}

// usual returns the text of a value that is not text. Strings are as they are.
func usual(x any) string {
	switch x := x.(type) {
	case int64:
		return strconv.FormatInt(x, 10)
	case uint64:
		return strconv.FormatUint(x, 10)
	case string:
		return x
	case json.RawMessage:
		return string(x)
	case nil:
		return "NULL"
	}
	return fmt.Sprint(x)
}

// qualified returns the name of a site's function, or what is known of it in a damaged image.
func qualified(s *dwarfloc.Site) string {
	if name, err := s.QualifiedName(); err == nil {
		return name
	}
	return s.Function
}
