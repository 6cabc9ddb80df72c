package recording

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bpfprologue/bpfprologue/internal/nametest"
	"github.com/bpfprologue/bpfprologue/internal/terminal"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/stacks"
)

func htmlOf(t testing.TB, file []byte) (string, error) {
	t.Helper()
	r, err := NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	err = HTML(&b, r)
	return b.String(), err
}

// runs are whole runs of two functions in two threads, with a hit between.
func runs() (out []*Hit) {
	p := &Plan{"read|write n", ""}
	read := &Site{Plan: p, Text: "read", Function: "read", Qualified: "io::read", Place: "read", Args: []Arg{{"n", "int", ""}}}
	write := &Site{Plan: p, Text: "write inlined in copy+0x8", Function: "write", Qualified: "io::write", Place: "copy+0x8", Args: []Arg{{"n", "int", ""}}}
	leave := &Site{Plan: p, Text: "read+0x20", Function: "read", Qualified: "io::read", Place: "read+0x20", Args: []Arg{{"$retval", "int", ""}}}
	for i := range 8 {
		out = append(out, &Hit{
			Time: time.Second + time.Duration(i)*time.Millisecond, PID: 7, TID: 7 + i%2, Comm: "worker", Site: read, End: leave, Duration: time.Duration(100<<i) * time.Microsecond,
			Values: []Value{{fmt.Sprint(1 << i), int64(1 << i), false}}, Results: []Value{{"-1", int64(-1), false}},
			Stack: []stacks.Frame{{Function: "main", Object: "/bin/frame"}},
		})
	}
	return append(out, &Hit{Time: time.Second + 9*time.Millisecond, PID: 7, TID: 7, Comm: "worker", Site: write, Values: []Value{{"?", nil, true}}})
}

