package share_test

import (
	"context"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/argument"
	"github.com/bpfprologue/bpfprologue/internal/share"
	"github.com/bpfprologue/bpfprologue/internal/syntax"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/prologue"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

// TestSharer compares with what Emit generates for each group: the numbers are equal if and
// only if the keys are. It compares totals too, also those of two Sharers that did one half
// each.
func TestSharer(t *testing.T) {
	for _, name := range fixtures.Names() {
		img := testenv.Fixture(t, name)
		sites, err := img.Sites(context.Background(), nil)
		if err != nil {
			t.Fatal(err)
		}
		sharer := share.NewSharer(img, share.Options{})
		halves := [2]*share.Sharer{share.NewSharer(img, share.Options{}), share.NewSharer(img, share.Options{})}
		var want share.Totals
		numbers := make(map[string]int)
		for i, s := range sites {
			params, err := s.Params()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := halves[i%2].Parameters(params); err != nil {
				t.Fatal(err)
			}
			groups, err := sharer.Parameters(params)
			if err != nil {
				t.Fatal(err)
			}
			fetched := 0
			for _, g := range groups {
				args := make([]plan.Argument, len(g.Params))
				for i, v := range g.Params {
					if v != params[fetched+i] {
						t.Fatalf("%s: %v: parameter %d is in another place", name, s, fetched+i)
					}
					args[i].Variable = argument.Set(&args[i].Arg, v.Name, v, syntax.TypeSpec{}, argument.Options{Convention: prologue.ConventionRegisters})
				}
				fetched += len(args)
				pro, err := share.Emit(s, args, share.Options{})
				if err != nil {
					t.Fatal(err)
				}
				number, seen := numbers[pro.Key()]
				if !seen {
					number = len(numbers)
					numbers[pro.Key()] = number
				}
				if g.Number != number || g.First == seen || g.Instructions != len(pro.Insns) || g.HelperCalls != pro.Helpers {
					t.Errorf("%s: %v: got %+v, want number %d, seen %v, %d instructions, %d calls", name, s, g, number, seen, len(pro.Insns), pro.Helpers)
				}
				want.Prologues++
				want.Instructions += len(pro.Insns)
				want.HelperCalls += pro.Helpers
			}
			if fetched != len(params) || len(groups) != (len(params)+prologue.MaxArgs-1)/prologue.MaxArgs {
				t.Errorf("%s: %v: %d of %d parameters in %d groups", name, s, fetched, len(params), len(groups))
			}
		}
		want.Distinct = len(numbers)
		if got := sharer.Totals(); got != want || got.Distinct == 0 {
			t.Errorf("%s: totals %+v, want %+v", name, got, want)
		}
		halves[0].Merge(halves[1])
		if got := halves[0].Totals(); got != want {
			t.Errorf("%s: totals of two halves %+v, want %+v", name, got, want)
		}
	}
}
