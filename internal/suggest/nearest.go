// Package suggest finds the names that a user probably meant.
package suggest

import (
	"iter"
	"slices"
	"strings"

	"github.com/agext/levenshtein"
)

// Nearest returns up to count candidates that a user who wrote name may have meant, nearest
// first; equally near ones are in alphabetical order. Candidates may repeat; the result does
// not.
//
// The distance is the number of characters to insert, delete or replace. A candidate is near
// if its distance is at most a third of the length of name, rounded to the nearest number.
// It is also near if it contains name and name has three characters or more, so that
// "vfs_read" suggests "ksys_vfs_read_iter". A name of more than 512 characters is near only
// to names that contain it.
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
	runes  []rune   // one for each byte: a character is a byte, as in patterns
	counts [256]int // how often each byte occurs in name
	limit  int      // distance of the farthest near name

	candidate []rune // reused
}

func newNeighborhood(name string) *neighborhood {
	n := &neighborhood{name: name, runes: appendBytes(nil, name)}
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
	n.candidate = appendBytes(n.candidate[:0], candidate)
	// Without a maximum cost (the third argument), although we have one: given
	// a maximum, levenshtein v1.2.3 can return too short a distance, such as
	// 3 instead of 8 from "alloc_map.isra.2" to "tcp_clear.isra.1" with 5.
	d, _, _ := levenshtein.Calculate(n.runes, n.candidate, 0, 1, 1, 1)
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

func appendBytes(runes []rune, s string) []rune {
	for i := range len(s) {
		runes = append(runes, rune(s[i]))
	}
	return runes
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
	for _, w := range known {
		d := levenshtein.Distance(name, w, nil)
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
