package hits

import (
	"errors"
	"io"
	"slices"
	"time"

	"github.com/google/pprof/profile"

	"github.com/bpfprologue/bpfprologue/stacks"
	"github.com/bpfprologue/bpfprologue/tracer"
)

// PrintPprof writes a profile, as "go tool pprof" reads it, of rows that are told apart by stacks: a sample for each row, with the hits, the sums
// of arguments, and the other keys as labels. frames returns the frames of a stack by its text, the innermost first.
func PrintPprof(w io.Writer, rows []tracer.Row, o *tracer.SummaryOptions, from time.Time, took time.Duration, frames func(text string) []stacks.Frame) error {
	at := slices.Index(o.By, "stack")
	if at < 0 {
		return errors.New("a profile is of stacks")
	}
	p := &profile.Profile{
		TimeNanos: from.UnixNano(), DurationNanos: int64(took), DefaultSampleType: "hits",
		SampleType: []*profile.ValueType{{Type: "hits", Unit: "count"}},
	}
	for _, arg := range o.Totals {
		p.SampleType = append(p.SampleType, &profile.ValueType{Type: arg, Unit: "count"})
	}
	b := builder{p: p, functions: make(map[[2]string]*profile.Function), mappings: make(map[string]*profile.Mapping), locations: make(map[string]*profile.Location)}
	for i := range rows {
		r := &rows[i]
		s := &profile.Sample{Value: []int64{int64(r.Hits)}, Label: make(map[string][]string)}
		for k := range r.Totals {
			switch sum := r.Totals[k].Sum.(type) {
			case int64:
				s.Value = append(s.Value, sum)
			case uint64:
				s.Value = append(s.Value, int64(sum))
			}
		}
		for k, key := range r.Keys {
			if k != at {
				s.Label[o.By[k]] = []string{key.Text}
			}
		}
		s.Location = b.stack(frames(r.Keys[at].Text))
		p.Sample = append(p.Sample, s)
	}
	if err := p.CheckValid(); err != nil {
		return err
	}
	return p.Write(w)
}

// builder makes what samples refer to, each thing once.
type builder struct {
	p         *profile.Profile
	functions map[[2]string]*profile.Function // by name and file
	mappings  map[string]*profile.Mapping     // by file
	locations map[string]*profile.Location
}

// stack returns the locations of a stack. Functions that are inlined into another one share its location.
func (b *builder) stack(frames []stacks.Frame) (out []*profile.Location) {
	for len(frames) > 0 {
		n := 1
		for n < len(frames) && frames[n-1].Inlined {
			n++
		}
		out = append(out, b.location(frames[:n]))
		frames = frames[n:]
	}
	return out
}

func (b *builder) location(frames []stacks.Frame) *profile.Location {
	// Where a program is loaded differs, and says nothing: functions and lines tell locations apart.
	key := ""
	for _, f := range frames {
		f.Addr = 0
		key += f.String() + f.Object + "\n"
		if f.Function == "" {
			key += frames[0].Name()
		}
	}
	if l := b.locations[key]; l != nil {
		return l
	}
	l := &profile.Location{ID: uint64(len(b.p.Location) + 1), Address: frames[0].Addr}
	if object := frames[len(frames)-1].Object; object != "" {
		l.Mapping = b.mapping(object)
	}
	for _, f := range frames {
		l.Line = append(l.Line, profile.Line{Function: b.function(f), Line: int64(f.Line)})
	}
	b.locations[key] = l
	b.p.Location = append(b.p.Location, l)
	return l
}

func (b *builder) mapping(object string) *profile.Mapping {
	m := b.mappings[object]
	if m == nil {
		m = &profile.Mapping{ID: uint64(len(b.p.Mapping) + 1), File: object, HasFunctions: true, HasFilenames: true, HasLineNumbers: true, HasInlineFrames: true}
		b.mappings[object] = m
		b.p.Mapping = append(b.p.Mapping, m)
	}
	return m
}

func (b *builder) function(f stacks.Frame) *profile.Function {
	key := [2]string{f.Name(), f.File}
	x := b.functions[key]
	if x == nil {
		x = &profile.Function{ID: uint64(len(b.p.Function) + 1), Name: f.Name(), SystemName: f.Name(), Filename: f.File}
		b.functions[key] = x
		b.p.Function = append(b.p.Function, x)
	}
	return x
}
