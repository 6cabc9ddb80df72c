package listing

import (
	"io"
	"strconv"
	"sync"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/jsonline"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/rule"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// jsonLine is one line of --format json, but for the number of the site's instance.
type jsonLine struct {
	text []byte
	at   int // where the number belongs
}

// writeTo writes the line.
func (l *jsonLine) writeTo(w io.Writer, instance int) error {
	if _, err := w.Write(l.text[:l.at]); err != nil {
		return err
	}
	number := "null" // for a site that was skipped
	if instance >= 0 {
		number = strconv.Itoa(instance)
	}
	if _, err := io.WriteString(w, number); err != nil {
		return err
	}
	_, err := w.Write(l.text[l.at:])
	return err
}

// siteLine writes a site. docs/json.md documents the fields; fields are added, never renamed.
// A whole kernel has 215 MB of lines, so they are written without encoding/json, the bytes of
// which they have.
func siteLine(p *plan.Plan, s *plan.Site, noProbe, method string) jsonLine {
	memory := jsonTexts.Get().(*jsonMemory)
	defer jsonTexts.Put(memory)
	b := memory.line[:0]
	b.Quoted(`{"function":`, s.Function) // the DWARF name
	b.Optional(`,"qualified":`, jsonline.Qualified(s.Function, functionName(s.Site)))
	b.Quoted(`,"kind":`, s.Kind.String())
	b.Hex(`,"addr":`, s.Addr) // link-time address
	if p.Target.UserSpace() {
		if off, err := s.FileOffset(); err == nil {
			b.Hex(`,"file_offset":`, off)
		}
	}
	b.Number(`,"view":`, s.View)
	b.Quoted(`,"symbol":`, s.Symbol)
	b.Number(`,"offset":`, s.Offset)
	b.Quoted(`,"section":`, s.Section)
	b.Optional(`,"evidence":`, inside.Evidence(s.Site))
	b.Optional(`,"file":`, s.File)
	b.OptionalNumber(`,"line":`, s.Line)
	callers(&b, s.Site)
	b.OptionalTrue(`,"after_prologue":`, s.AfterPrologue)
	b.OptionalTrue(`,"local_entry":`, s.LocalEntry)
	b.OptionalNumber(`,"way":`, s.Way.Number)
	b.OptionalNumber(`,"ways":`, s.Way.Of)
	b.OptionalTrue(`,"refires":`, s.Way.Again)
	b.Optional(`,"ways_unknown":`, s.Way.Unknown)
	if s.MovedFrom != 0 {
		b.Hex(`,"moved_from":`, s.MovedFrom)
	}
	var fields []prologue.Field
	record := 0
	if p.Convention == prologue.ConventionRecord {
		record, fields = s.Layout.Size, s.Layout.Fields
	}
	b = append(b, `,"args":[`...)
	for i := range s.Args {
		if i > 0 {
			b = append(b, ',')
		}
		argument(&b, p, &s.Args[i])
		if fields != nil {
			b.Number(`,"field":{"offset":`, uint64(fields[i].Offset))
			b.Number(`,"bytes":`, uint64(fields[i].Size))
			b = append(b, '}')
		}
		b = append(b, '}')
	}
	b = append(b, ']')
	for i := range s.If {
		c := &s.If[i]
		b = append(b, [2]string{`,"if":[`, ","}[min(i, 1)]...)
		b.Quoted(`{"condition":`, c.Expr.String())
		if c.Variable.Located() {
			b.Quoted(`,"location":`, c.Variable.Loc.Text(p.Image.Arch()))
			b = append(b, `,"reason":null}`...)
		} else {
			b = append(b, `,"location":null`...)
			b.Quoted(`,"reason":`, c.Variable.Reason.Code.String())
			b.Optional(`,"detail":`, c.Variable.Reason.Detail)
			b = append(b, '}')
		}
	}
	if len(s.If) > 0 {
		b = append(b, ']')
	}
	b = append(b, `,"instance":`...)
	at := len(b)
	b.OptionalNumber(`,"record":`, record)
	if p.Doubt == plan.DoubtKeep {
		b.Quoted(`,"doubts":`, "keep")
		if d := s.Layout.Doubts; record > 0 {
			b.Number(`,"doubts_field":{"offset":`, uint64(d.Offset))
			b.Number(`,"bytes":`, uint64(d.Size))
			b = append(b, '}')
		}
	}
	switch {
	case noProbe != "":
	case s.Refused != nil:
		noProbe = s.Refused.Error()
	case s.Never != nil:
		noProbe = "the condition never holds"
	}
	b.Optional(`,"no_probe":`, noProbe)
	b.Optional(`,"method":`, method)
	if lost := p.Image.Missing(); lost != nil {
		b.Number(`,"missing_units":{"units":`, uint64(lost.Units))
		b.Number(`,"of":`, uint64(lost.Of))
		b = append(b, '}')
	}
	b = append(b, '}', '\n')
	memory.line = b
	return jsonLine{memory.kept(b), at}
}

// jsonMemory is the memory of lines that are being written, and of lines that wait for their turn.
type jsonMemory struct {
	line jsonline.Text
	rest []byte
}

// jsonAtOnce is how many bytes of lines are allocated at once: those of some 25 sites, which mostly wait for the same time.
const jsonAtOnce = 16 << 10

// kept returns a copy of a line.
func (m *jsonMemory) kept(line []byte) []byte {
	if len(line) > len(m.rest) {
		m.rest = make([]byte, max(len(line), jsonAtOnce))
	}
	n := copy(m.rest, line)
	out := m.rest[:n:n]
	m.rest = m.rest[n:]
	return out
}

// jsonTexts recycles it.
var jsonTexts = sync.Pool{New: func() any { return new(jsonMemory) }}

// callers writes the functions that a site is inlined into, innermost first, and the call.
func callers(b *jsonline.Text, s *dwarfloc.Site) {
	*b = append(*b, `,"callers":[`...)
	for i, c := range s.Callers {
		if i > 0 {
			*b = append(*b, ',')
		}
		b.Quoted(`{"function":`, c.Function)
		b.Optional(`,"qualified":`, jsonline.Qualified(c.Function, c.Qualified))
		b.Optional(`,"call_file":`, c.CallFile)
		b.OptionalNumber(`,"call_line":`, c.CallLine)
		*b = append(*b, '}')
	}
	*b = append(*b, ']')
	if !s.Inlined() {
		*b = append(*b, `,"call_file":null,"call_line":null`...)
		return
	}
	b.Quoted(`,"call_file":`, s.CallFile)
	*b = strconv.AppendInt(append(*b, `,"call_line":`...), int64(s.CallLine), 10)
}

// argument writes an argument, which has either a location or a reason, without the end of the
// object.
func argument(b *jsonline.Text, p *plan.Plan, a *plan.Argument) {
	b.Quoted(`{"name":`, a.Name)
	b.Quoted(`,"type":`, a.TypeText())
	if !a.Variable.Located() {
		*b = append(*b, `,"location":null`...)
		b.Quoted(`,"reason":`, a.Variable.Reason.Code.String())
		b.Optional(`,"detail":`, a.Variable.Reason.Detail)
		return
	}
	b.Quoted(`,"location":`, sureText(p, a))
	*b = append(*b, `,"reason":null`...)
	b.Optional(`,"rule":`, a.Variable.Loc.Rule.String())
	if a.Variable.Loc.Rule >= rule.Table {
		b.Optional(`,"witness":`, a.Variable.Because)
	}
	if d := a.Doubt(); d != reasons.None {
		b.Quoted(`,"doubt":`, d.String())
		return // whether it is fetched is for the program to say
	}
	if !a.Fetched() {
		b.Optional(`,"unfetched":`, a.Unfetched.String()) // it does not fit the convention
	}
}
