package twin

import (
	"context"
	"slices"
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/plan"
)

// extra is the greatest share of runs that may have an unmarked hit too many that no rule explains. Measured were 0.10 %,
// 0.38 % and 0.58 %.
var extra = map[string]float64{"gcc -O2": 0.0015, "gcc -O2 -flto": 0.005, "clang-14 -O2": 0.0075}

// TestTwin compares two programs in three flavours; make twin has all.
func TestTwin(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	for _, tool := range []string{"objdump", "setarch", plain.Compiler} {
		testenv.Tool(t, tool)
	}
	flavours := slices.DeleteFunc(Flavours(), func(f Flavour) bool { return extra[f.Name] == 0 })
	for _, f := range flavours {
		testenv.Tool(t, f.Compiler)
	}
	totals := make(map[string]*Total)
	for _, name := range []string{"lua", "zlib"} {
		compare(t, name, flavours, func(r *Result) {
			if totals[r.Flavour] == nil {
				totals[r.Flavour] = new(Total)
			}
			totals[r.Flavour].Add(r)
		})
	}
	for _, f := range flavours {
		total := totals[f.Name]
		if total == nil {
			continue
		}
		t.Logf("%s: %d functions, %d exact, %d not compared; %d runs, %d values compared, %d wrong, %d doubtful; missed %d, %d of them not explained; extra %d, %d (%.2f %%); marked %d",
			f.Name, total.Functions, total.Exact, total.Off, total.Runs, total.Compared, total.Wrong, total.Doubtful, total.Missed, total.MissedUnexplained,
			total.Extra, total.ExtraUnexplained, 100*total.Share(), total.Marked)
		if total.Runs < 40_000 || total.Compared < 30_000 {
			t.Errorf("%s: too little was compared", f.Name)
		}
		if total.Share() > extra[f.Name] {
			t.Errorf("%s: %.2f %% of runs have an unmarked hit too many, more than %.2f %%", f.Name, 100*total.Share(), 100*extra[f.Name])
		}
	}
}

// TestUnmarkedBodies: link-time optimization leaves some bodies of this program without any marker of an entry or a statement. They had 57 hits too many.
// Without it, one body has no entry, and an end that GCC has merged with others at its lowest address: it had 3. The 2 that are left are of a body of
// QRinput_setVersion, which consists of such an end alone, behind a twin.
func TestUnmarkedBodies(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	most := map[string]int{"gcc -O2": 2, "gcc -O2 -flto": 0}
	flavours := slices.DeleteFunc(Flavours(), func(f Flavour) bool { _, ok := most[f.Name]; return !ok })
	for _, tool := range []string{"objdump", "setarch", plain.Compiler, flavours[0].Compiler} {
		testenv.Tool(t, tool)
	}
	compare(t, "qrencode", flavours, func(r *Result) {
		var total Total
		if total.Add(r); total.Runs < 3000 || total.Extra > most[r.Flavour] {
			t.Errorf("%d runs, and %d unmarked hits too many", total.Runs, total.Extra)
		}
		// FrameFiller_next calls itself at its end, which GCC makes a jump into the middle: 445 runs that have no code.
		if r.Flavour == "gcc -O2" && total.MissedUnexplained > 0 {
			t.Errorf("%d missed runs are not explained", total.MissedUnexplained)
		}
	})
}

// TestEnds compares the values at ends of runs. Where a register that LLVM names for a body counted behind it too, 37 of clang's were wrong.
func TestEnds(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	flavours := slices.DeleteFunc(Flavours(), func(f Flavour) bool { return f.Name != "gcc -O2" && f.Name != "clang-14 -O2" })
	for _, tool := range []string{"objdump", "setarch", plain.Compiler, flavours[0].Compiler, flavours[1].Compiler} {
		testenv.Tool(t, tool)
	}
	compareBy(t, CompareEnds, "lua", flavours, func(r *Result) {
		var total Total
		if total.Add(r); total.Compared < 5000 {
			t.Errorf("%s: %d values", r.Flavour, total.Compared)
		}
	})
}

// compare compares a program in some flavours. No value may be wrong.
func compare(t *testing.T, name string, flavours []Flavour, f func(r *Result)) {
	t.Helper()
	compareBy(t, Compare, name, flavours, f)
}

