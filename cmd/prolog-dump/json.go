package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"sync"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/terminal"
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
	memory := jsonTexts.Get().(*jsonText)
	defer jsonTexts.Put(memory)
	b := (*memory)[:0]
	b.string(`{"function":`, s.Function) // the DWARF name
	b.optional(`,"qualified":`, qualifiedJSON(s.Function, functionName(s.Site)))
	b.string(`,"kind":`, s.Kind.String())
	b.hex(`,"addr":`, s.Addr) // link-time address
	b.number(`,"view":`, s.View)
	b.string(`,"symbol":`, s.Symbol)
	b.number(`,"offset":`, s.Offset)
	b.string(`,"section":`, s.Section)
	b.optional(`,"file":`, s.File)
	b.optionalNumber(`,"line":`, s.Line)
	b.callers(s.Site)
	b.optionalTrue(`,"after_prologue":`, s.AfterPrologue)
	b.optionalTrue(`,"local_entry":`, s.LocalEntry)
	b.optionalNumber(`,"way":`, s.Way.Number)
	b.optionalNumber(`,"ways":`, s.Way.Of)
	b.optionalTrue(`,"refires":`, s.Way.Again)
	b.optional(`,"ways_unknown":`, s.Way.Unknown)
	if s.MovedFrom != 0 {
		b.hex(`,"moved_from":`, s.MovedFrom)
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
		b.argument(p, &s.Args[i])
		if fields != nil {
			b.number(`,"field":{"offset":`, uint64(fields[i].Offset))
			b.number(`,"bytes":`, uint64(fields[i].Size))
			b = append(b, '}')
		}
		b = append(b, '}')
	}
	b = append(b, ']')
	for i := range s.If {
		c := &s.If[i]
		b = append(b, [2]string{`,"if":[`, ","}[min(i, 1)]...)
		b.string(`{"condition":`, c.Expr.String())
		if c.Variable.Located() {
			b.string(`,"location":`, c.Variable.Loc.Text(p.Image.Arch()))
			b = append(b, `,"reason":null}`...)
		} else {
			b = append(b, `,"location":null`...)
			b.string(`,"reason":`, c.Variable.Reason.Code.String())
			b.optional(`,"detail":`, c.Variable.Reason.Detail)
			b = append(b, '}')
		}
	}
	if len(s.If) > 0 {
		b = append(b, ']')
	}
	b = append(b, `,"instance":`...)
	at := len(b)
	b.optionalNumber(`,"record":`, record)
	if p.Doubt == plan.DoubtKeep {
		b.string(`,"doubts":`, "keep")
		if d := s.Layout.Doubts; record > 0 {
			b.number(`,"doubts_field":{"offset":`, uint64(d.Offset))
			b.number(`,"bytes":`, uint64(d.Size))
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
	b.optional(`,"no_probe":`, noProbe)
	b.optional(`,"method":`, method)
	if lost := p.Image.Missing(); lost != nil {
		b.number(`,"missing_units":{"units":`, uint64(lost.Units))
		b.number(`,"of":`, uint64(lost.Of))
		b = append(b, '}')
	}
	b = append(b, '}', '\n')
	*memory = b
	return jsonLine{bytes.Clone(b), at}
}

// jsonTexts recycles the memory of lines that are being written.
var jsonTexts = sync.Pool{New: func() any { return new(jsonText) }}

// jsonText is JSON that is being written. Each method appends a name, with what is before it, and
// a value.
type jsonText []byte

func (b *jsonText) string(name, value string) {
	*b = appendJSON(append(*b, name...), value)
}

func (b *jsonText) number(name string, value uint64) {
	*b = strconv.AppendUint(append(*b, name...), value, 10)
}

func (b *jsonText) hex(name string, value uint64) {
	*b = append(strconv.AppendUint(append(append(*b, name...), `"0x`...), value, 16), '"')
}

func (b *jsonText) optional(name, value string) {
	if value != "" {
		b.string(name, value)
	}
}

func (b *jsonText) optionalNumber(name string, value int) {
	if value != 0 {
		*b = strconv.AppendInt(append(*b, name...), int64(value), 10)
	}
}

func (b *jsonText) optionalTrue(name string, value bool) {
	if value {
		*b = append(append(*b, name...), "true"...)
	}
}

// callers writes the functions that a site is inlined into, innermost first, and the call.
func (b *jsonText) callers(s *dwarfloc.Site) {
	*b = append(*b, `,"callers":[`...)
	for i, c := range s.Callers {
		if i > 0 {
			*b = append(*b, ',')
		}
		b.string(`{"function":`, c.Function)
		b.optional(`,"qualified":`, qualifiedJSON(c.Function, c.Qualified))
		b.optional(`,"call_file":`, c.CallFile)
		b.optionalNumber(`,"call_line":`, c.CallLine)
		*b = append(*b, '}')
	}
	*b = append(*b, ']')
	if !s.Inlined() {
		*b = append(*b, `,"call_file":null,"call_line":null`...)
		return
	}
	b.string(`,"call_file":`, s.CallFile)
	*b = strconv.AppendInt(append(*b, `,"call_line":`...), int64(s.CallLine), 10)
}

// argument writes an argument, which has either a location or a reason, without the end of the
// object.
func (b *jsonText) argument(p *plan.Plan, a *plan.Argument) {
	b.string(`{"name":`, a.Name)
	b.string(`,"type":`, a.TypeText())
	if !a.Variable.Located() {
		*b = append(*b, `,"location":null`...)
		b.string(`,"reason":`, a.Variable.Reason.Code.String())
		b.optional(`,"detail":`, a.Variable.Reason.Detail)
		return
	}
	b.string(`,"location":`, sureText(p, a))
	*b = append(*b, `,"reason":null`...)
	b.optional(`,"rule":`, a.Variable.Loc.Rule.String())
	if d := a.Doubt(); d != reasons.None {
		b.string(`,"doubt":`, d.String())
		return // whether it is fetched is for the program to say
	}
	if !a.Fetched() {
		b.optional(`,"unfetched":`, a.Unfetched.String()) // it does not fit the convention
	}
}

// appendJSON appends a string as printObject writes it.
func appendJSON(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c > '~' {
			var text bytes.Buffer
			_ = printObject(&text, s) // neither a string nor a Buffer has errors
			return append(b, bytes.TrimSuffix(text.Bytes(), []byte("\n"))...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// printObject writes one line of JSON. What terminal.Text replaces is \uXXXX there, so that the line can
// be looked at; encoding/json does that to the first 32 characters only. A byte that is not of UTF-8 is
// U+FFFD.
func printObject(w io.Writer, o any) error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(o); err != nil {
		return err
	}
	out := text.Bytes()
	if bytes.ContainsFunc(out, hidden) {
		out = nil
		for _, r := range text.String() {
			if !hidden(r) {
				out = utf8.AppendRune(out, r)
				continue
			}
			for _, u := range utf16.AppendRune(nil, r) {
				out = fmt.Appendf(out, `\u%04x`, u)
			}
		}
	}
	_, err := w.Write(out)
	return err
}

// hidden reports whether JSON has a character by its number. Outside of strings it has none of these.
func hidden(r rune) bool { return r > '~' && terminal.Text(string(r)) != string(r) }
