package recording

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/bpfprologue/bpfprologue/stacks"
)

// ErrNotRecording is wrapped by NewReader's error for a file that is no recording, or is one of a later
// version.
var ErrNotRecording = errors.New("not a recording")

// ErrUnfinished is wrapped by Next's error after the last hit of a recording without its end: who wrote
// it was killed, or it was cut off.
var ErrUnfinished = errors.New("the recording was not finished")

// maxArgs is how many arguments a site has at most, and maxFrames how many frames a stack, those of
// inlined functions too.
const (
	maxArgs   = 1 << 12
	maxFrames = 1 << 16
)

// Reader reads hits. It is not for concurrent use.
type Reader struct {
	r       *bufio.Reader
	offset  int64 // in the file, of what is read next
	section int   // the number of the section, from 1
	kind    byte
	start   int64 // of its contents

	plans []*Plan
	sites []*Site
	hits  *decoder // of the section that is being read
	last  int64
	count uint64

	totals Totals
	err    error // of Next
}

// NewReader reads the beginning of a file.
func NewReader(r io.Reader) (*Reader, error) {
	x := &Reader{r: bufio.NewReaderSize(r, 1<<16)}
	head := make([]byte, headSize)
	n, err := io.ReadFull(x.r, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	x.offset = int64(n)
	if n < headSize || !bytes.Equal(head[:len(magic)], []byte(magic)) {
		return nil, fmt.Errorf("%w: it does not begin as one", ErrNotRecording)
	}
	if v := binary.LittleEndian.Uint32(head[len(magic):]); v != version {
		return nil, fmt.Errorf("%w of version %d: it has version %d", ErrNotRecording, version, v)
	}
	return x, nil
}

// Next returns the next hit, or io.EOF after the last one. Other errors say in which section, and at
// which offset in the file; one wraps ErrUnfinished. The same error is returned again.
func (r *Reader) Next() (*Hit, error) {
	if r.err != nil {
		return nil, r.err
	}
	h, err := r.next()
	if err != nil {
		r.err = err
	}
	return h, err
}

// Totals returns the counts of what is not in the recording, after Next has returned io.EOF.
func (r *Reader) Totals() Totals { return r.totals }

func (r *Reader) next() (*Hit, error) {
	for r.hits == nil || r.hits.left() == 0 {
		contents, err := r.read()
		if err != nil {
			return nil, err
		}
		d := &decoder{b: contents}
		switch r.kind {
		case kindPlan:
			r.plans = append(r.plans, &Plan{d.text(), d.text()})
		case kindSite:
			r.sites = append(r.sites, r.site(d))
		case kindHits:
			r.hits, r.last = d, 0
			continue
		case kindEnd:
			if n := d.number(); d.err == nil && n != r.count {
				d.fail("%d hits at the end, and there were %d", n, r.count)
			}
			t := &r.totals
			for _, to := range []*uint64{&t.Lost, &t.Limited, &t.Missing, &t.Unpaired.Ends, &t.Unpaired.Begins, &t.Unpaired.Open, &t.Unpaired.Full} {
				*to = d.number()
			}
		default:
			d.fail("a section of the unknown kind %q", r.kind)
		}
		if d.err == nil && d.left() > 0 {
			d.fail("%d bytes more than it has contents", d.left())
		}
		if d.err != nil {
			return nil, r.at(d)
		}
		if r.kind == kindEnd {
			if _, err := r.r.ReadByte(); !errors.Is(err, io.EOF) {
				return nil, fmt.Errorf("offset %#x: something follows the end", r.offset)
			}
			return nil, io.EOF
		}
	}
	h := r.hit(r.hits)
	if r.hits.err != nil {
		return nil, r.at(r.hits)
	}
	r.count++
	return h, nil
}

// at returns a decoder's error with the place.
func (r *Reader) at(d *decoder) error {
	return fmt.Errorf("section %d (%s), offset %#x: %w", r.section, kindName(r.kind), r.start+int64(d.at), d.err)
}

func kindName(kind byte) string {
	switch kind {
	case kindPlan:
		return "a plan"
	case kindSite:
		return "a site"
	case kindHits:
		return "hits"
	case kindEnd:
		return "the end"
	}
	return "unknown"
}

// read reads the contents of a section.
func (r *Reader) read() ([]byte, error) {
	head := make([]byte, sectionHead)
	n, err := io.ReadFull(r.r, head)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, fmt.Errorf("offset %#x: %w", r.offset+int64(n), ErrUnfinished)
	case err != nil:
		return nil, err
	}
	r.section++
	r.kind, r.start = head[0], r.offset+sectionHead
	size, sum := binary.LittleEndian.Uint32(head[1:]), binary.LittleEndian.Uint32(head[5:])
	where := fmt.Sprintf("section %d (%s), offset %#x", r.section, kindName(r.kind), r.offset)
	if size > maxSection {
		return nil, fmt.Errorf("%s: it has %d bytes, and at most %d are allowed", where, size, maxSection)
	}
	// It grows with what there is, not with what the file says.
	var b bytes.Buffer
	got, err := io.CopyN(&b, r.r, int64(size))
	r.offset = r.start + got
	switch {
	case errors.Is(err, io.EOF):
		return nil, fmt.Errorf("%s: %w: %d of its %d bytes are missing", where, ErrUnfinished, int64(size)-got, size)
	case err != nil:
		return nil, err
	}
	if crc32.Update(crc32.Checksum(head[:1], castagnoli), castagnoli, b.Bytes()) != sum {
		return nil, fmt.Errorf("%s: its checksum is wrong: the file is damaged", where)
	}
	return b.Bytes(), nil
}

