// Package radix sorts by 64-bit keys such as addresses, and by comparison where speed does not matter.
package radix

import (
	"cmp"
	"slices"
	"sync"
)

// few is how many items are sorted by insertion: counting takes longer.
const few = 24

// Sort sorts items by their keys, where they are, and returns them. It is stable. It sorts byte by byte and skips
// bytes that are equal in all keys: the addresses of an image differ in three or four. For
// 60,000 symbols of a kernel it takes 12 ms, slices.SortStableFunc 108 ms. What is done with keys alone is not
// made anew for each type, as a sort by comparison would be, in 7 KB of code, nor for each caller.
//
//go:noinline
func Sort[T any](items []T, key func(*T) uint64) []T {
	sorted, last := true, uint64(0)
	for i := range items {
		k := key(&items[i])
		sorted = sorted && k >= last
		last = k
	}
	if sorted {
		return items
	}
	r := roomOf(len(items))
	for i := range items {
		r.keys[i] = key(&items[i])
	}
	move(items, r.order())
	r.done()
	return items
}

// By sorts items in the order of a comparison, where they are, and returns them. It is stable. Numbers of items are
// sorted: slices.SortFunc would be made anew for each type, in 5 to 20 KB of code, and moves large items often.
//
//go:noinline
func By[T any](items []T, compare func(a, b *T) int) []T {
	r := roomOf(len(items))
	for i := range r.from {
		r.from[i] = uint32(i)
	}
	sortNumbers(r.from, func(a, b uint32) int { return compare(&items[a], &items[b]) })
	move(items, r.from)
	r.done()
	return items
}

func sortNumbers(list []uint32, compare func(a, b uint32) int) {
	slices.SortFunc(list, func(a, b uint32) int {
		if c := compare(a, b); c != 0 {
			return c
		}
		return cmp.Compare(a, b)
	})
}

// move puts items into the order of their numbers, along the circles in which one takes the place of the next. The
// symbols of a kernel are 1.9 MB: copies of them would be collected sooner. The numbers are used up.
func move[T any](items []T, from []uint32) {
	for i := range from {
		if from[i] == placed {
			continue
		}
		first, to := items[i], uint32(i)
		for {
			of := from[to]
			if from[to] = placed; of == uint32(i) {
				break
			}
			items[to] = items[of]
			to = of
		}
		items[to] = first
	}
}

// placed is in place of the number of an item that is where it belongs.
const placed = 1<<32 - 1

// room is the memory of a sort.
type room struct {
	keys       []uint64
	from, next []uint32 // numbers of items
}

var rooms = sync.Pool{New: func() any { return new(room) }}

// small is how many items a room may have that is used again: thousands are seldom sorted.
const small = 4096

func roomOf(n int) *room {
	if uint64(n) >= placed {
		panic("Sort: too many items") // a section of 4 GiB holds fewer
	}
	r := rooms.Get().(*room)
	if cap(r.keys) < n {
		*r = room{make([]uint64, n), make([]uint32, n), make([]uint32, n)}
	}
	r.keys, r.from, r.next = r.keys[:n], r.from[:n], r.next[:n]
	return r
}

func (r *room) done() {
	if cap(r.keys) > small {
		*r = room{}
	}
	rooms.Put(r)
}

// order returns the numbers of the items in the order of their keys.
func (r *room) order() []uint32 {
	keys, from, next := r.keys, r.from, r.next
	differ := uint64(0)
	for i := range from {
		from[i] = uint32(i)
		differ |= keys[i] ^ keys[0]
	}
	if len(from) <= few {
		for i := 1; i < len(from); i++ {
			n, k := from[i], i
			for ; k > 0 && keys[from[k-1]] > keys[n]; k-- {
				from[k] = from[k-1]
			}
			from[k] = n
		}
		return from
	}
	for shift := 0; shift < 64; shift += 8 {
		if byte(differ>>shift) == 0 {
			continue
		}
		var count [256]int
		for _, k := range keys {
			count[byte(k>>shift)]++
		}
		at := 0
		for c, n := range count {
			count[c] = at
			at += n
		}
		for _, n := range from {
			c := byte(keys[n] >> shift)
			next[count[c]] = n
			count[c]++
		}
		from, next = next, from
	}
	return from
}
