package share

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestKeySet compares with a map, for keys of all lengths that are added repeatedly, and for
// two sets that are merged.
func TestKeySet(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var sets [2]keySet
	want := [2]map[string]int{{}, {}}
	check := func(i int, key string) {
		t.Helper()
		n, first := sets[i].number([]byte(key))
		number, seen := want[i][key]
		if !seen {
			number = len(want[i])
			want[i][key] = number
		}
		if n != number || first == seen || string(sets[i].keys[n]) != key || sets[i].len() != len(want[i]) {
			t.Fatalf("%q: number %d, first %v of %d; want %d, %v of %d", key, n, first, sets[i].len(), number, !seen, len(want[i]))
		}
	}
	for range 100000 {
		check(rng.IntN(2), fmt.Sprint(rng.IntN(1 << rng.IntN(16)))[rng.IntN(2):])
	}
	for i := range sets { // in the order of the merged set
		for n := range sets[i].len() {
			if _, ok := want[0][string(sets[i].keys[n])]; !ok {
				want[0][string(sets[i].keys[n])] = len(want[0])
			}
		}
	}
	sets[0].merge(&sets[1])
	for key := range want[0] {
		check(0, key)
	}
}

// TestKeySetCollisions checks that keys with equal sums are distinct.
func TestKeySetCollisions(t *testing.T) {
	var s keySet
	for round := range 2 {
		for i := range 3000 {
			key := []byte{byte(i), byte(i >> 8)}
			at, n := s.find(key, 42)
			if round == 0 && n < 0 {
				n = s.add(at, key, 42)
			}
			if n != i {
				t.Fatalf("round %d: key %d has number %d", round, i, n)
			}
		}
	}
}
