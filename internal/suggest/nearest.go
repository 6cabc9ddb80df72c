// Package suggest finds the names that a user probably meant.
package suggest

import (
	"iter"
	"slices"
	"strings"
)

// Nearest returns up to count candidates that a user who wrote name may have meant, nearest
// first; equally near ones are in alphabetical order. Candidates may repeat; the result does
// not.
//
// The distance is the number of characters to insert, delete or replace, and of neighbors to
// swap. A candidate is near if its distance is at most a third of the length of name, rounded
// to the nearest number. It is also near if it contains name and name has three characters or
// more, so that "vfs_read" suggests "ksys_vfs_read_iter". A name of more than 512 characters is
// near only to names that contain it.
func Nearest(name string, candidates iter.Seq[string], count int) []string {
	if name == "" || count <= 0 {
		return nil
	}
	n := newNeighborhood(name)

	// The best so far, sorted. It is short, so inserting is cheaper than a heap.
	type neighbor struct {
		distance int
		name     string
	}
	compare := func(a, b neighbor) int {
		if a.distance != b.distance {
			return a.distance - b.distance
		}
		return strings.Compare(a.name, b.name)
	}
	var best []neighbor
	for candidate := range candidates {
		limit := n.limit
		if len(best) == count {
			limit = min(limit, best[count-1].distance)
		}
		d, ok := n.distance(candidate, limit)
		if !ok {
			continue
		}
		found := neighbor{d, candidate}
		i, duplicate := slices.BinarySearchFunc(best, found, compare)
		if duplicate || i == count {
			continue
		}
		if len(best) == count {
			best = best[:count-1]
		}
		best = slices.Insert(best, i, found)
	}

	var names []string
	for _, b := range best {
		names = append(names, b.name)
	}
	return names
}

// maxEdited bounds the time for one distance, which grows with its square.
const maxEdited = 512

// A neighborhood measures distances from one name. Most of tens of thousands of candidates
// are far away, which two cheap lower bounds show: the difference in length, and the number
// of characters that one name has and the other lacks, in any order.
type neighborhood struct {
	name   string
	counts [256]int // how often each byte occurs in name: a character is a byte, as in patterns
	limit  int      // distance of the farthest near name
	rows   rows
}

func newNeighborhood(name string) *neighborhood {
	n := &neighborhood{name: name}
	if len(name) > 1 && len(name) <= maxEdited {
		n.limit = (len(name) + 1) / 3
	}
	for i := range len(name) {
		n.counts[name[i]]++
	}
	return n
}

// distance returns the distance of candidate, if it is near. Candidates farther than limit
// are near only if they contain the name.
func (n *neighborhood) distance(candidate string, limit int) (int, bool) {
	if len(n.name) >= 3 && strings.Contains(candidate, n.name) {
		return len(candidate) - len(n.name), true
	}
	if n.lowerBound(candidate, limit) > limit {
		return 0, false
	}
	if limit == 0 {
		return 0, candidate == n.name
	}
	d := n.rows.distance(n.name, candidate, limit)
	return d, d <= limit
}

// lowerBound returns a lower bound of the candidate's distance. It may stop as soon as the
// bound exceeds limit.
func (n *neighborhood) lowerBound(candidate string, limit int) int {
	longer := len(candidate) - len(n.name)
	if longer > limit || -longer > limit {
		return limit + 1
	}
	extra := 0 // the candidate's bytes that name lacks
	for i := range len(candidate) {
		b := candidate[i]
		n.counts[b]--
		if n.counts[b] < 0 {
			extra++
		}
	}
	for i := range len(candidate) {
		n.counts[candidate[i]]++
	}
	return max(extra, extra-longer) // extra-longer: name's bytes that it lacks
}

// rows are three rows of the table of distances between all beginnings of two names: the last one, and two before it.
type rows [3][]int

// distance returns how many characters to insert, delete or replace, and neighbors to swap, make one name of another: the distance of
// "optimal string alignment", in which nothing that was swapped changes again. Above a limit it may be any number that is above it too.
func (r *rows) distance(a, b string, limit int) int {
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	if len(a) == 0 || len(b) == 0 {
		return len(a) + len(b)
	}
	for i := range r {
		r[i] = slices.Grow(r[i][:0], len(b)+1)[:len(b)+1]
	}
	for j := range r[2] {
		r[2][j] = j
	}
	least := 0 // of the last row
	for i := range len(a) {
		r[0], r[1], r[2] = r[1], r[2], r[0]
		beforeLast, last, row := r[0], r[1], r[2]
		row[0] = i + 1
		before := least
		least = row[0]
		for j := range len(b) {
			d := last[j]
			if a[i] != b[j] {
				d = 1 + min(d, last[j+1], row[j])
				if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
					d = min(d, 1+beforeLast[j-1])
				}
			}
			row[j+1] = d
			least = min(least, d)
		}
		if min(before, least) > limit { // what follows comes of these two rows
			return limit + 1
		}
	}
	return r[2][len(b)]
}

// Word returns the one of a few known words that name looks like, or "". A word looks
// like another if at most one letter in three is wrong, or if it has the same letters in
// another order. That is stricter than Nearest: "exit" and "func" are not like "exec".
func Word(name string, known []string) string {
	// A long name is far from every word, and comparing it takes time.
	if len(name) > 16 {
		return ""
	}
	best, bestDistance := "", len(name)+1
	var r rows
	for _, w := range known {
		d := r.distance(name, w, max(len(name), len(w)))
		if (3*d <= len(w) || sortedBytes(name) == sortedBytes(w)) && d < bestDistance {
			best, bestDistance = w, d
		}
	}
	return best
}

func sortedBytes(s string) string {
	b := []byte(s)
	slices.Sort(b)
	return string(b)
}
