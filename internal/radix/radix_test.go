package radix

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestSort compares the result with that of a sort by comparison.
func TestSort(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, mask := range []uint64{0, 3, 0xff00, 0xffff, 1<<40 | 0xf0, ^uint64(0)} {
		for _, n := range []int{0, 1, 2, 24, 25, 1000} {
			type item struct {
				key uint64
				i   int
			}
			items := make([]item, n)
			for i := range items {
				items[i] = item{0xffffffff81000000&^mask | r.Uint64()&mask, i}
			}
			want := slices.Clone(items)
			slices.SortStableFunc(want, func(a, b item) int { return cmp.Compare(a.key, b.key) })
			if got := Sort(items, func(x *item) uint64 { return x.key }); !slices.Equal(got, want) {
				t.Errorf("mask %#x: %d items are in another order", mask, n)
			}
		}
	}
}
