package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestStoredLater: GCC moves a store of a member behind the first instructions of a body that is passed the whole, over a branch too. The marker of its statement stays before them.
func TestStoredLater(t *testing.T) {
	const source = `
struct vec {
	vec() = default;
	vec(float x, float y) : x(x), y(y) {}
	float x, y;
};
struct rot { float s, c; };
struct pose { vec c; float a; };
struct speed { vec v; float w; };
inline vec operator+(const vec &a, const vec &b) { return vec(a.x + b.x, a.y + b.y); }
inline vec operator-(const vec &a, const vec &b) { return vec(a.x - b.x, a.y - b.y); }
inline float cross(const vec &a, const vec &b) { return a.x * b.y - a.y * b.x; }
inline vec turn(const rot &q, const vec &v) { return vec(q.c * v.x - q.s * v.y, q.s * v.x + q.c * v.y); }
struct joint {
	virtual ~joint() {}
	int ia, ib; vec ca, cb; float ma, mb, na, nb;
	vec la, lb, local, other, axis, perp; float a1, a2, mass, s1, s2;
	void begin(pose *p, speed *v);
};
__attribute__((noipa)) float root(float x) { return x / 2; }
__attribute__((noipa)) void joint::begin(pose *p, speed *v)
{
	vec pa = p[ia].c; float aa = p[ia].a; vec va = v[ia].v; float wa = v[ia].w;
	vec pb = p[ib].c; float ab = p[ib].a; vec vb = v[ib].v; float wb = v[ib].w;
	rot qa{root(aa), root(aa + 1)}, qb{root(ab), root(ab + 1)};
	vec ra = turn(qa, la - ca);
	vec rb = turn(qb, lb - cb);
	vec d = (pb - pa) + rb - ra;
	{
		axis = turn(qa, local);
		a1 = cross(d + ra, axis);
		a2 = cross(rb, axis);
		mass = ma + mb + na * a1 * a1 + nb * a2 * a2;
		if (mass > 0.0f)
			mass = 1.0f / mass;
	}
	{
		perp = turn(qa, other);
		s1 = cross(d + ra, perp);
		s2 = cross(rb, perp);
	}
	v[ia].v = va + rb; v[ib].v = vb + ra; v[ia].w = wa + s1; v[ib].w = wb;
}
int main(void)
{
	static joint j;
	pose p[2] = {{{1, 2}, 3}, {{4, 5}, 6}};
	speed v[2] = {{{1, 2}, 3}, {{4, 5}, 6}};
	j.ib = 1;
	j.local = vec(1, 2);
	j.other = vec(5, 4);
	j.begin(p, v);
	return (int)j.s1;
}
`
	for _, tt := range []struct {
		options string
		late    []bool // by site: as runs show
	}{{"-O2", []bool{false, false, true, false}}, {"-O2 -mtune=silvermont", []bool{true, false, true, false}}, {"-O2 -mtune=znver2", []bool{false, false, false, false}}} {
		p := plantest.New(t, built(t, "g++-11", tt.options, map[string]string{"a.cc": source}), "cross b", plan.Options{})
		if len(p.Sites) != len(tt.late) {
			t.Errorf("%s: %d sites", tt.options, len(p.Sites))
			continue
		}
		for i, late := range tt.late {
			if v := p.Sites[i].Args[0].Variable; !v.Located() || (v.Loc.Doubt == reasons.Contradictory) != late {
				t.Errorf("%s: %v: %v, and the doubt is %v", tt.options, &p.Sites[i], v, v.Loc.Doubt)
			}
		}
	}
}
