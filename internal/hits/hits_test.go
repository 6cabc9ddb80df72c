package hits

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/bpfprologue/bpfprologue/recording"
	"github.com/bpfprologue/bpfprologue/tracer"
)

// TestPerfetto: a trace is an array of events, with a duration where a run has one, and a name for each thread.
func TestPerfetto(t *testing.T) {
	begin := &recording.Site{Plan: new(recording.Plan), Qualified: "walk", Text: "walk in main", Args: []recording.Arg{{Name: "i"}}}
	finish := &recording.Site{Args: []recording.Arg{{Name: "$retval"}}}
	one, two := []recording.Value{{Text: "1"}}, []recording.Value{{Text: "2"}}
	for _, tt := range []struct {
		hits []*recording.Hit
		done bool
		want []string // phases
	}{
		{nil, true, []string{}},
		{[]*recording.Hit{{TID: 1, Site: begin, Values: one}, {TID: 1, Site: begin, Values: one, End: finish, Results: two, Duration: time.Second}}, false, []string{"M", "i", "X"}},
	} {
		var b strings.Builder
		show, end := Printer(&b, &Form{Format: "perfetto"})
		for _, h := range tt.hits {
			if err := show(h); err != nil {
				t.Fatal(err)
			}
		}
		end(tt.done)
		var events []struct {
			Phase string            `json:"ph"`
			Dur   float64           `json:"dur"`
			Args  map[string]string `json:"args"`
		}
		if err := json.Unmarshal([]byte(b.String()), &events); err != nil || len(events) != len(tt.want) {
			t.Fatalf("%v: %s", err, &b)
		}
		for i, e := range events {
			if e.Phase != tt.want[i] || e.Phase == "X" && (e.Dur != 1e6 || e.Args["i"] != "1" || e.Args["$retval"] != "2") {
				t.Errorf("event %d is %+v", i, e)
			}
		}
	}
	var b strings.Builder
	_, end := Printer(&b, &Form{Format: "perfetto"})
	if end(false); b.Len() != 0 {
		t.Errorf("nothing was done, and this was printed: %q", &b)
	}
}

// TestTotals: only what was left out is named.
func TestTotals(t *testing.T) {
	var b strings.Builder
	PrintTotals(&b, 1, &recording.Totals{})
	PrintTotals(&b, 2, &recording.Totals{Lost: 3, Limited: 4, Missing: 5, Unpaired: tracer.Unpaired{Ends: 6}})
	PrintUncounted(&b, new(tracer.Unreported), false, 1)
	PrintUncounted(&b, &tracer.Unreported{Overflow: 7}, false, 8)
	const want = "1 hit, 0 lost\n2 hits, 3 lost, 4 more than --max-rate, 5 without what the condition needs; 6 ended whose beginning was not seen\n" +
		"counted 1 of 8, 7 not counted for want of room (--max-keys)\n"
	if b.String() != want {
		t.Errorf("got:\n%swant:\n%s", &b, want)
	}
}
