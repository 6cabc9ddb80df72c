package plan_test

// behind are programs in which what the debug information names is stored by instructions behind the probe. See noted.
var behind = []asMade{
	{"a part in a slot that is stored behind a body without code", `
struct v { double x, y; };
static inline struct v mk(const double x, const double y) { struct v r = {x, y}; return r; }
static inline struct v add(const struct v a, const struct v b) { return mk(a.x + b.x, a.y + b.y); }
static inline struct v sub(const struct v a, const struct v b) { return mk(a.x - b.x, a.y - b.y); }
static inline struct v neg(const struct v a) { return mk(-a.x, -a.y); }
static inline struct v mul(const struct v a, const double s) { return mk(a.x * s, a.y * s); }
static inline double dot(const struct v a, const struct v b) { return a.x * b.x + a.y * b.y; }
static inline double cross(const struct v a, const struct v b) { return a.x * b.y - a.y * b.x; }
static inline struct v perp(const struct v a) { return mk(-a.y, a.x); }
static inline struct v rotate(const struct v a, const struct v b) { return mk(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }
static inline double fmaxd(double a, double b) { return a > b ? a : b; }
static inline double fmind(double a, double b) { return a < b ? a : b; }
static inline double clamp(double f, double lo, double hi) { return fmind(fmaxd(f, lo), hi); }
struct body { void *fn[2]; double m, m_inv, i, i_inv; struct v cog, p, v, f; double a, w, t; double tr[6]; void *data; struct v v_bias; double w_bias; };
struct contact { struct v r1, r2; double nMass, tMass, bounce, jnAcc, jtAcc, jBias, bias; unsigned long hash; };
struct arb { double e, u; struct v vr; void *data; void *sa, *sb; struct body *a, *b; void *th[4]; int count; struct contact *contacts; struct v n; };
static inline struct v relative(struct body *a, struct body *b, struct v r1, struct v r2) { return sub(add(b->v, mul(perp(r2), b->w)), add(a->v, mul(perp(r1), a->w))); }
static inline void apply(struct body *body, struct v j, struct v r) { body->v = add(body->v, mul(j, body->m_inv)); body->w += body->i_inv * cross(r, j); }
static inline void both(struct body *a, struct body *b, struct v r1, struct v r2, struct v j) { apply(a, neg(j), r1); apply(b, j, r2); }
static inline void bias1(struct body *body, struct v j, struct v r) { body->v_bias = add(body->v_bias, mul(j, body->m_inv)); body->w_bias += body->i_inv * cross(r, j); }
static inline void bias2(struct body *a, struct body *b, struct v r1, struct v r2, struct v j) { bias1(a, neg(j), r1); bias1(b, j, r2); }
__attribute__((noinline)) void impulse(struct arb *arb)
{
	struct body *a = arb->a, *b = arb->b;
	struct v n = arb->n, surface = arb->vr;
	double friction = arb->u;
	for (int i = 0; i < arb->count; i++) {
		struct contact *con = &arb->contacts[i];
		double nMass = con->nMass;
		struct v r1 = con->r1, r2 = con->r2;
		struct v vb1 = add(a->v_bias, mul(perp(r1), a->w_bias));
		struct v vb2 = add(b->v_bias, mul(perp(r2), b->w_bias));
		struct v vr = add(relative(a, b, r1, r2), surface);
		double vbn = dot(sub(vb2, vb1), n), vrn = dot(vr, n), vrt = dot(vr, perp(n));
		double jbn = (con->bias - vbn) * nMass, jbnOld = con->jBias;
		con->jBias = fmaxd(jbnOld + jbn, 0);
		double jn = -(con->bounce + vrn) * nMass, jnOld = con->jnAcc;
		con->jnAcc = fmaxd(jnOld + jn, 0);
		double jtMax = friction * con->jnAcc, jt = -vrt * con->tMass, jtOld = con->jtAcc;
		con->jtAcc = clamp(jtOld + jt, -jtMax, jtMax);
		bias2(a, b, r1, r2, mul(n, con->jBias - jbnOld));
		both(a, b, r1, r2, rotate(n, mk(con->jnAcc - jnOld, con->jtAcc - jtOld)));
	}
}
int main(void)
{
	static struct body a = {.m_inv = 1}, b = {.m_inv = 2};
	static struct contact c[2];
	static struct arb arb = {.a = &a, .b = &b, .count = 2, .contacts = c};
	impulse(&arb);
	return 0;
}
`, "c", "add a", []string{"gcc-12 -O2", "gcc-12 -O3"}, "~"},
	{"an object below the stack pointer", `
struct transform { double a, b, c, d, x, y; };
struct box { double l, b, r, t; };
struct body { long other[14]; struct transform at; };
struct shape;
struct kind { long id; struct box (*cache)(struct shape *, struct transform); };
struct shape { struct kind *kind; void *space; struct body *body; struct box box; };
static inline struct box update(struct shape *s, struct transform t) { return s->box = s->kind->cache(s, t); }
static inline struct box refresh(struct shape *s) { return update(s, s->body->at); }
__attribute__((noinline)) void each(struct shape *s, void *unused) { refresh(s); }
__attribute__((noinline)) static struct box cache(struct shape *s, struct transform t) { return (struct box){t.a, t.b, t.c + t.x, t.d}; }
int main(void)
{
	struct kind k = {1, cache};
	static struct body b;
	struct shape s = {&k, 0, &b};
	each(&s, 0);
	return s.box.r == 99;
}
`, "c", "update t", []string{"gcc-12 -O2 -gno-statement-frontiers", "gcc-12 -O2 -gno-variable-location-views"}, "~"},
	{"a copy of an object that is stored behind bodies without code", `
struct vec { float x, y; vec() {} vec(float a, float b) : x(a), y(b) {} };
struct rot { float s, c; };
struct transform { vec p; rot q; };
inline vec operator*(float s, const vec &a) { return vec(s * a.x, s * a.y); }
inline vec operator+(const vec &a, const vec &b) { return vec(a.x + b.x, a.y + b.y); }
inline vec operator-(const vec &a, const vec &b) { return vec(a.x - b.x, a.y - b.y); }
inline vec turned(const rot &q, const vec &v) { return vec(q.c * v.x - q.s * v.y, q.s * v.x + q.c * v.y); }
inline vec moved(const transform &t, const vec &v) { return vec(t.q.c * v.x - t.q.s * v.y + t.p.x, t.q.s * v.x + t.q.c * v.y + t.p.y); }
__attribute__((const, noinline)) float sinf(float x) { return x * x; } __attribute__((const, noinline)) float cosf(float x) { return 1 - x * x; }
struct sweep {
	vec local, c0, c; float a0, a, alpha;
	void at(transform *t, float beta) const
	{
		t->p = (1.0f - beta) * c0 + beta * c;
		float angle = (1.0f - beta) * a0 + beta * a;
		t->q.s = sinf(angle);
		t->q.c = cosf(angle);
		t->p = t->p - turned(t->q, local);
	}
};
struct proxy { const vec *v; int n; };
struct cache { unsigned short n; unsigned char a[3], b[3]; };
struct separation {
	const proxy *pa, *pb; sweep one, two; int type; vec point, axis;
	float init(const cache *k, const proxy *a, const sweep &sa, const proxy *b, const sweep &sb, float t)
	{
		pa = a;
		pb = b;
		int n = k->n;
		one = sa;
		two = sb;
		transform x, y;
		one.at(&x, t);
		two.at(&y, t);
		if (n == 1) {
			type = 0;
			axis = moved(y, pb->v[k->b[0]]) - moved(x, pa->v[k->a[0]]);
			return axis.x;
		} else if (k->a[0] == k->a[1]) {
			type = 2;
			vec b1 = b->v[k->b[0]], b2 = b->v[k->b[1]];
			axis = b2 - b1;
			point = .5f * (b1 + b2);
			vec p = moved(y, point), q = moved(x, a->v[k->a[0]]);
			return (p - q).x * axis.x;
		}
		type = 1;
		vec a1 = pa->v[k->a[0]], a2 = pa->v[k->a[1]];
		axis = a2 - a1;
		point = .5f * (a1 + a2);
		vec p = moved(x, point), q = moved(y, pb->v[k->b[0]]);
		return (p - q).y * axis.y;
	}
	__attribute__((noinline)) float later(float t) const { transform x, y; one.at(&x, t); two.at(&y, t); return x.p.x + y.q.s; }
};
struct input { proxy pa, pb; sweep a, b; float most; };
__attribute__((noinline)) void near(cache *k, float t) { asm volatile("" ::"r"(k) : "memory"); }
__attribute__((noinline)) float impact(const input *in)
{
	const proxy *a = &in->pa, *b = &in->pb;
	sweep sa = in->a, sb = in->b;
	sa.a -= 1;
	sb.a0 += 2;
	float t = 0, r = 0;
	cache k;
	k.n = 0;
	for (int i = 0; i < 20; i++) {
		transform x, y;
		sa.at(&x, t);
		sb.at(&y, t);
		near(&k, x.p.x + y.p.y);
		separation f;
		r += f.init(&k, a, sa, b, sb, t);
		if (r > in->most)
			break;
		t += f.later(t) * .01f;
	}
	return r;
}
volatile float sink;
int main(int c, char **)
{
	static vec all[4];
	input in = {{all, 4}, {all, 4}, {{1, 2}, {3, 4}, {5, 6}, 7, 8, 9}, {{1, 2}, {3, 4}, {5, 6}, 7, 8, 9}, float(c)};
	in.a.local = in.b.c = vec(3, 4);
	sink = impact(&in);
}
`, "cpp", `operator\* a`, []string{"g++-12 -O3"}, "~"},
}