// TestHTML uses the page in a browser, as export's test of that name does.
func TestHTML(t *testing.T) {
	const drive = `<script>
const seen = [], see = what => seen.push(what + ": " + [...document.querySelectorAll("tr.site")].map(r => r.cells[2].textContent + " " + r.cells[3].textContent).join(" | ") + " # " + document.getElementById("count").textContent);
const card = (name, label) => [...document.querySelectorAll(".card")].find(c => c.querySelector("h3").textContent === name).querySelectorAll(".row").values().find(b => b.querySelector(".label").textContent === label);
const reset = () => document.getElementById("reset").click();
const lanes = () => [...document.querySelectorAll(".lane")].slice(0, -1).map(l => l.querySelector(".name").textContent + " " + l.querySelector(".share").textContent).join(", ");
seen.push("cards: " + [...document.querySelectorAll(".card")].map(c => c.querySelector("h3").textContent + " [" + [...c.querySelectorAll(".row")].map(b => b.querySelector(".label").textContent + ": " + b.querySelector(".n").textContent).join(", ") + "]").join(" "));
seen.push("totals: " + document.getElementById("totals").innerText.replaceAll("\n", ", "));
see("all");
card("n of io::read", "4 … 7").click(); see("bucket");
card("n of io::read", "4 … 7").click(); see("again");
card("duration of io::read", "131µs … 262µs").click(); see("duration");
card("Tasks", "worker 7").click(); see("both");
reset(); card("Sites", "write inlined in copy+0x8").click(); see("site");
reset(); const f = document.getElementById("find"); f.value = "frame n=128"; f.dispatchEvent(new Event("input")); see("find");
reset(); seen.push("threads: " + lanes());
const s = document.getElementById("lanes"); s.value = "functions"; s.dispatchEvent(new Event("input")); seen.push("functions: " + lanes());
const c = document.querySelector(".lane canvas"), box = c.getBoundingClientRect();
const ground = c.getContext("2d").getImageData(2, c.height - 1, 1, 1).data[3], bar = [...c.getContext("2d").getImageData(c.width / 2 | 0, 0, 1, c.height).data].filter((v, i) => i % 4 === 3 && v === 255).length;
seen.push("drawn: " + (bar > 5 && ground < 255));
c.setPointerCapture = null; c.onpointerdown({ clientX: box.left + box.width * 0.7 }); c.onpointerup({ clientX: box.left + box.width }); see("range");
reset(); document.querySelectorAll("th")[4].click(); document.querySelectorAll("th")[4].click(); see("sorted");
document.querySelectorAll("tr.site")[0].click(); seen.push("detail: " + document.querySelector("td.detail").innerText.replaceAll("\n", " "));
document.body.innerText = seen.join("\n");
</script></body>`
	text, err := htmlOf(t, written(t, runs()))
	if err != nil {
		t.Fatal(err)
	}
	out := testenv.Browser(t, strings.Replace(text, "</body>", drive, 1))
	for _, want := range []string{
		"Sites [read: 8, write inlined in copy+0x8: 1] Tasks [worker 7: 5, worker 8: 4] ",
		"n of io::read [1: 1, 2 … 3: 1, 4 … 7: 1, 8 … 15: 1, 16 … 31: 1, 32 … 63: 1, 64 … 127: 1, 128 … 255: 1]", "$retval of io::read [-1: 8]",
		"18,446,744,073,709,551,615 had no room", "totals: 9 hits, 1 lost, 2 limited, 9 without what the condition needs, 3 ended whose",
		"all: read n=1  $retval=-1 | ", "# 9 of 9 hits\n",
		"bucket: read n=4  $retval=-1 # 1 of 9 hits\n",
		"again: read n=1  $retval=-1 | ",
		"duration: read n=2  $retval=-1 # 1 of 9 hits\n", "both:  # 0 of 9 hits\n",
		"site: write inlined in copy+0x8 n=? # 1 of 9 hits\n",
		"find: read n=128  $retval=-1 # 1 of 9 hits\n",
		"threads: worker 7 5, worker 8 4\n", "functions: io::read 8, io::write 1\n", "drawn: true\n",
		"range: read n=128  $retval=-1 # 1 of 9 hits\n",
		"sorted: read n=128  $retval=-1 | read n=64", "function io::read ended at read+0x20 stack main",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
}

// TestHTMLHostile: untrusted texts are shown as text, and nothing in them is obeyed.
func TestHTMLHostile(t *testing.T) {
	for _, evil := range append([]string{"</script><img>", "<!--"}, nametest.Evils...) {
		s := &Site{Plan: &Plan{evil, evil}, Text: evil, Function: evil, Qualified: evil, Place: evil, Args: []Arg{{evil, evil, evil}, {"", evil, ""}}}
		h := &Hit{Comm: evil, Site: s, End: s, Values: []Value{{evil, evil, false}, {"1", int64(1), false}}, Stack: []stacks.Frame{{Function: evil, File: evil, Object: evil}}}
		h.Results = h.Values
		text, err := htmlOf(t, written(t, []*Hit{h}))
		if n := strings.Count(text, "</script>"); err != nil || n != 1 || strings.Contains(text, "<img") || strings.Count(text, "<!") != 1 {
			t.Errorf("%q: %d ends of scripts, %v", evil, n, err)
		}
		for line := range strings.Lines(text) {
			if line = strings.TrimSuffix(line, "\n"); terminal.Line(line) != line || strings.HasPrefix(line, "!!") {
				t.Errorf("%q: %q", evil, line)
			}
		}
	}
}

// TestHTMLBounded: all hits are counted, and a bounded number is in the page.
func TestHTMLBounded(t *testing.T) {
	var list []*Hit
	site := &Site{Plan: &Plan{"f n", ""}, Text: "f", Qualified: "f", Args: []Arg{{"n", "int", ""}}}
	for i := range 3 * htmlHits {
		list = append(list, &Hit{Time: time.Duration(i) * time.Microsecond, TID: i % 300, Site: site, Values: []Value{{"", int64(i % 2), false}}})
	}
	r, err := NewReader(bytes.NewReader(written(t, list)))
	if err != nil {
		t.Fatal(err)
	}
	c := newCounted()
	if err := c.read(r); err != nil {
		t.Fatal(err)
	}
	p := c.page()
	odd, late, bins := 0, 0, 0
	for i, h := range p.Hits {
		odd += h.In[0][1]
		if h.Time >= uint64(2*htmlHits*time.Microsecond) {
			late++
		}
		if i > 0 && h.Time <= p.Hits[i-1].Time {
			t.Fatal("not in order")
		}
	}
	for _, b := range p.Functions.Lanes[0].Bins {
		bins += int(b[1])
	}
	if len(p.Hits) != htmlHits || odd < htmlHits/3 || odd > htmlHits*2/3 || late < htmlHits/4 || late > htmlHits/2 || p.Histograms[0].Buckets[1].Count != 3*htmlHits/2 || bins != 3*htmlHits ||
		len(p.Functions.Lanes[0].Bins) > maxBins || p.AllTasks != 300 || len(p.Tasks) != htmlTasks || len(p.Threads.Lanes) != htmlLanes || p.Threads.All != 300 {
		t.Errorf("%d hits, %d odd, %d late, %d in %d bins, %d of %d tasks, %d lanes", len(p.Hits), odd, late, bins, len(p.Functions.Lanes[0].Bins), len(p.Tasks), p.AllTasks, len(p.Threads.Lanes))
	}
}

// TestHTMLDamaged: a page has what is before the damage, and says so. Times can be anything.
func TestHTMLDamaged(t *testing.T) {
	whole := written(t, hits())
	for n := headSize; n < len(whole); n += 7 {
		if text, err := htmlOf(t, whole[:n]); !errors.Is(err, ErrUnfinished) || !strings.Contains(text, `"note":"`+strings.Split(err.Error(), ": the rec")[0]) {
			t.Errorf("cut off at %d: %v", n, err)
		}
	}
	odd := hits()
	odd[0].Time, odd[1].Time, odd[2].Time = math.MinInt64, math.MaxInt64, -1
	if _, err := htmlOf(t, written(t, odd)); err != nil {
		t.Error(err)
	}
}

// TestBuckets: a bucket has the numbers that it says.
func TestBuckets(t *testing.T) {
	for _, c := range []struct {
		x    any
		want string
	}{
		{int64(0), "0"}, {int64(1), "1"}, {int64(-1), "-1"}, {int64(7), "4 … 7"}, {int64(-8), "-15 … -8"}, {int64(math.MinInt64), "-18446744073709551615 … -9223372036854775808"},
		{uint64(math.MaxUint64), "9223372036854775808 … 18446744073709551615"}, {0.5, "0.5 … 1"}, {-3.0, "-4 … -2"}, {math.MaxFloat64, "8.988e+307 … +Inf"}, {5e-324, "4.941e-324 … 9.881e-324"},
	} {
		_, float := c.x.(float64)
		b, ok := bucketOf(c.x)
		if got := b.text(shownAs(histogramKey{}, &histogram{float: float})); !ok || got != c.want {
			t.Errorf("%v: %q, want %q", c.x, got, c.want)
		}
	}
	for _, x := range []any{nil, "1", true, math.Inf(1), math.NaN()} {
		if _, ok := bucketOf(x); ok {
			t.Errorf("%v has a bucket", x)
		}
	}
}

// TestWords: texts, enumerators and truth values are counted, those with most hits first; addresses are not.
func TestWords(t *testing.T) {
	site := &Site{Plan: &Plan{"f who c p", ""}, Text: "f", Qualified: "f", Args: []Arg{{"who", "char *", ""}, {"c", "enum color", ""}, {"p", "void *", ""}}}
	var list []*Hit
	for i := range 3*wordsShown + maxWords {
		who := Value{strconv.Quote("n" + strconv.Itoa(i)), "n" + strconv.Itoa(i), false}
		switch {
		case i < wordsShown:
			who = Value{`"ann"`, "ann", false}
		case i < 2*wordsShown-1:
			who = Value{"NULL", nil, false}
		case i == 2*wordsShown-1:
			who = Value{"?", nil, true}
		}
		list = append(list, &Hit{Site: site, Values: []Value{who, {"RED", "RED", false}, {"0x10", "0x10", false}}})
	}
	r, err := NewReader(bytes.NewReader(written(t, list)))
	if err != nil {
		t.Fatal(err)
	}
	c := newCounted()
	if err := c.read(r); err != nil {
		t.Fatal(err)
	}
	p := c.page()
	if len(p.Histograms) != 2 {
		t.Fatalf("%+v", p.Histograms)
	}
	red, who := p.Histograms[0], p.Histograms[1]
	if len(red.Buckets) != 1 || red.Buckets[0] != (htmlBucket{"RED", uint64(len(list))}) || !red.Words {
		t.Errorf("%+v", red)
	}
	sum := uint64(0)
	for _, b := range who.Buckets {
		sum += b.Count
	}
	if n := len(who.Buckets); n != wordsShown+1 || who.Buckets[0] != (htmlBucket{`"ann"`, wordsShown}) || who.Buckets[1] != (htmlBucket{"NULL", wordsShown - 1}) ||
		who.Buckets[n-1].Text != "(others)" || sum != uint64(len(list)-1) || who.Lost != 1 {
		t.Errorf("%d rows of %d hits: %+v, ... %+v", n, sum, who.Buckets[:3], who.Buckets[n-1])
	}
	for _, h := range p.Hits {
		for _, in := range h.In {
			if in[1] >= len(p.Histograms[in[0]].Buckets) {
				t.Fatalf("a hit is in row %d", in[1])
			}
		}
	}
}
