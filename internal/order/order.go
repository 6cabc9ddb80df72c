// Package order sorts counts.
package order

import (
	"cmp"
	"maps"
	"slices"
)

// LargestFirst returns the keys of counts, the largest count first, and keys with equal
// counts in their own order.
func LargestFirst[K cmp.Ordered](counts map[K]int) []K {
	return slices.SortedFunc(maps.Keys(counts), func(a, b K) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
}
