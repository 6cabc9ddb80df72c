package truth

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bpfprologue/bpfprologue/plan"
)

// runsOf makes runs of a function with one argument.
func runsOf(values ...uint64) []expectedRun {
	var runs []expectedRun
	for _, v := range values {
		runs = append(runs, expectedRun{values: []expected{{name: "n", kind: 'x', word: v}}})
	}
	return runs
}

func hitsOf(values ...uint64) []hit {
	var hits []hit
	for _, v := range values {
		data := binary.NativeEndian.AppendUint64(nil, v)
		hits = append(hits, hit{values: map[string]plan.Value{"n": {Argument: &plan.Argument{}, Data: data}}})
	}
	return hits
}

// TestMatch: which hit belongs to which run. A wrong value must stay one.
func TestMatch(t *testing.T) {
	for _, tt := range []struct {
		what       string
		runs, hits []uint64
		want       []int // for each run the index of its hit, or -1
	}{
		{"each has its own", []uint64{1, 2, 3}, []uint64{1, 2, 3}, []int{0, 1, 2}},
		{"no better order is looked for", []uint64{1, 2, 3}, []uint64{2, 3, 1}, []int{0, 1, 2}},
		{"the first turn of a loop", []uint64{5}, []uint64{4, 5}, []int{0}},
		{"no hit", []uint64{5, 6}, nil, []int{-1, -1}},
		{"runs without a hit", []uint64{1, 2, 3, 4}, []uint64{2, 4}, []int{-1, 0, -1, 1}},
		{"the first runs", []uint64{1, 2, 3}, []uint64{1}, []int{0, -1, -1}},
		{"runs that fire again", []uint64{1, 2}, []uint64{1, 1, 2, 2}, []int{0, 2}},
		{"a hit that fits no run", []uint64{1, 2, 3}, []uint64{1, 9}, []int{0, 1, -1}},
	} {
		hits := hitsOf(tt.hits...)
		got := make([]int, len(tt.runs))
		for i, h := range match(runsOf(tt.runs...), hits) {
			got[i] = -1
			for j := range hits {
				if h == &hits[j] {
					got[i] = j
				}
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.what, diff)
		}
	}
}

// TestReadRecord reads what the programs print.
func TestReadRecord(t *testing.T) {
	const printed = "\n1 add a=x5 b=xffffffffffffffff\n1 name s=s6f6e65 raw=b0100\n12 nothing\n"
	got, err := readRecord(strings.NewReader(printed))
	if err != nil {
		t.Fatal(err)
	}
	want := record{
		1: {
			{label: "add", values: []expected{{name: "a", kind: 'x', word: 5}, {name: "b", kind: 'x', word: 1<<64 - 1}}},
			{label: "name", values: []expected{{name: "s", kind: 's', bytes: []byte("one")}, {name: "raw", kind: 'b', bytes: []byte{1, 0}}}},
		},
		12: {{label: "nothing"}},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(expectedRun{}, expected{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, bad := range []string{"x add", "1", "1 add a", "1 add a=", "1 add a=y1", "1 add a=xz", "1 add a=s0"} {
		if _, err := readRecord(strings.NewReader(bad)); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

// TestDefinitions: every program has definitions, with labels that are told apart.
func TestDefinitions(t *testing.T) {
	for _, l := range []Language{C, CPP, Rust, Go} {
		defs, err := Definitions(l)
		if err != nil {
			t.Error(err)
		}
		marks := 0
		for _, d := range defs {
			if d.Label == markLabel {
				marks++
			}
		}
		if marks != 1 || len(defs) < 20 {
			t.Errorf("%s: %d definitions, %d of them of the mark", l, len(defs), marks)
		}
	}
}

// TestMatrix: builds have different names, and there are as many as promised.
func TestMatrix(t *testing.T) {
	names := make(map[string]bool)
	for _, b := range Matrix() {
		if names[b.String()] {
			t.Errorf("%v is there twice", &b)
		}
		names[b.String()] = true
	}
	if len(names) < 100 {
		t.Errorf("there are %d builds", len(names))
	}
}
