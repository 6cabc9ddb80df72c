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

// TestBy compares the result with that of a stable sort by the same comparison.
func TestBy(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{0, 1, 2, 13, 1000, small + 1} {
		type item struct{ name, i int }
		items := make([]item, n)
		for i := range items {
			items[i] = item{r.IntN(n/3 + 1), i}
		}
		want := slices.Clone(items)
		slices.SortStableFunc(want, func(a, b item) int { return cmp.Compare(b.name, a.name) })
		if got := By(items, func(a, b *item) int { return cmp.Compare(b.name, a.name) }); !slices.Equal(got, want) {
			t.Errorf("%d items are in another order", n)
		}
	}
}
