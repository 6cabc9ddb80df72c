package truth

import (
	"context"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

// TestRuns compares hits at all ways in and out with the runs that programs count, in one build
// of each compiler that optimizes and a few others, by TRUTH_SEED; with TRUTH_FULL=1 in all.
func TestRuns(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	seed, err := strconv.ParseUint(os.Getenv("TRUTH_SEED"), 10, 64)
	if err != nil {
		seed = 1
	}
	var builds []Build
	for _, b := range chooseCounting(Matrix(), seed) {
		if missing := b.Missing(); missing != "" {
			testenv.Missing(t, "%s is not installed: run \"make deps\"", missing)
		}
		builds = append(builds, b)
	}
	var sum counted
	err = CountRuns(context.Background(), t.TempDir(), builds, func(i int, bodies []Body, err error) {
		if err != nil {
			t.Error(err)
			return
		}
		sum.add(bodies)
		for k := range bodies {
			b := &bodies[k]
			for _, d := range b.Differences() {
				if b.KnownToDiffer() || b.Unknown > 0 {
					t.Logf("%v: known: %s", &builds[i], d)
				} else {
					t.Errorf("%v: %s", &builds[i], d)
				}
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("seed %d, %d builds, %d functions: exact at entries %d, at ways in %d, at ways out %d; %d runs, missed %d, %d and %d",
		seed, len(builds), sum.Bodies, sum.Exact[ofEntry], sum.Exact[ofIn], sum.Exact[ofOut], sum.Runs,
		sum.Tallies[ofEntry].Missed, sum.Tallies[ofIn].Missed, sum.Tallies[ofOut].Missed)
	if sum.Bodies < 10*len(builds) || sum.Tallies[ofIn].Missed > sum.Tallies[ofEntry].Missed {
		t.Error("less was seen than at the entries alone, or next to nothing was traced")
	}
}

// chooseCounting chooses one build of each compiler, and four more.
func chooseCounting(all []Build, seed uint64) []Build {
	if os.Getenv("TRUTH_FULL") != "" {
		return all
	}
	random := rand.New(rand.NewPCG(seed, 1))
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	var chosen, rest []Build
	compilers := make(map[string]bool)
	for _, b := range all {
		if plain := slices.Contains(b.Options, "-O0"); plain || compilers[b.Compiler] {
			rest = append(rest, b)
			continue
		}
		compilers[b.Compiler] = true
		chosen = append(chosen, b)
	}
	return slices.Concat(chosen, rest[:4])
}
