package truth

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

// mostWrong is how many of a thousand values of random programs may be wrong, by the compiler's family and whether it optimizes:
// what compilers describe wrongly, as far as it is known (docs/limits.md), and room for other seeds. What a change of this
// module makes wrong comes on top.
var mostWrong = map[string]float64{"gcc": 3, "clang": 15, "gcc -O0": 0, "clang -O0": 0, "gcc -Og": 0.5}

// TestRandom traces generated programs, of one seed; RANDOM_SEED=N makes others.
func TestRandom(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	seed, err := strconv.ParseUint(os.Getenv("RANDOM_SEED"), 10, 64)
	if err != nil {
		seed = 1000
	}
	var builds []Build
	for _, b := range RandomMatrix() {
		if missing := b.Missing(); missing != "" {
			testenv.Missing(t, "%s is not installed: run \"make deps\"", missing)
		}
		builds = append(builds, b)
	}
	results := make(map[string]*Result)
	err = RunRandom(t.Context(), t.TempDir(), builds, []uint64{seed, seed + 1, seed + 2}, func(b *Build, seed uint64, r *Result, err error) {
		if err != nil {
			t.Error(err)
			return
		}
		for i := range r.Wrong {
			t.Logf("seed %d: %v", seed, &r.Wrong[i])
		}
		results[b.String()] = Sum([]*Result{results[b.String()], r})
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range builds {
		b := &builds[i]
		r := results[b.String()]
		if r == nil {
			continue
		}
		t.Logf("%v: %d values compared, %d wrong, %d lost", b, r.Compared, r.Count.Wrong, r.LostValues())
		if r.Compared < 500 {
			t.Errorf("%v: %d values were compared", b, r.Compared)
		}
		most, ok := mostWrong[b.family()+" "+b.Options[0]]
		if !ok {
			most = mostWrong[b.family()]
		}
		if got := 1000 * float64(r.Count.Wrong) / float64(r.Compared); got > most {
			t.Errorf("%v: %.1f of 1000 values are wrong, more than the %v that are known of such compilers", b, got, most)
		}
	}
}

// TestRandomProgram: the same seed gives the same program, and another one another.
func TestRandomProgram(t *testing.T) {
	a, b := Random(1), Random(1)
	if a.Source != b.Source || a.Source == Random(2).Source {
		t.Error("the program is not the seed's")
	}
	if len(a.Definitions) != randomFunctions || !strings.Contains(a.Source, "RUN(\"f13\")") {
		t.Errorf("%d functions", len(a.Definitions))
	}
}