func (r *Reader) site(d *decoder) *Site {
	s := &Site{}
	if n := d.number(); n < uint64(len(r.plans)) {
		s.Plan = r.plans[n]
	} else {
		d.fail("a site of the plan %d, of %d", n, len(r.plans))
	}
	s.Text, s.Function, s.Qualified, s.Place, s.Addr, s.Again = d.text(), d.text(), d.text(), d.text(), d.number(), d.number() == 1
	n := d.number()
	if n > maxArgs {
		d.fail("%d arguments: at most %d", n, maxArgs)
	}
	s.Args = []Arg{}
	for i := uint64(0); i < n && d.err == nil; i++ {
		s.Args = append(s.Args, Arg{d.text(), d.text(), d.text()})
	}
	return s
}

func (r *Reader) hit(d *decoder) *Hit {
	h := &Hit{}
	r.last += d.signed()
	h.Time = time.Duration(r.last)
	h.PID, h.TID, h.Comm = int(uint32(d.number())), int(uint32(d.number())), d.shared()
	h.Site = r.siteOf(d)
	h.Values = d.values(h.Site)
	frames := d.number()
	if frames > maxFrames {
		d.fail("%d frames: at most %d", frames, maxFrames)
	}
	for i := uint64(0); i < frames && d.err == nil; i++ {
		f := stacks.Frame{Addr: d.number(), Function: d.shared(), Offset: d.number(), Inlined: d.number() == 1, File: d.shared()}
		f.Line, f.Object = int(uint32(d.number())), d.shared()
		h.Stack = append(h.Stack, f)
	}
	switch n := d.number(); n {
	case 0:
	case 1:
		h.Duration = time.Duration(d.signed())
		h.End = r.siteOf(d)
		h.Results = d.values(h.End)
	case 2:
		h.Outcome = d.shared()
	default:
		d.fail("%d in place of 0, 1 or 2", n)
	}
	return h
}

func (r *Reader) siteOf(d *decoder) *Site {
	n := d.number()
	if n >= uint64(len(r.sites)) {
		d.fail("the site %d, of %d", n, len(r.sites))
		return &Site{Plan: &Plan{}}
	}
	return r.sites[n]
}

// decoder reads contents. After an error it returns zeros.
type decoder struct {
	b       []byte
	at      int
	strings []string
	err     error
}

func (d *decoder) left() int { return len(d.b) - d.at }

func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf(format, args...)
	}
}

func (d *decoder) take(n uint64) []byte {
	if d.err != nil || n > uint64(d.left()) {
		d.fail("%d bytes are read, and %d are left", n, d.left())
		return nil
	}
	b := d.b[d.at : d.at+int(n)]
	d.at += int(n)
	return b
}

func (d *decoder) number() uint64 {
	if d.err != nil {
		return 0
	}
	n, size := binary.Uvarint(d.b[d.at:])
	if size <= 0 {
		d.fail("a number that does not end, or has more than 64 bits")
		return 0
	}
	d.at += size
	return n
}

func (d *decoder) signed() int64 {
	n := d.number()
	return int64(n>>1) ^ -int64(n&1)
}

func (d *decoder) text() string { return string(d.take(d.number())) }

func (d *decoder) shared() string {
	n := d.number()
	switch {
	case n == 0:
		s := d.text()
		d.strings = append(d.strings, s)
		return s
	case n <= uint64(len(d.strings)):
		return d.strings[n-1]
	}
	d.fail("the string %d, of %d", n, len(d.strings))
	return ""
}

func (d *decoder) values(s *Site) []Value {
	out := make([]Value, 0, len(s.Args))
	for range s.Args {
		if d.err != nil {
			break
		}
		out = append(out, d.value())
	}
	return out
}

func (d *decoder) value() Value {
	tag := d.take(1)
	if d.err != nil {
		return Value{}
	}
	if tag[0] != tagShown {
		return d.plain(tag[0])
	}
	text := d.shared()
	if tag = d.take(1); d.err != nil {
		return Value{}
	}
	v := d.plain(tag[0])
	v.Text = text
	return v
}

func (d *decoder) plain(tag byte) Value {
	var x any
	switch tag {
	case tagLost:
		return Value{Text: "?", Lost: true}
	case tagSigned:
		x = d.signed()
	case tagUnsigned:
		x = d.number()
	case tagFloat:
		if b := d.take(8); b != nil {
			x = math.Float64frombits(binary.LittleEndian.Uint64(b))
		}
	case tagFalse, tagTrue:
		x = tag == tagTrue
	case tagQuoted:
		s := d.shared()
		return Value{Text: strconv.Quote(s), Any: s}
	case tagNull:
	case tagJSON:
		s := d.shared()
		if d.err == nil && !json.Valid([]byte(s)) {
			d.fail("a value that is no JSON")
		}
		x = json.RawMessage(s)
	case tagPlain:
		x = d.shared()
	default:
		d.fail("a value of the unknown kind %d", tag)
	}
	return Value{Text: usual(x), Any: x}
}