func compareBy(t *testing.T, by func(context.Context, string, *Program, string, []Flavour, func(*Result, error)) error, name string, flavours []Flavour, f func(r *Result)) {
	t.Helper()
	programs := Programs()
	p := &programs[slices.IndexFunc(programs, func(p Program) bool { return p.Name == name })]
	sources, ok := p.Sources(testenv.Cache())
	if !ok {
		testenv.Missing(t, "no sources at %s: run scripts/fetch-source.sh %s", sources, p.Package)
	}
	err := by(context.Background(), t.TempDir(), p, sources, flavours, func(r *Result, err error) {
		if err != nil {
			t.Error(err)
			return
		}
		f(r)
		for i := range r.Verdicts {
			v := &r.Verdicts[i]
			for k := range v.Wrong {
				if w := &v.Wrong[k]; r.Known(v, w) == "" {
					t.Errorf("%s, %s: %s: %s is wrong %d times at %s: %s was passed, %s fetched", r.Program, r.Flavour, v.Name, w.Param, w.Count, w.Place, w.Passed, w.Delivered)
				}
			}
		}
		for _, d := range r.Details() {
			t.Logf("%s, %s: %s", r.Program, r.Flavour, d)
		}
	})
	if err != nil {
		t.Error(err)
	}
}

// TestAlign pairs runs and hits, each with a value, or none (0).
func TestAlign(t *testing.T) {
	at := &site{Site: &plan.Site{Site: new(dwarfloc.Site)}}
	hits := func(values ...int32) (out []hit) {
		for _, v := range values {
			out = append(out, hit{site: at, values: []int32{v}})
		}
		return out
	}
	for _, c := range []struct{ runs, hits, want []int32 }{
		{[]int32{1, 2, 3}, []int32{1, 2, 3}, []int32{0, 1, 2}},
		{[]int32{1, 2, 3}, []int32{1, 3}, []int32{0, -1, 1}},            // missed
		{[]int32{1, 3}, []int32{1, 2, 3}, []int32{0, 2}},                // extra
		{[]int32{1, 2, 3}, []int32{1, 9, 3}, []int32{0, 1, 2}},          // wrong
		{[]int32{1, 2, 3, 4}, []int32{2, 3, 4, 1}, []int32{3, 0, 1, 2}}, // moved
		{[]int32{1, 2, 3}, []int32{0, 0, 3}, []int32{0, 1, 2}},          // without values
		{[]int32{1, 2}, nil, []int32{-1, -1}},
	} {
		anywhere := func(*hit, *hit) bool { return true }
		p := align(hits(c.runs...), hits(c.hits...), anywhere, anywhere)
		for i, want := range c.want {
			if p.of[i] != int(want) {
				t.Errorf("runs %v, hits %v: %v, not %v", c.runs, c.hits, p.of, c.want)
				break
			}
		}
	}
}

// TestAlignByPlaces: too far apart for an alignment in order, hits without values are runs that were called where their bodies are.
func TestAlignByPlaces(t *testing.T) {
	here, there := &site{Site: &plan.Site{Site: new(dwarfloc.Site)}}, &site{Site: &plan.Site{Site: new(dwarfloc.Site)}}
	var runs, hits []hit
	for i := range int32(2 * furthest) {
		runs = append(runs, hit{site: there, values: []int32{i + 1}})
	}
	for range 3 {
		runs = append(runs, hit{site: here, values: []int32{-1}})
	}
	for range 4 {
		hits = append(hits, hit{site: here, values: []int32{0}})
	}
	// The last values differ, so that nothing is paired from the ends.
	runs = append(runs, hit{site: there, values: []int32{-2}})
	hits = append([]hit{{site: there, values: []int32{-3}}}, append(hits, hit{site: there, values: []int32{-4}})...)
	called := func(run, hit *hit) bool { return run.site == hit.site }
	p := align(runs, hits, called, called)
	extra := 0
	for j, i := range p.at {
		if hits[j].site == here && i >= 0 && runs[i].site != here {
			t.Errorf("hit %d is run %d", j, i)
		}
		if hits[j].site == here && i < 0 {
			extra++
		}
	}
	if extra != 1 {
		t.Errorf("%d hits too many, 1 wanted", extra)
	}
}

// TestNameOf: symbols of C++ have other names than the functions that sites have.
func TestNameOf(t *testing.T) {
	for symbol, want := range map[string]string{
		"f": "f", "f.part.0": "f", "_ZN9Bit_modelC2Ev": "Bit_model::Bit_model", "_ZN12_GLOBAL__N_18set_modeEi.constprop.0": "(anonymous namespace)::set_mode",
	} {
		if got := nameOf(symbol); got != want {
			t.Errorf("%s: %q, want %q", symbol, got, want)
		}
	}
}
