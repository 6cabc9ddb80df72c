package recording

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/bpfprologue/bpfprologue/internal/terminal"
)

// counted are the counts of all hits of a recording, of whatever length, and some of the hits.
type counted struct {
	count       uint64
	first, last time.Duration // of the earliest hit, and where the latest one or a run ends
	sites       map[*Site]uint64
	tasks       map[task]*lane
	functions   map[string]*lane
	histograms  map[histogramKey]*histogram
	shift       uint // bins of lanes have 1<<shift nanoseconds

	kept   []keptHit
	chance *rand.Rand
}

type keptHit struct {
	number uint64
	hit    *Hit
}

type task struct {
	pid, tid int
	comm     string
}

func taskOf(h *Hit) task { return task{h.PID, h.TID, h.Comm} }

func (t task) text() string { return fmt.Sprintf("%s %d", terminal.Text(t.comm), t.tid) }

// lane has hits by their time: bins are numbered from the time 0, so that they can be joined.
type lane struct {
	count uint64
	bins  map[int64]int64
}

func laneCount(l *lane) uint64 { return l.count }

// maxBins is how many bins there are in the time of the recording.
const maxBins = 600

func newCounted() *counted {
	return &counted{
		sites: make(map[*Site]uint64), tasks: make(map[task]*lane), functions: make(map[string]*lane), histograms: make(map[histogramKey]*histogram),
		chance: rand.New(rand.NewPCG(1, 2)), // the same page each time
	}
}

// read counts all hits.
func (c *counted) read(r *Reader) error {
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		c.add(h)
	}
}

func (c *counted) add(h *Hit) {
	end := h.Time + max(h.Duration, 0)
	if end < h.Time {
		end = math.MaxInt64
	}
	if c.count == 0 {
		c.first, c.last = h.Time, end
	}
	c.first, c.last = min(c.first, h.Time), max(c.last, end)
	for uint64(c.last>>c.shift)-uint64(c.first>>c.shift) >= maxBins {
		c.widen()
	}
	bin := int64(h.Time >> c.shift)
	laneOf(c.tasks, taskOf(h)).add(bin)
	laneOf(c.functions, h.Site.Qualified).add(bin)
	c.sites[h.Site]++
	eachValue(h, func(k histogramKey, v *Value) {
		b, ok := binOf(v)
		if !ok && !v.Lost {
			return
		}
		x := c.histograms[k]
		if x == nil {
			x = &histogram{buckets: make(map[bucket]uint64)}
			c.histograms[k] = x
		}
		if v.Lost {
			x.lost++
			return
		}
		if _, ok := v.Any.(float64); ok {
			x.float = true
		}
		x.count++
		if x.buckets[b] == 0 && b.word != "" && len(x.buckets) >= maxWords {
			b = others
		}
		x.buckets[b]++
	})
	// Each hit is kept with the same probability: Vitter, "Random sampling with a reservoir", algorithm R.
	// Every nth one would leave out what happens in turns.
	if len(c.kept) < htmlHits {
		c.kept = append(c.kept, keptHit{c.count, h})
	} else if at := c.chance.Uint64N(c.count + 1); at < htmlHits {
		c.kept[at] = keptHit{c.count, h}
	}
	c.count++
}

// widen makes bins twice as wide.
func (c *counted) widen() {
	c.shift++
	for _, l := range c.tasks {
		l.widen()
	}
	for _, l := range c.functions {
		l.widen()
	}
}

func laneOf[K comparable](m map[K]*lane, k K) *lane {
	l := m[k]
	if l == nil {
		l = &lane{bins: make(map[int64]int64)}
		m[k] = l
	}
	return l
}

func (l *lane) add(bin int64) {
	l.count++
	l.bins[bin]++
}

func (l *lane) widen() {
	wide := make(map[int64]int64, len(l.bins)/2+1)
	for bin, n := range l.bins {
		wide[bin>>1] += n
	}
	l.bins = wide
}

// lanes returns those with most hits.
func lanes[K comparable](c *counted, m map[K]*lane, name func(K) string) htmlLaneList {
	out := htmlLaneList{All: len(m), Lanes: []htmlLane{}}
	for _, k := range byCount(m, laneCount, name) {
		if len(out.Lanes) == htmlLanes {
			break
		}
		l := htmlLane{Name: name(k), Count: m[k].count}
		for _, bin := range slices.Sorted(maps.Keys(m[k].bins)) {
			l.Bins = append(l.Bins, [2]int64{bin<<c.shift - int64(c.first), m[k].bins[bin]})
		}
		out.Lanes = append(out.Lanes, l)
	}
	return out
}

