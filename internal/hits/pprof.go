package hits

import (
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/bpfprologue/bpfprologue/stacks"
	"github.com/bpfprologue/bpfprologue/tracer"
)

// A profile is written here and not by github.com/google/pprof, with which the tests read it: that package compiles regular expressions when a
// program begins, which made each start of the tool allocate a fifth more.

// PrintPprof writes a profile, as "go tool pprof" reads it, of rows that are told apart by stacks: a sample for each row, with the hits, the sums
// of arguments, and the other keys as labels. frames returns the frames of a stack by its text, the innermost first.
func PrintPprof(w io.Writer, rows []tracer.Row, o *tracer.SummaryOptions, from time.Time, took time.Duration, frames func(text string) []stacks.Frame) error {
	at := slices.Index(o.By, "stack")
	if at < 0 {
		return errors.New("a profile is of stacks")
	}
	p := profileWriter{texts: make(map[string]uint64), functions: make(map[[2]string]uint64), mappings: make(map[string]uint64), locations: make(map[string]uint64)}
	p.text("")
	valueType := func(name string) {
		var t message
		unit := "count"
		if name == "$duration" {
			unit = "nanoseconds"
		}
		t.number(typeName, p.text(name))
		t.number(typeUnit, p.text(unit))
		p.out.message(profileSampleType, t)
	}
	valueType("hits")
	for _, arg := range o.Totals {
		valueType(arg)
	}
	for i := range rows {
		r := &rows[i]
		var s message
		for _, l := range p.stack(frames(r.Keys[at].Text)) {
			s.number(sampleLocation, l)
		}
		s.number(sampleValue, r.Hits)
		for k := range r.Totals {
			switch sum := r.Totals[k].Sum.(type) {
			case int64:
				s.number(sampleValue, uint64(sum))
			case uint64:
				s.number(sampleValue, sum)
			}
		}
		for k, key := range r.Keys {
			if k == at {
				continue
			}
			var l message
			l.number(labelKey, p.text(o.By[k]))
			l.number(labelText, p.text(key.Text))
			s.message(sampleLabel, l)
		}
		p.out.message(profileSample, s)
	}
	p.out.number(profileTime, uint64(from.UnixNano()))
	p.out.number(profileDuration, uint64(took))
	p.out.number(profileDefault, p.text("hits"))
	for _, t := range p.list {
		p.out.bytes(profileText, []byte(t))
	}
	z := gzip.NewWriter(w)
	_, err := z.Write(p.out)
	return errors.Join(err, z.Close())
}

// The numbers of fields (profile.proto of github.com/google/pprof).
const (
	profileSampleType, profileSample, profileMapping, profileLocation, profileFunction, profileText = 1, 2, 3, 4, 5, 6
	profileTime, profileDuration, profileDefault                                                    = 9, 10, 14

	typeName, typeUnit                                                                   = 1, 2
	sampleLocation, sampleValue, sampleLabel                                             = 1, 2, 3
	labelKey, labelText                                                                  = 1, 2
	mappingID, mappingFile, mappingFunctions, mappingFiles, mappingLines, mappingInlined = 1, 5, 7, 8, 9, 10
	locationID, locationMapping, locationAddress, locationLine                           = 1, 2, 3, 4
	lineFunction, lineNumber                                                             = 1, 2
	functionID, functionName, functionSystem, functionFile                               = 1, 2, 3, 4
)

// message is a message in the form of Protocol Buffers.
type message []byte

// number appends a number of a field: the kind of the field is 0. A list of numbers may also be written one by one.
func (m *message) number(field int, n uint64) {
	*m = binary.AppendUvarint(binary.AppendUvarint(*m, uint64(field)<<3), n)
}

// bytes appends bytes of a field: the kind of the field is 2.
func (m *message) bytes(field int, b []byte) {
	*m = append(binary.AppendUvarint(binary.AppendUvarint(*m, uint64(field)<<3|2), uint64(len(b))), b...)
}

func (m *message) message(field int, inner message) { m.bytes(field, inner) }

// profileWriter writes a profile: each text, function, file and location once, with their numbers.
type profileWriter struct {
	out       message
	texts     map[string]uint64
	list      []string
	functions map[[2]string]uint64 // by name and file
	mappings  map[string]uint64    // by file
	locations map[string]uint64
}

// text returns the number of a text. The first one is "".
func (p *profileWriter) text(s string) uint64 {
	n, known := p.texts[s]
	if !known {
		n = uint64(len(p.list))
		p.texts[s], p.list = n, append(p.list, s)
	}
	return n
}

// stack returns the locations of a stack. Functions that are inlined into another one share its location.
func (p *profileWriter) stack(frames []stacks.Frame) (out []uint64) {
	for len(frames) > 0 {
		n := 1
		for n < len(frames) && frames[n-1].Inlined {
			n++
		}
		out = append(out, p.location(frames[:n]))
		frames = frames[n:]
	}
	return out
}

func (p *profileWriter) location(frames []stacks.Frame) uint64 {
	// Where a program is loaded differs, and says nothing: functions and lines tell locations apart.
	key := ""
	for _, f := range frames {
		if f.Function != "" {
			f.Addr = 0
		}
		key += f.String() + f.Object + "\n"
	}
	if id := p.locations[key]; id != 0 {
		return id
	}
	id := uint64(len(p.locations) + 1)
	p.locations[key] = id
	var l message
	l.number(locationID, id)
	if object := frames[len(frames)-1].Object; object != "" {
		l.number(locationMapping, p.mapping(object))
	}
	l.number(locationAddress, frames[0].Addr)
	for _, f := range frames {
		var line message
		line.number(lineFunction, p.function(f))
		line.number(lineNumber, uint64(f.Line))
		l.message(locationLine, line)
	}
	p.out.message(profileLocation, l)
	return id
}

func (p *profileWriter) mapping(object string) uint64 {
	id := p.mappings[object]
	if id == 0 {
		id = uint64(len(p.mappings) + 1)
		p.mappings[object] = id
		var m message
		m.number(mappingID, id)
		m.number(mappingFile, p.text(object))
		for _, has := range []int{mappingFunctions, mappingFiles, mappingLines, mappingInlined} {
			m.number(has, 1)
		}
		p.out.message(profileMapping, m)
	}
	return id
}

func (p *profileWriter) function(f stacks.Frame) uint64 {
	key := [2]string{f.Name(), f.File}
	id := p.functions[key]
	if id == 0 {
		id = uint64(len(p.functions) + 1)
		p.functions[key] = id
		var m message
		m.number(functionID, id)
		m.number(functionName, p.text(f.Name()))
		m.number(functionSystem, p.text(f.Name()))
		m.number(functionFile, p.text(f.File))
		p.out.message(profileFunction, m)
	}
	return id
}
