package hits

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/pprof/profile"

	"github.com/bpfprologue/bpfprologue/stacks"
	"github.com/bpfprologue/bpfprologue/tracer"
)

// TestPprof: a profile has the stacks with inlined functions, the hits and sums, and other keys as labels.
func TestPprof(t *testing.T) {
	frames := map[string][]stacks.Frame{
		"main;work;leaf": {
			{Addr: 0x10, Function: "leaf", Inlined: true, File: "a.c", Line: 3, Object: "/bin/p"}, {Addr: 0x10, Function: "work", Offset: 4, File: "a.c", Line: 9, Object: "/bin/p"},
			{Addr: 0x20, Function: "main", Offset: 8, File: "a.c", Line: 20, Object: "/bin/p"},
		},
		"main;work": {{Addr: 0x11, Function: "work", File: "a.c", Line: 8, Object: "/bin/p"}, {Addr: 0x7020, Function: "main", Offset: 8, File: "a.c", Line: 20, Object: "/bin/p"}},
		"0x99":      {{Addr: 0x99}},
	}
	row := func(stack string, hits uint64, sum any) tracer.Row {
		return tracer.Row{Keys: []tracer.Key{{Text: "cat"}, {Text: stack}}, Hits: hits, Totals: []tracer.Total{{Sum: sum}}}
	}
	rows := []tracer.Row{row("main;work;leaf", 5, int64(-7)), row("main;work", 3, uint64(9)), row("0x99", 1, int64(0))}
	o := &tracer.SummaryOptions{By: []string{"comm", "stack"}, Totals: []string{"n", "$duration"}}
	for i := range rows {
		rows[i].Totals = append(rows[i].Totals, tracer.Total{Sum: uint64(1)})
	}
	var b bytes.Buffer
	if err := PrintPprof(&b, rows, o, time.Unix(5, 0), time.Second, func(text string) []stacks.Frame { return frames[text] }); err != nil {
		t.Fatal(err)
	}
	p, err := profile.Parse(&b)
	if err != nil {
		t.Fatal(err)
	}
	if p.TimeNanos != 5e9 || p.DurationNanos != 1e9 || len(p.Sample) != 3 || len(p.SampleType) != 3 || p.SampleType[1].Type != "n" || p.SampleType[1].Unit != "count" || p.SampleType[2].Unit != "nanoseconds" || len(p.Mapping) != 1 {
		t.Errorf("%v", p)
	}
	first, second := p.Sample[0], p.Sample[1]
	if first.Value[0] != 5 || first.Value[1] != -7 || first.Label["comm"][0] != "cat" || len(first.Location) != 2 || len(first.Location[0].Line) != 2 ||
		first.Location[0].Line[0].Function.Name != "leaf" || first.Location[0].Line[1].Line != 9 {
		t.Errorf("%v", p)
	}
	// main is at another address in another process, and the same place.
	if first.Location[1] != second.Location[1] || p.Sample[2].Location[0].Line[0].Function.Name != "0x99" {
		t.Errorf("%v", p)
	}
	if err := PrintPprof(&b, rows, &tracer.SummaryOptions{By: []string{"comm"}}, time.Time{}, 0, nil); err == nil {
		t.Error("a profile without stacks")
	}
}