// byCount returns the keys of a map, that with the largest count first.
func byCount[K comparable, V any](m map[K]V, count func(V) uint64, name func(K) string) []K {
	keys := slices.Collect(maps.Keys(m))
	sort.Slice(keys, func(i, j int) bool {
		a, b := keys[i], keys[j]
		return cmp.Or(cmp.Compare(count(m[b]), count(m[a])), cmp.Compare(name(a), name(b))) < 0
	})
	return keys
}

// histogramKey is what a histogram is of: an argument, or the duration, of a definition in one function.
type histogramKey struct {
	plan     *Plan
	function string
	of       quantity
	name     string // of the argument
}

type quantity int

const (
	ofArgument quantity = iota
	ofResult            // an argument where the run ends
	ofDuration
)

func (k histogramKey) text() string {
	what := terminal.Text(k.name)
	if k.of == ofDuration {
		what = "duration"
	}
	return what + " of " + terminal.Text(k.function)
}

type histogram struct {
	count, lost uint64
	buckets     map[bucket]uint64
	float       bool
}

// bucket is from 2^(exp-1) to less than 2^exp, times sign, which is 0 for 0; or what is no number is one of its own.
type bucket struct {
	sign, exp int
	word      string
}

// Of different words so many are counted, and shown. The rest are others.
const (
	maxWords   = 10_000
	wordsShown = 50
)

var others = bucket{word: "(others)"}

func (b bucket) compare(c bucket) int {
	return cmp.Or(cmp.Compare(b.sign, c.sign), cmp.Compare(b.sign*b.exp, c.sign*c.exp))
}

// binOf returns the bucket of a value: a number, a text or an enumerator. Addresses, structures and slices have none.
func binOf(v *Value) (b bucket, ok bool) {
	if b, ok := bucketOf(v.Any); ok {
		return b, true
	}
	switch v.Any.(type) {
	case nil, bool: // nil is NULL
	case string:
		if strings.HasPrefix(strings.TrimPrefix(v.Text, "~"), "0x") {
			return b, false
		}
	default:
		return b, false
	}
	return bucket{word: v.Text}, !v.Lost
}

// bucketOf returns the bucket of a number; others have none.
func bucketOf(x any) (b bucket, ok bool) {
	switch x := x.(type) {
	case int64:
		switch {
		case x < 0:
			return bucket{sign: -1, exp: bits.Len64(-uint64(x))}, true
		case x > 0:
			return bucket{sign: 1, exp: bits.Len64(uint64(x))}, true
		}
		return bucket{}, true
	case uint64:
		if x == 0 {
			return bucket{}, true
		}
		return bucket{sign: 1, exp: bits.Len64(x)}, true
	case float64:
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return b, false
		}
		f, exp := math.Frexp(x)
		return bucket{sign: cmp.Compare(f, 0), exp: exp}, true
	}
	return b, false
}

// eachValue calls f for the values of a hit, and for its duration.
func eachValue(h *Hit, f func(k histogramKey, v *Value)) {
	k := histogramKey{plan: h.Site.Plan, function: h.Site.Qualified}
	values := func(of quantity, s *Site, list []Value) {
		for i := range list {
			k.of, k.name = of, s.Args[i].Name
			f(k, &list[i])
		}
	}
	values(ofArgument, h.Site, h.Values)
	if h.End != nil {
		values(ofResult, h.End, h.Results)
		k.of, k.name = ofDuration, ""
		f(k, &Value{Any: int64(h.Duration)})
	}
}

// text returns which numbers are in a bucket.
func (b bucket) text(show func(magnitude float64, exact uint64) string) string {
	if b.word != "" {
		return terminal.Text(b.word)
	}
	if b.sign == 0 {
		return show(0, 0)
	}
	low, high := show(math.Ldexp(1, b.exp-1), bit(b.exp-1)), show(math.Ldexp(1, b.exp), bit(b.exp)-1)
	switch {
	case low == high && b.sign < 0:
		return "-" + low
	case low == high:
		return low
	case b.sign < 0:
		return "-" + high + " … -" + low
	}
	return low + " … " + high
}

