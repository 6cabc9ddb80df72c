package tracer

import (
	"cmp"
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/bpfprologue/bpfprologue/internal/radix"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
)

// Row is what was counted of the hits of a definition that have the same keys.
type Row struct {
	Plan       *plan.Plan // of runs where they begin
	Definition *probe.Definition
	// Outcome is, of runs, "" if they ended, and else why they have no duration: "began again" if another one began in the same frame,
	// which an exception or longjmp had left, or "not ended".
	Outcome    string
	Keys       []Key // in the order of SummaryOptions.By
	Hits       uint64
	Totals     []Total     // in the order of SummaryOptions.Totals
	Histograms []Histogram // in the order of SummaryOptions.Histograms
}

// Key is one of the things that hits are told apart by.
type Key struct {
	Text  string // as plan.Value.String prints an argument; names are without quotes
	Value any    // as plan.Value.Any returns an argument; nil for what is not known
}

// Total is the sum of an argument.
type Total struct {
	Missing       uint64 // hits at which the argument was not fetched
	Count         uint64 // the others
	Sum, Min, Max any    // each an int64 or a uint64, as the argument's type is; Sum is that modulo 1<<64
}

// number returns a number of 64 bits, which are the two's complement if it is signed.
func number(bits uint64, signed bool) any {
	if signed {
		return int64(bits)
	}
	return bits
}

// bitsOf returns the bits of a number.
func bitsOf(n any) uint64 {
	if s, is := n.(int64); is {
		return uint64(s)
	}
	return n.(uint64)
}

// Mean is the sum divided by the count, or 0 if there is none.
func (t *Total) Mean() float64 {
	if t.Count == 0 {
		return 0
	}
	if sum, signed := t.Sum.(int64); signed {
		return float64(sum) / float64(t.Count)
	}
	return float64(bitsOf(t.Sum)) / float64(t.Count)
}

// Histogram is how often an argument was in each of some ranges.
type Histogram struct {
	Missing uint64   // hits at which the argument was not fetched
	Buckets []Bucket // from the first one that is not empty to the last one
}

// Bucket is one range of a histogram.
type Bucket struct {
	Low, High any // both included, as those of Total
	Count     uint64
}

// Rows returns what was counted until now, the rows with the most hits first.
func (s *Summary) Rows() ([]Row, error) {
	var out []Row
	for _, c := range s.of {
		rows, err := c.rows()
		if err != nil {
			return nil, err
		}
		out = append(out, rows...)
	}
	radix.By(out, func(a, b *Row) int {
		return cmp.Or(cmp.Compare(b.Hits, a.Hits), slices.CompareFunc(a.Keys, b.Keys, func(x, y Key) int { return cmp.Compare(x.Text, y.Text) }))
	})
	return out, nil
}

// rows adds up what all processors counted for all keys of a row.
func (c *counted) rows() ([]Row, error) {
	var key []byte
	var values [][]byte
	index := make(map[string]int)
	var out []Row
	rowFor := func(key []byte) *Row {
		keys, outcome := c.keys(key), c.outcome(key)
		text := outcome
		for _, k := range keys {
			text += "," + strconv.Quote(k.Text)
		}
		at, known := index[text]
		if !known {
			at = len(out)
			index[text] = at
			out = append(out, c.row(keys, outcome))
		}
		return &out[at]
	}
	entries := c.stats.Iterate()
	for entries.Next(&key, &values) {
		r := rowFor(key)
		for _, v := range values {
			c.addTo(r, v)
		}
	}
	if err := entries.Err(); err != nil {
		return nil, err
	}
	if err := c.openRuns(rowFor); err != nil {
		return nil, err
	}
	for i := range out {
		for k := range out[i].Histograms {
			h := &out[i].Histograms[k]
			h.Buckets = trim(h.Buckets)
		}
	}
	return out, nil
}

// row returns an empty row.
func (c *counted) row(keys []Key, outcome string) Row {
	r := Row{Plan: c.plan, Definition: c.definition, Keys: keys, Outcome: outcome}
	for _, k := range c.sums {
		zero := number(0, k.signed)
		r.Totals = append(r.Totals, Total{Sum: zero, Min: zero, Max: zero})
	}
	for i := range c.hists {
		var h Histogram
		for slot := range c.hists[i].slots {
			low, high := c.hists[i].bounds(slot)
			h.Buckets = append(h.Buckets, Bucket{Low: low, High: high})
		}
		r.Histograms = append(r.Histograms, h)
	}
	return r
}

// addTo adds what one processor counted for a key.
func (c *counted) addTo(r *Row, v []byte) {
	word := func(at int) uint64 { return binary.NativeEndian.Uint64(v[at:]) }
	hits := word(0)
	r.Hits += hits
	for i, k := range c.sums {
		t := &r.Totals[i]
		missing := word(k.at + totalMissing)
		t.Missing += missing
		n := hits - min(hits, missing) // a hit is counted first
		if n == 0 {
			continue
		}
		low, high := ^word(k.at+totalMin), word(k.at+totalMax)
		if k.signed {
			low, high = low^1<<63, high^1<<63
		}
		less := func(a, b uint64) bool {
			if k.signed {
				return int64(a) < int64(b)
			}
			return a < b
		}
		if t.Count == 0 || less(low, bitsOf(t.Min)) {
			t.Min = number(low, k.signed)
		}
		if t.Count == 0 || less(bitsOf(t.Max), high) {
			t.Max = number(high, k.signed)
		}
		t.Count += n
		t.Sum = number(bitsOf(t.Sum)+word(k.at+totalSum), k.signed)
	}
	for i, k := range c.hists {
		h := &r.Histograms[i]
		h.Missing += word(k.at)
		for slot := range k.slots {
			h.Buckets[slot].Count += word(k.at + 8 + 8*slot)
		}
	}
}

