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

// sampled is how many builds a test run makes, besides one of each compiler.
const sampled = 6

// TestBuilds compares some builds, one of each compiler and others by a seed; with
// TRUTH_SEED=N others, with TRUTH_FULL=1 all.
func TestBuilds(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	seed, err := strconv.ParseUint(os.Getenv("TRUTH_SEED"), 10, 64)
	if err != nil {
		seed = 1
	}
	var builds []Build
	for _, b := range choose(Matrix(), seed) {
		if missing := b.Missing(); missing != "" {
			testenv.Missing(t, "%s is not installed: run \"make deps\"", missing)
		}
		builds = append(builds, b)
	}
	results := make([]*Result, len(builds))
	err = Run(context.Background(), t.TempDir(), builds, func(i int, r *Result, err error) {
		if err != nil {
			t.Error(err)
			return
		}
		results[i] = r
		for k := range r.Wrong {
			if w := &r.Wrong[k]; w.Known() == "" {
				t.Error(w)
			}
		}
		for label, n := range r.Outside {
			// Not an error: the site is in a part of the body that was moved.
			t.Logf("%v: %s was hit %d times outside of calls", &builds[i], label, n)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	sum := Sum(results)
	t.Logf("seed %d, %d builds: %d values compared, %d wrong, %d lost", seed, len(builds), sum.Compared, sum.Count.Wrong, sum.LostValues())
	if sum.Compared < 1000*len(builds) {
		t.Errorf("%d values were compared in %d builds", sum.Compared, len(builds))
	}
}

// choose chooses builds: the same ones for the same seed.
func choose(all []Build, seed uint64) []Build {
	if os.Getenv("TRUTH_FULL") != "" {
		return all
	}
	random := rand.New(rand.NewPCG(seed, 0))
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	var chosen, rest []Build
	compilers := make(map[string]bool)
	for _, b := range all {
		if compilers[b.Compiler] {
			rest = append(rest, b)
			continue
		}
		compilers[b.Compiler] = true
		chosen = append(chosen, b)
	}
	return slices.Concat(chosen, rest[:sampled])
}