// bit returns 1<<n, or 0.
func bit(n int) uint64 {
	if n < 0 {
		return 0
	}
	return 1 << n
}

// histogramPlace is where a histogram is in the page.
type histogramPlace struct {
	index   int
	buckets map[bucket]int
}

// of returns where a bucket is.
func (p histogramPlace) of(b bucket) int {
	if at, ok := p.buckets[b]; ok {
		return at
	}
	return p.buckets[others]
}

// histogramsOf fills in the histograms of most numbers.
func (c *counted) histogramsOf(out *htmlRecording) map[histogramKey]histogramPlace {
	places := make(map[histogramKey]histogramPlace)
	maps.DeleteFunc(c.histograms, func(_ histogramKey, h *histogram) bool { return h.count == 0 })
	out.AllHist = len(c.histograms)
	for _, k := range byCount(c.histograms, func(h *histogram) uint64 { return h.count }, histogramKey.text) {
		if len(out.Histograms) == htmlHistograms {
			break
		}
		h := c.histograms[k]
		x := htmlHistogram{Name: k.text(), Definition: terminal.Text(k.plan.Definition), Lost: h.lost}
		at := histogramPlace{len(out.Histograms), make(map[bucket]int)}
		list, rest := h.rows()
		for _, b := range list {
			at.buckets[b] = len(x.Buckets)
			x.Buckets = append(x.Buckets, htmlBucket{b.text(shownAs(k, h)), h.buckets[b]})
			x.Words = x.Words || b.word != ""
		}
		if len(rest) > 0 {
			last := htmlBucket{Text: others.word}
			for _, b := range rest {
				at.buckets[b] = len(x.Buckets)
				last.Count += h.buckets[b]
			}
			x.Buckets = append(x.Buckets, last)
		}
		places[k] = at
		out.Histograms = append(out.Histograms, x)
	}
	return places
}

// shownAs returns how the ends of buckets are printed: those of durations and of floating-point numbers
// are not in a bucket themselves.
func shownAs(k histogramKey, h *histogram) func(float64, uint64) string {
	switch {
	case k.of == ofDuration:
		return func(m float64, _ uint64) string { return rounded(time.Duration(min(m, math.MaxInt64/2))) }
	case h.float:
		return func(m float64, _ uint64) string { return strconv.FormatFloat(m, 'g', 4, 64) }
	}
	return func(_ float64, n uint64) string { return strconv.FormatUint(n, 10) }
}

// rows returns the buckets that are shown, numbers in their order and words with the largest count first, and those that are others.
func (h *histogram) rows() (list, rest []bucket) {
	var words []bucket
	for b := range h.buckets {
		if b.word != "" && b != others {
			words = append(words, b)
		}
	}
	sort.Slice(words, func(i, j int) bool {
		a, b := words[i], words[j]
		return cmp.Or(cmp.Compare(h.buckets[b], h.buckets[a]), strings.Compare(a.word, b.word)) < 0
	})
	if n := min(len(words), wordsShown); n > 0 {
		list, rest = words[:n], words[n:]
	}
	if h.buckets[others] > 0 {
		rest = append(rest, others)
	}
	return append(h.filled(), list...), rest
}

// filled returns a histogram's buckets of numbers in order, with the empty ones between.
func (h *histogram) filled() (out []bucket) {
	buckets := slices.Collect(maps.Keys(h.buckets))
	sort.Slice(buckets, func(i, j int) bool { return buckets[i].compare(buckets[j]) < 0 })
	for _, b := range buckets {
		if b.word != "" {
			continue
		}
		for len(out) > 0 && out[len(out)-1].sign == b.sign && out[len(out)-1].exp != b.exp-b.sign && !h.float {
			out = append(out, bucket{sign: b.sign, exp: out[len(out)-1].exp + b.sign})
		}
		out = append(out, b)
	}
	return out
}

// rounded prints a duration with three digits.
func rounded(d time.Duration) string {
	step := time.Duration(1)
	for d/step >= 1000 {
		step *= 10
	}
	return d.Round(step).String()
}

func clock(t time.Duration) string { return strconv.FormatFloat(t.Seconds(), 'f', 6, 64) }
