package twin

import (
	"encoding/binary"
	"fmt"
)

// furthest is how many steps apart two sequences may be that are aligned in order: time and memory grow with its square. What is
// further apart is paired by values only.
const furthest = 3000

// pairs says which hit is which run: of[i] is the hit of run i, at[j] the run of hit j, or -1.
type pairs struct {
	of, at    []int
	reordered int // paired by values, out of order
	gaps      int // paired because both were left in one gap
}

func (p *pairs) join(run, hit int) { p.of[run], p.at[hit] = hit, run }

// align finds the hit of each run. can says whether a run can be one of a site, as far as it is known where it was called; called whether
// it is known that it was called there.
func align(runs, hits []hit, can, called func(run, hit *hit) bool) *pairs {
	p := &pairs{of: make([]int, len(runs)), at: make([]int, len(hits))}
	for i := range p.of {
		p.of[i] = -1
	}
	for j := range p.at {
		p.at[j] = -1
	}
	p.inOrder(runs, hits)
	p.byValues(runs, hits)
	p.inPlaces(runs, hits, called)
	p.inGaps(runs, hits, can)
	return p
}

// fits reports whether a hit can be that of a run: no value that both have differs.
func fits(run, hit *hit) bool {
	for k := range min(len(run.values), len(hit.values)) {
		if a, b := run.values[k], hit.values[k]; a != 0 && b != 0 && a != b {
			return false
		}
	}
	return true
}

// inOrder aligns in order, with as few left over as possible (Myers, "An O(ND) Difference Algorithm and Its Variations",
// Algorithmica 1, 1986): reach[d][k] is the furthest run that d steps lead to on diagonal k, which is the run's number less the hit's.
func (p *pairs) inOrder(runs, hits []hit) {
	first, n, m := 0, len(runs), len(hits)
	for first < n && first < m && fits(&runs[first], &hits[first]) {
		p.join(first, first)
		first++
	}
	for n > first && m > first && fits(&runs[n-1], &hits[m-1]) {
		n, m = n-1, m-1
		p.join(n, m)
	}
	runs, hits = runs[first:n], hits[first:m]
	n, m = len(runs), len(hits)
	if n == 0 || m == 0 {
		return
	}
	var reach [][]int32
	// start is where a path of d steps comes to diagonal k: by a run without a hit, or by a hit without a run.
	start := func(d, k int) (run, from int) {
		if d == 0 {
			return 0, 0
		}
		before := func(k int) int { return int(reach[d-1][k+d-1]) }
		if k == -d || k != d && before(k-1) < before(k+1) {
			return before(k + 1), k + 1
		}
		return before(k-1) + 1, k - 1
	}
	for d := range min(n+m, furthest) + 1 {
		reach = append(reach, make([]int32, 2*d+1))
		for k := -d; k <= d; k += 2 {
			i, _ := start(d, k)
			for i < n && i-k < m && fits(&runs[i], &hits[i-k]) {
				i++
			}
			reach[d][k+d] = int32(i)
			if i < n || i-k < m {
				continue
			}
			for ; d >= 0; d-- { // back
				begin, from := start(d, k)
				for i > begin {
					i--
					p.join(first+i, first+i-k)
				}
				if d > 0 {
					k, i = from, int(reach[d-1][from+d-1])
				}
			}
			return
		}
	}
}

// byValues pairs what is left by equal values. A hit without any value is no evidence.
func (p *pairs) byValues(runs, hits []hit) {
	left := make(map[string]map[string][]int) // runs by values, for each set of parameters of which hits have values
	for j := range hits {
		if p.at[j] >= 0 || len(runs) == 0 {
			continue
		}
		var which []int
		for k := range len(runs[0].values) {
			if k < len(hits[j].values) && hits[j].values[k] != 0 {
				which = append(which, k)
			}
		}
		if len(which) == 0 {
			continue
		}
		set := fmt.Sprint(which)
		if left[set] == nil {
			left[set] = make(map[string][]int)
			for i := range runs {
				if p.of[i] < 0 {
					v := text(&runs[i], which)
					left[set][v] = append(left[set][v], i)
				}
			}
		}
		v := text(&hits[j], which)
		left[set][v] = p.joinFirst(left[set][v], j)
	}
}

// joinFirst pairs a hit with the first run of a list that has no hit yet, if there is one, and returns those behind it.
func (p *pairs) joinFirst(runs []int, hit int) []int {
	for len(runs) > 0 && p.of[runs[0]] >= 0 {
		runs = runs[1:]
	}
	if len(runs) == 0 {
		return nil
	}
	p.join(runs[0], hit)
	p.reordered++
	return runs[1:]
}

// inPlaces pairs what is left without any value with runs that were called where the site's body is. Where most runs have no hit, as of
// lzip's price_bit, of which LLVM selects one of two results, the sequences are too far apart for more than values.
func (p *pairs) inPlaces(runs, hits []hit, called func(run, hit *hit) bool) {
	left := make(map[*site][]int) // runs that were called at a site
	for j := range hits {
		if p.at[j] >= 0 || valued(&hits[j]) {
			continue
		}
		s := hits[j].site
		list, ok := left[s]
		for i := 0; !ok && i < len(runs); i++ {
			if p.of[i] < 0 && called(&runs[i], &hits[j]) {
				list = append(list, i)
			}
		}
		left[s] = p.joinFirst(list, j)
	}
}

// text has some of a hit's values.
func text(h *hit, which []int) string {
	var b []byte
	for _, k := range which {
		b = binary.LittleEndian.AppendUint32(b, uint32(h.values[k]))
	}
	return string(b)
}

// inGaps pairs, one by one, runs and hits that are left between two pairs: some value is wrong. It is not where the run was called
// elsewhere, since then there are a hit too many and one too few.
func (p *pairs) inGaps(runs, hits []hit, can func(run, hit *hit) bool) {
	run := 0 // the first that the next hit can be
	for j := range p.at {
		switch {
		case p.at[j] >= 0:
			run = p.at[j] + 1
		case run < len(p.of) && p.of[run] < 0 && valued(&hits[j]) && !hits[j].site.Way.Again && can(&runs[run], &hits[j]):
			p.join(run, j)
			p.gaps++
			run++
		}
	}
}

// valued reports whether a hit has any value.
func valued(h *hit) bool {
	for _, v := range h.values {
		if v != 0 {
			return true
		}
	}
	return false
}
