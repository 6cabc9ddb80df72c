package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestMovedOut: GCC moves the least of two numbers out of a loop, and notes in the loop that what is passed is in the register it was in before, where another variable has been since: in
// brotli's encoder too. What is passed with it, and the loop leaves, is there.
func TestMovedOut(t *testing.T) {
	const source = `
typedef unsigned long size;
struct queue { unsigned item[8]; size count; };
struct node { unsigned length; float cost; };
volatile unsigned seen;
static inline size least(size a, size b) { return a < b ? a : b; }
static size entries(const struct queue *q) { return least(q->count, 8); }
size update(const struct queue *q, struct node *nodes, size most, const float *cost, size limit)
{
	size result = 0;
	most = most > 10 ? 5 : 1;
	for (size k = 0; k < entries(q) && k < most; k++) {
		unsigned start = q->item[k & 7];
		float base = cost[start];
		for (size l = 2; l <= limit; l++) {
			float c = base + cost[l];
			if (c < nodes[start + l].cost) {
				nodes[start + l].cost = c;
				nodes[start + l].length = l;
				result = result > l ? result : l;
			}
		}
		if (k >= 2) continue;
		for (size l = limit; l > 2; l -= 3)
			if (cost[l] < nodes[start + l].cost) {
				nodes[start + l].length = 1;
				result = result > l ? result : l;
			}
	}
	return result;
}
`
	img := built(t, "gcc-12", "-O2 -shared -fPIC", map[string]string{"a.c": source})
	for definition, doubtful := range map[string]bool{"least a": true, "least b": false, "entries q": false} {
		p := plantest.New(t, img, definition, plan.Options{})
		if len(p.Sites) != 2 {
			t.Fatalf("%s: probes: %v", definition, p.Sites)
		}
		for i := range p.Sites {
			v := p.Sites[i].Args[0].Variable
			if want := contradictory(doubtful && i > 0); !v.Located() || v.Loc.Doubt != want {
				t.Errorf("%s at %v: %v is doubtful for %q, and not %q", definition, &p.Sites[i], v, v.Loc.Doubt, want)
			}
		}
	}
}

// TestMovedOutPart: of a body that compares what changes in the loop with what does not, only what makes the latter is in front of it, and the comparison is the caller's branch.
func TestMovedOutPart(t *testing.T) {
	const source = `
typedef unsigned long size;
size table[256];
static inline int other(size i, const size *p) { size limit = *p * 3; return i != limit; }
size until(size n, size most, size z)
{
	size r = z, q = z * most + 3, i = 0;
	if (z > 900) { n ^= 1; q++; }
	while (other(i, &n)) {
		i++;
		if (table[(r + i) & 255] == q || i > most) break;
		r += i * z;
	}
	return r;
}
`
	for _, cc := range []string{"gcc-11", "gcc-12"} {
		img := built(t, cc, "-O2 -shared -fPIC", map[string]string{"a.c": source})
		p := plantest.New(t, img, "other i", plan.Options{})
		if len(p.Sites) != 2 {
			t.Fatalf("%s: probes: %v", cc, p.Sites)
		}
		for i := range p.Sites {
			if v := p.Sites[i].Args[0].Variable; !v.Located() || v.Loc.Doubt != contradictory(false) {
				t.Errorf("%s at %v: %v is doubtful for %q", cc, &p.Sites[i], v, v.Loc.Doubt)
			}
		}
	}
}

// TestMovedOutAlone: all of the body is in front of the loop, where it reads what is passed in the register in which the loop then makes a sum that begins with that. Where the sum itself is
// passed, or what is passed has a register that the loop leaves, the note is right.
func TestMovedOutAlone(t *testing.T) {
	const source = `
typedef unsigned long size;
size table[256];
static inline __attribute__((always_inline)) int below(size i, size n, size m)
{
	size a = (n * m + 7) / 3, b = m * 5 + n;
	return i < (a < b ? a : b);
}
size first(size n, size m, size z)
{
	size r = z, q = z * m + 3;
	for (size i = z & 3; i < m; i += 2) {
		if (below(i, n, z)) r += table[i & 255] ^ q;
		else r += q;
	}
	return r;
}
static inline __attribute__((always_inline)) int within(size i, size n, size m)
{
	size a = (n * m + 7) / 3, b = m * 5 + n;
	return i < (a < b ? a : b);
}
size sum(size n, size m, size z)
{
	size r = z, q = z * m + 3;
	for (size i = z & 3; i < m; i += 2) {
		if (within(i, n, r)) r += table[i & 255] ^ q;
		else r += q;
	}
	return r;
}
`
	for _, cc := range []string{"gcc-11", "gcc-12"} {
		img := built(t, cc, "-Os -shared -fPIC", map[string]string{"a.c": source})
		isSure(t, cc, img, "below m", 1, false)
		isSure(t, cc, img, "below i", 1, true)
		isSure(t, cc, img, "within m", 1, true)
		isSure(t, cc, img, "within i", 1, true)
	}
}
