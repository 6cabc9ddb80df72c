package oracle_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/proof/agree"
	"github.com/bpfprologue/bpfprologue/internal/proof/oracle"
)

// compare reads some units of an image both ways.
func compare(t *testing.T, img *dwarfloc.Image, file *oracle.File, units []oracle.Unit, random bool) *agree.Findings {
	t.Helper()
	f, err := agree.Compare(t.Context(), img, file, agree.Options{Units: units, Random: random})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// report reports differences. slack is how many more parameters may be not stored yet than their share of
// a whole kernel.
func report(t *testing.T, f *agree.Findings, slack int) {
	t.Helper()
	params := f.Totals["inlined parameters"] + f.Totals["out-of-line parameters"]
	if n := f.Totals[agree.NotStoredYet]; n > slack+params/2000 {
		t.Errorf("%d of %d %s", n, params, agree.NotStoredYet)
	}
	for _, k := range slices.Sorted(maps.Keys(f.Count)) {
		e := f.Examples[k]
		t.Errorf("%s: %d", k, f.Count[k])
		for _, s := range e[:min(len(e), agree.MaxExamples)] {
			t.Logf("    %s", s)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(f.Totals)) {
		t.Logf("%9d %s", f.Totals[k], k)
	}
}
