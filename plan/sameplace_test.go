package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestSamePlace: two instances of a function, of which GCC has left only the markers, can begin at one instruction. Their views say which of the markers are of which, and so where the
// function runs from which both have been called. Of two calls in a loop of two turns, which GCC unrolls, both run in the first turn.
func TestSamePlace(t *testing.T) {
	const source = `
struct vec { vec() = default; vec(float x, float y) : x(x), y(y) {} float x, y; };
inline vec operator+(const vec &a, const vec &b) { return vec(a.x + b.x, a.y + b.y); }
inline vec operator-(const vec &a, const vec &b) { return vec(a.x - b.x, a.y - b.y); }
inline vec operator*(float s, const vec &a) { return vec(s * a.x, s * a.y); }
inline float cross(const vec &a, const vec &b) { return a.x * b.y - a.y * b.x; }
inline vec across(float s, const vec &a) { return vec(-s * a.y, s * a.x); }
struct joint { vec pa, pb; float wa, wb, m, k; };
__attribute__((noinline)) void solve(joint *j, const vec &ra, const vec &rb, float h)
{
	vec va = j->pa, vb = j->pb;
	float wa = j->wa, wb = j->wb;
	for (int i = 0; i < 2; i++) {
		vec c = vb + across(wb, rb) - va - across(wa, ra);
		vec p = -j->m * c;
		va = va - h * p;
		wa -= j->k * cross(ra, p);
		vb = vb + h * p;
		wb += j->k * cross(rb, p);
	}
	j->pa = va, j->pb = vb, j->wa = wa, j->wb = wb;
}
int main(int argc, char **argv)
{
	joint j = {vec(1, 2), vec(3, 4), 1, 2, 3, float(argc)};
	vec a(argc, 1), b(2, argc);
	solve(&j, a, b, 2);
	return j.wa > 7;
}
`
	p := plantest.New(t, built(t, "g++-12", "-O3", map[string]string{"a.cc": source}), "across s", plan.Options{})
	first := make(map[uint64]int)
	for i := range p.Sites {
		first[p.Sites[i].Addr]++
	}
	most := 0
	for _, n := range first {
		most = max(most, n)
	}
	if most != 2 {
		t.Errorf("in the first turn %d of 2 calls have a probe: %v", most, p.Sites)
	}
}
