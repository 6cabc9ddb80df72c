package recording

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"strconv"
)

const (
	magic   = "\x89BPFPR\r\n"
	version = 2

	headSize    = len(magic) + 4
	sectionHead = 1 + 4 + 4
)

// The kinds of sections.
const (
	kindPlan = 'P'
	kindSite = 'S'
	kindHits = 'H'
	kindEnd  = 'E'
)

// Values.
const (
	tagLost = iota
	tagSigned
	tagUnsigned
	tagFloat
	tagFalse
	tagTrue
	tagQuoted
	tagPlain
	tagShown
	tagNull
	tagJSON
)

// maxSection is the size of the largest contents, and flushAt that at which hits become a section.
const (
	maxSection = 16 << 20
	flushAt    = 256 << 10
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Writer writes hits. It is not for concurrent use.
type Writer struct {
	w     io.Writer
	plans map[*Plan]uint64
	sites map[*Site]uint64

	hits  encoder // of the section that has not been written yet
	last  int64   // the time of the last hit in it
	count uint64
}

// NewWriter writes the beginning of a file. The caller must close the Writer, which does not close w.
func NewWriter(w io.Writer) (*Writer, error) {
	head := binary.LittleEndian.AppendUint32([]byte(magic), version)
	_, err := w.Write(head)
	return &Writer{w: w, plans: make(map[*Plan]uint64), sites: make(map[*Site]uint64)}, err
}

// Write adds a hit. Its sites and plans are told apart by their addresses.
func (w *Writer) Write(h *Hit) error {
	site, err := w.site(h.Site)
	if err != nil {
		return err
	}
	var end uint64
	if h.End != nil {
		if end, err = w.site(h.End); err != nil {
			return err
		}
	}
	if len(h.Values) != len(h.Site.Args) || h.End != nil && len(h.Results) != len(h.End.Args) {
		return fmt.Errorf("a hit at %s with %d values of %d arguments", h.Site.Text, len(h.Values), len(h.Site.Args))
	}
	e := &w.hits
	if e.strings == nil {
		e.strings = make(map[string]uint64)
	}
	e.signed(int64(h.Time) - w.last)
	w.last = int64(h.Time)
	e.number(uint64(h.PID))
	e.number(uint64(h.TID))
	e.shared(h.Comm)
	e.number(site)
	e.values(h.Values)
	e.number(uint64(len(h.Stack)))
	for _, f := range h.Stack {
		e.number(f.Addr)
		e.shared(f.Function)
		e.number(f.Offset)
		e.bool(f.Inlined)
		e.shared(f.File)
		e.number(uint64(max(f.Line, 0)))
		e.shared(f.Object)
	}
	switch {
	case h.Outcome != "":
		e.number(2)
		e.shared(h.Outcome)
	case h.End == nil:
		e.number(0)
	default:
		e.number(1)
		e.signed(int64(h.Duration))
		e.number(end)
		e.values(h.Results)
	}
	w.count++
	if e.Len() < flushAt {
		return nil
	}
	return w.Flush()
}

// Flush writes the hits that have not been written yet.
func (w *Writer) Flush() error {
	if w.hits.Len() == 0 {
		return nil
	}
	err := w.section(kindHits, w.hits.Bytes())
	w.hits, w.last = encoder{}, 0
	return err
}

// Close writes the rest, and the end. Without it the recording is readable up to where it ends.
func (w *Writer) Close(t Totals) error {
	if err := w.Flush(); err != nil {
		return err
	}
	var e encoder
	for _, n := range []uint64{w.count, t.Lost, t.Limited, t.Missing, t.Unpaired.Ends, t.Unpaired.Begins, t.Unpaired.Open, t.Unpaired.Full} {
		e.number(n)
	}
	return w.section(kindEnd, e.Bytes())
}

func (w *Writer) section(kind byte, contents []byte) error {
	if len(contents) > maxSection {
		return fmt.Errorf("a section of %d bytes: at most %d", len(contents), maxSection)
	}
	sum := crc32.Update(crc32.Checksum([]byte{kind}, castagnoli), castagnoli, contents)
	head := binary.LittleEndian.AppendUint32([]byte{kind}, uint32(len(contents)))
	head = binary.LittleEndian.AppendUint32(head, sum)
	_, err := w.w.Write(append(head, contents...))
	return err
}

// site returns the number of a site, which is written when it is seen first.
func (w *Writer) site(s *Site) (uint64, error) {
	if n, known := w.sites[s]; known {
		return n, nil
	}
	plan, known := w.plans[s.Plan]
	if !known {
		plan = uint64(len(w.plans))
		w.plans[s.Plan] = plan
		var e encoder
		e.text(s.Plan.Definition)
		e.text(s.Plan.Event)
		if err := w.section(kindPlan, e.Bytes()); err != nil {
			return 0, err
		}
	}
	n := uint64(len(w.sites))
	w.sites[s] = n
	var e encoder
	e.number(plan)
	e.text(s.Text)
	e.text(s.Function)
	e.text(s.Qualified)
	e.text(s.Place)
	e.number(s.Addr)
	e.bool(s.Again)
	e.number(uint64(len(s.Args)))
	for _, a := range s.Args {
		e.text(a.Name)
		e.text(a.Type)
		e.text(a.Doubt)
	}
	return n, w.section(kindSite, e.Bytes())
}

// encoder writes contents.
type encoder struct {
	bytes.Buffer
	strings map[string]uint64 // of hits
}

func (e *encoder) number(n uint64) { e.Write(binary.AppendUvarint(nil, n)) }

func (e *encoder) signed(n int64) { e.number(uint64(n)<<1 ^ uint64(n>>63)) }

func (e *encoder) bool(b bool) {
	if b {
		e.number(1)
	} else {
		e.number(0)
	}
}

func (e *encoder) text(s string) {
	e.number(uint64(len(s)))
	e.WriteString(s)
}

// shared writes a string of hits.
func (e *encoder) shared(s string) {
	n := e.strings[s]
	e.number(n)
	if n == 0 {
		e.text(s)
		e.strings[s] = uint64(len(e.strings) + 1)
	}
}

func (e *encoder) values(list []Value) {
	for i := range list {
		e.value(&list[i])
	}
}

func (e *encoder) value(v *Value) {
	text, isText := v.Any.(string)
	switch {
	case v.Lost:
		e.WriteByte(tagLost)
		return
	case isText && v.Text == strconv.Quote(text):
		e.WriteByte(tagQuoted)
		e.shared(text)
		return
	case v.Text != usual(v.Any):
		e.WriteByte(tagShown)
		e.shared(v.Text)
	}
	switch x := v.Any.(type) {
	case int64:
		e.WriteByte(tagSigned)
		e.signed(x)
	case uint64:
		e.WriteByte(tagUnsigned)
		e.number(x)
	case float64:
		e.WriteByte(tagFloat)
		e.Write(binary.LittleEndian.AppendUint64(nil, math.Float64bits(x)))
	case bool:
		if x {
			e.WriteByte(tagTrue)
		} else {
			e.WriteByte(tagFalse)
		}
	case nil:
		e.WriteByte(tagNull)
	case json.RawMessage:
		e.WriteByte(tagJSON)
		e.shared(string(x))
	default:
		e.WriteByte(tagPlain)
		e.shared(usual(v.Any))
	}
}