// bounds returns the numbers that a slot counts.
func (k *counter) bounds(slot int) (low, high any) {
	if k.of.Step > 0 {
		from := k.of.Low + int64(slot-1)*k.of.Step
		switch {
		case slot == 0:
			return int64(math.MinInt64), k.of.Low - 1
		case slot < k.slots-1:
			return from, min(from+k.of.Step, k.of.High) - 1
		case k.signed:
			return k.of.High, int64(math.MaxInt64)
		}
		return uint64(k.of.High), uint64(math.MaxUint64)
	}
	if k.signed {
		slot -= 64
	}
	var from, to uint64
	switch {
	case slot < 0:
		from, to = -(1<<-slot - 1), -uint64(1<<(-slot-1))
		if slot == -64 {
			from = 1 << 63
		}
	case slot > 0:
		from, to = 1<<(slot-1), 1<<slot-1
	}
	return number(from, k.signed), number(to, k.signed)
}

// slot returns the slot that counts a number.
func (k *counter) slot(n uint64) int {
	switch negative := int64(n) < 0; {
	case k.of.Step > 0 && (negative && !k.signed || int64(n) >= k.of.High):
		return k.slots - 1
	case k.of.Step > 0 && int64(n) < k.of.Low:
		return 0
	case k.of.Step > 0:
		return int((int64(n)-k.of.Low)/k.of.Step) + 1
	case negative && k.signed:
		return 64 - bits.Len64(-n)
	case k.signed:
		return 64 + bits.Len64(n)
	}
	return bits.Len64(n)
}

// trim leaves out empty buckets at both ends.
func trim(b []Bucket) []Bucket {
	full := func(b Bucket) bool { return b.Count > 0 }
	first := slices.IndexFunc(b, full)
	if first < 0 {
		return nil
	}
	last := len(b)
	for !full(b[last-1]) {
		last--
	}
	return b[first:last]
}

// keys decodes a key.
func (c *counted) keys(key []byte) []Key {
	ne := binary.NativeEndian
	at := int(uint32(ne.Uint64(key)))
	if !c.bySit || at >= len(c.plan.Sites) {
		at = -1
	}
	out := make([]Key, len(c.parts))
	for i, p := range c.parts {
		d := key[p.at : p.at+p.size]
		switch p.what {
		case bySite:
			out[i] = name(c.plan.Sites[at].String())
		case byFunction:
			out[i] = name(c.plan.Sites[at].Function)
		case byCaller:
			out[i] = c.caller(at, d)
		case byStack:
			out[i] = c.stackKey(at, d)
		case byComm:
			comm, _, _ := strings.Cut(string(d), "\x00")
			out[i] = name(comm)
		case byPID, byTID:
			n := ne.Uint64(d)
			out[i] = Key{strconv.FormatUint(n, 10), n}
		default:
			out[i] = c.argumentKey(c.siteOf(at, key, c.args[p.pieces[0].arg]), key, p.pieces)
		}
	}
	return out
}

func name(s string) Key { return Key{s, s} }

// from returns a stack without frames.
func (c *counted) from(site int, d []byte) *Stack {
	ne := binary.NativeEndian
	return &Stack{Plan: c.plan, Site: site, PID: int(ne.Uint64(d[callerPID:])), At: ne.Uint64(d[callerAt:])}
}

// caller returns the caller of a site.
func (c *counted) caller(site int, d []byte) Key {
	s := &c.plan.Sites[site]
	address := binary.NativeEndian.Uint64(d[callerReturn:])
	switch {
	case s.Inlined() && len(s.Callers) > 0:
		return name(s.Callers[0].Function)
	case address == 0:
		return Key{Text: "?"}
	case c.what.CallerText != nil:
		return name(c.what.CallerText(c.from(site, d), address))
	}
	return name(hex(address))
}

func hex(n uint64) string { return "0x" + strconv.FormatUint(n, 16) }

// stackKey returns where a hit came from.
func (c *counted) stackKey(site int, d []byte) Key {
	ne := binary.NativeEndian
	s := c.from(site, d)
	list := func(at int) []uint64 {
		var value []byte
		if id := int64(ne.Uint64(d[at:])); id < 0 || c.stacks.Lookup(uint32(id), &value) != nil {
			return nil
		}
		return addresses(value)
	}
	s.Kernel, s.User = list(stackKernel), list(stackUser)
	if c.inProgram() {
		s.insertCaller(ne.Uint64(d[callerReturn:]))
	}
	if len(s.Kernel)+len(s.User) == 0 {
		return Key{Text: "?"}
	}
	if c.what.StackText != nil {
		return name(c.what.StackText(s))
	}
	var texts []string
	for _, a := range slices.Backward(slices.Concat(s.Kernel, s.User)) {
		texts = append(texts, hex(a))
	}
	return name(strings.Join(texts, ";"))
}
