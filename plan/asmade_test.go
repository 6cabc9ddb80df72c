package plan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/plan"
)

// asMade is a program, and what is known of arguments of it.
type asMade struct {
	name, source, extension, definition string
	compilers                           []string
	want                                string // of each argument at inlined bodies: ! is sure, ~ doubtful
}

// noted are programs in which a compiler's note of an inlined function's argument lacks something of how it was made.
var noted = []asMade{
	{"a bound that a conditional move has lowered", `
#include <stdlib.h>
struct node { long weight; struct node *tail; int count; };
volatile int sink;
static void step(struct node *(*all)[2], struct node *leaves, int used, struct node **pool, int at)
{
	struct node *next;
	int last = all[at][1]->count;
	if (at == 0 && last >= used)
		return;
	all[at][1] = next;
	if (at == 0) {
		next->tail = 0;
		long sum = all[at - 1][0]->weight + all[at - 1][1]->weight;
		if (last < used && sum > leaves[last].weight)
			sink++;
	}
}
static void finish(struct node *(*all)[2], struct node *leaves, int used, struct node **pool, int at)
{
	int last = all[at][1]->count;
	long sum = all[at - 1][0]->weight + all[at - 1][1]->weight;
	if (last < used && sum > leaves[last].weight) {
		struct node *next = *pool, *old = all[at][1]->tail;
		all[at][1] = next;
		next->tail = old;
	}
}
static void begin(struct node **pool, const struct node *leaves, int bits)
{
	struct node *second = (*pool)++;
	second->tail = 0;
}
__attribute__((noinline, noclone)) int lengths(const long *amounts, struct node *(*all)[2], int n, int bits, int runs)
{
	int used = 0;
	struct node *leaves = malloc(n * sizeof *leaves);
	for (int i = 0; i < n; i++)
		if (amounts[i])
			used++;
	for (int i = 0; i < used; i++)
		if (leaves[i].weight >= 1l << 55)
			sink = i;
	if (used - 1 < bits)
		bits = used - 1;
	struct node *pool = malloc(bits * 2 * used * sizeof *pool);
	begin(&pool, leaves, bits);
	for (int i = 0; i < runs - 1; i++)
		step(all, leaves, used, &pool, bits - 1);
	finish(all, leaves, used, &pool, bits - 1);
	return 0;
}
int main(int c, char **v)
{
	long amounts[] = {c, 2, 3, 4, 0, c - 1};
	struct node one = {0, 0, 2}, *all[9][2];
	for (int i = 0; i < 18; i++)
		all[i / 2][i % 2] = &one;
	sink = lengths(amounts, all, c + 4, 15, 1);
	return sink + lengths(amounts, all, c + 3, 7, 0) == 99;
}
`, "c", "begin bits", []string{"gcc-11 -O2", "gcc-12 -O2", "gcc-12 -O3"}, "~"},
	{"an object into which the body's instructions store before its first marker", storesEarly, "cpp", "Coder::bit m", []string{"g++-12 -O2 -mtune=skylake", "g++-12 -O2 -mtune=silvermont"}, "~"},
	{"an object into which they store behind it", storesEarly, "cpp", "Coder::bit m", []string{"g++-12 -O2 -mtune=core2", "g++-11 -O2"}, "!"},
	{"a hoisted statement", `
struct coder { unsigned bits, mask; unsigned short probs[4 * 0x300]; };
struct coder all;
volatile unsigned sink;
static inline unsigned tree(const unsigned short *p, const unsigned bits, unsigned symbol)
{
	unsigned price = 0;
	symbol += 1u << bits;
	do {
		const unsigned bit = symbol & 1;
		symbol >>= 1;
		price += p[symbol] ^ bit;
	} while (symbol != 1);
	return price;
}
__attribute__((noinline)) static unsigned literal(const struct coder *c, unsigned pos, unsigned before, _Bool matched, unsigned byte, unsigned symbol)
{
	const unsigned short *const p = c->probs + 0x300u * (((pos & c->mask) << c->bits) + (before >> (8u - c->bits)));
	unsigned price = 0;
	if (!matched) {
		price = tree(p, 8, symbol);
	} else {
		unsigned offset = 0x100;
		symbol += 1u << 8;
		do {
			byte <<= 1;
			price += p[(offset + (byte & offset) + (symbol >> 8))];
			symbol <<= 1;
			offset &= ~(byte ^ symbol);
		} while (symbol < (1u << 16));
	}
	return price;
}
int main(int c, char **v)
{
	all.bits = all.mask = 1;
	for (int i = 0; i < 6; i++)
		sink += literal(&all, i, i * 50, i & 1, i * 40, 30 + i);
	return sink == 99;
}
`, "c", "tree symbol", []string{"gcc-11 -O2", "gcc-12 -O2", "gcc-12 -O3", "gcc-12 -Os"}, "~"},
	{"a statement whose instruction is ahead of the body", `
#include <stdint.h>
#include <stdlib.h>
struct rc { uint64_t low, count, pos; uint32_t symbols[58]; uint16_t *probs[58]; };
struct mf { const uint8_t *buffer; uint32_t ahead, pos; };
struct coder { struct rc rc; uint32_t state, reps[4]; uint16_t literal[16][0x300]; };
static inline void bit(struct rc *rc, uint16_t *prob, uint32_t b) { rc->symbols[rc->count] = b; rc->probs[rc->count] = prob; ++rc->count; }
static inline void tree(struct rc *rc, uint16_t *probs, uint32_t levels, uint32_t symbol)
{
	uint32_t at = 1;
	do { const uint32_t b = (symbol >> --levels) & 1; bit(rc, &probs[at], b); at = (at << 1) + b; } while (levels != 0);
}
static inline void matched(struct rc *rc, uint16_t *subcoder, uint32_t match_byte, uint32_t symbol)
{
	uint32_t offset = 0x100;
	symbol += UINT32_C(1) << 8;
	do {
		match_byte <<= 1;
		const uint32_t match_bit = match_byte & offset;
		const uint32_t index = offset + match_bit + (symbol >> 8);
		const uint32_t b = (symbol >> 7) & 1;
		bit(rc, &subcoder[index], b);
		symbol <<= 1;
		offset &= ~(match_byte ^ symbol);
	} while (symbol < (UINT32_C(1) << 16));
}
static inline void literal(struct coder *c, struct mf *mf, uint32_t position)
{
	const uint8_t cur = mf->buffer[mf->pos - mf->ahead];
	uint16_t *sub = c->literal[((position & 3) << 2) + (mf->buffer[mf->pos - mf->ahead - 1] >> 6)];
	if (c->state < 7) {
		tree(&c->rc, sub, 8, cur);
	} else {
		const uint8_t match_byte = mf->buffer[mf->pos - c->reps[0] - 1 - mf->ahead];
		matched(&c->rc, sub, match_byte, cur);
	}
	c->state = c->state < 4 ? 0 : c->state < 10 ? c->state - 3 : c->state - 6;
}
volatile uint32_t sink;
__attribute__((noinline)) void encode(struct coder *c, struct mf *mf, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		c->rc.count = 0;
		literal(c, mf, i);
		for (uint64_t k = 0; k < c->rc.count; k++) sink += c->rc.symbols[k] + (c->rc.probs[k] - c->literal[0]);
		mf->pos++;
		if (i % 3 == 0) c->state += 7;
	}
}
int main(int argc, char **v)
{
	static struct coder c; uint8_t text[64];
	for (int i = 0; i < 64; i++) text[i] = 40 + i * 3;
	struct mf mf = {text, 0, 9};
	c.reps[0] = argc; c.state = 7;
	encode(&c, &mf, 20);
	return 0;
}
`, "c", "matched symbol", []string{"gcc-11 -O3", "gcc-12 -O3"}, "~"},
	{"bit-fields", `
struct record { unsigned size, one : 1, two : 2, three : 5; int four : 4, five : 4; unsigned char six, seven : 3; short eight : 9; };
volatile long turns;
static inline long use(unsigned size, unsigned one, unsigned two, unsigned three, int four, int five, unsigned six, unsigned seven)
{
	long r = turns;
	if (one && size > 2) r += 3;
	if (two > 1 || four < 0) r ^= 9;
	if (three > 7) r += three;
	if (five < 2) r += five * 2;
	if (six > seven) r++;
	return r + turns;
}
__attribute__((noinline)) long take(struct record *p) { return use(p->size, p->one, p->two, p->three, p->four, p->five, p->six, p->seven); }
int main(void) { struct record r = {3, 1, 2, 9, -3, -2, 200, 5}; return take(&r) == 99; }
`, "c", "use size one six seven", []string{"gcc-12 -O2", "gcc-12 -Os"}, "!!!!"},
	{"the second bit", `
struct record { unsigned size, used : 1, learned : 1, core : 1; };
volatile int trace;
static inline unsigned long bytes(unsigned size, unsigned learned)
{
	unsigned long n = 28 + size * 8ul;
	if (learned && size > 2) n += 4;
	if (trace) n += 8;
	return n;
}
__attribute__((noinline)) unsigned long drop(struct record *p) { return bytes(p->size, p->learned); }
int main(void) { struct record r = {3, 0, 1, 1}; return drop(&r) == 99; }
`, "c", "bytes learned", []string{"gcc-12 -O1", "gcc-12 -O2", "gcc-11 -O2"}, "!"},
	{"a spilled half", `
struct state { long sum; void *p; int q[4]; };
__attribute__((noinline)) void use(struct state *s, void *p) { s->sum++; __asm__ volatile("" : : "r"(p) : "memory", "rbx", "rbp", "r12", "r13", "r14", "r15"); }
static inline long make(struct state *s, long n) { use(s, s->p); s->sum += n; return n ^ 5; }
__attribute__((noinline)) void save(struct state *s, unsigned op, void *a, void *b, void *c, void *d)
{
	use(s, a); use(s, b); use(s, c); use(s, d);
	__asm__ volatile("" : : : "rbx", "rbp", "r12", "r13", "r14", "r15");
	s->p = a;
	use(s, (void *)make(s, (long)op));
	use(s, b); use(s, c); use(s, d);
}
int main(int c, char **v) { static struct state s; save(&s, c, v, v, v, v); return s.sum == 99; }
`, "c", "make n", []string{"clang-14 -O1", "clang-14 -O2", "clang-14 -Os"}, "~"},
	{"a loop before", `
static inline unsigned pack(unsigned m, int e) { return m | ((unsigned)(e + 128) << 24); }
static unsigned scaled(unsigned m, int e)
{
	if (!m)
		return 0;
	if (m < 1u << 24) {
		do {
			if (e <= -128)
				return 1;
			e--;
			m <<= 1;
		} while (m < 1u << 24);
	} else {
		while (m >= 1u << 25) {
			if (e >= 127)
				return 2;
			e++;
			m >>= 1;
		}
	}
	return pack(m & ~(1u << 24), e);
}
__attribute__((noinline)) unsigned times(unsigned a, unsigned b) { __asm__ volatile(""); return a * b; }
__attribute__((noinline)) unsigned f(unsigned x) { return times(x, scaled(1, -20)); }
int main(void) { return f(3) == 99; }
`, "c", "pack e", []string{"gcc-12 -O2", "gcc-12 -O3", "gcc-12 -Os"}, "~"},
	{"an object that is stored later", `
struct decimal { unsigned long digits; int exponent; };
__attribute__((noipa)) struct decimal split(double d) { struct decimal r = {(unsigned long)d, (int)d % 7}; return r; }
__attribute__((noipa)) int put(char *to, const struct decimal *f, int n, void *p) { return f->exponent + n; }
static inline int print(char *to, const struct decimal *f, int n, void *p) { return put(to, f, n, p); }
__attribute__((noipa)) int write(char *to, double d)
{
	struct decimal x = split(d);
	return print(to, &x, 5, to + 1);
}
int main(void) { char b[9]; return write(b, 10) + write(b, 20) == 99; }
`, "c", "print f->digits f->exponent", []string{"gcc-12 -O2", "gcc-12 -Os", "gcc-11 -O2"}, "~~"},
	{"operations on numbers of 8 and 16 bits", `
#include <stdbool.h>
struct small { short s; bool b; int i; signed char c; };
volatile long turns;
#define F(name, type) static inline long name(type a) { long r = turns; if (a > 2) r += turns; return r + turns; }
F(shift, int) F(part, char) F(rest, unsigned short) F(not, char)
__attribute__((noipa)) long g1(struct small *p) { return shift(p->s >> 7); }
__attribute__((noipa)) long g2(struct small *p) { return part(p->c / 16); }
__attribute__((noipa)) long g3(struct small *p) { return rest(p->i % 3); }
__attribute__((noipa)) long g4(struct small *p) { return not(!p->b); }
int main(void) { struct small x = {-12001, 1, -7, -47}; return g1(&x) + g2(&x) + g3(&x) + g4(&x) == 99; }
`, "c", "part a; rest a; not a", []string{"gcc-12 -O1", "gcc-12 -O2", "gcc-11 -O2"}, "~"},
	{"operations on numbers of 32 bits", `
volatile long turns;
#define F(name, type) static inline long name(type a) { long r = turns; if (a > 2) r += turns; return r + turns; }
F(absolute, long) F(rest, signed char) F(part, int) F(shift, long)
__attribute__((noipa)) long g1(int a) { return absolute(a < 0 ? -a : a); }
__attribute__((noipa)) long g2(int a) { return rest(a % 5); }
__attribute__((noipa)) long g3(unsigned *p) { return part(*p / 9); }
__attribute__((noipa)) long g4(long k) { return shift((unsigned)k >> 5); }
int main(int c, char **v) { unsigned u = c; return g1(c) + g2(c) + g3(&u) + g4(c) == 99; }
`, "c", "absolute a; rest a; part a; shift a", []string{"gcc-12 -O1", "gcc-12 -O2"}, "~"},
	{"a loop's counter", `
volatile long turns;
static inline long use(unsigned char b, long k) { long r = turns; if (b > 99) r += k; return r + turns; }
__attribute__((noinline)) void tell(int a, unsigned char b, long k) { turns += a + b + k; }
int main(void)
{
	long t = 0;
	for (int i = 0; i < 6; i++) {
		unsigned char b = i * 60;
		long k = i * 1000l - 7;
		tell(i * 3 - 4, b, k);
		t += use(b, k);
	}
	return t == 99;
}
`, "c", "use b k", []string{"clang-14 -O1", "clang-16 -Os", "clang-22 -O1"}, "~~"},
	{"bits that the body does not use", `
#include <stdint.h>
static inline uint32_t load(const uint8_t *p) { return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24; }
static inline uint32_t low(uint32_t v, int n) { uint64_t all = 0xffffffff; return v & ~(all << (8 * n)); }
__attribute__((noinline)) uint32_t get(const uint8_t *p, unsigned n) { uint32_t first = load(p); return low(first, n & 3) + 5; }
int main(void) { static const uint8_t b[] = {1, 2, 3, 4, 5}; return get(b, 1) + get(b + 1, 2) == 99; }
`, "c", "low v", []string{"clang-15 -O1", "clang-16 -O2", "clang-22 -O1"}, "~"},
	{"a truth value", `
#include <cstdint>
struct truth { uint8_t v; explicit truth(uint8_t v) : v(v) {} truth() : v(0) {}
	bool operator==(truth b) const { return ((b.v & 2) & (v & 2)) | (!(b.v & 2) & (v == b.v)); }
	truth operator^(bool b) const { return truth(uint8_t(v ^ uint8_t(b))); } };
struct literal { int x; };
static inline bool sign(literal p) { return p.x & 1; }
static inline int var(literal p) { return p.x >> 1; }
struct solver { truth all[8];
	truth value(literal p) const { return all[var(p)] ^ sign(p); }
	int count(const literal *c, int n) const; };
__attribute__((noinline)) int solver::count(const literal *c, int n) const
{
	int k = 0;
	for (int i = 0; i < n; i++) if (value(c[i]) == truth(0)) k++;
	return k;
}
int main() { solver s; literal c[] = {{2}, {3}, {5}, {22 & 15}}; return s.count(c, 4) == 99; }
`, "cc", "truth::truth v", []string{"g++-12 -O2", "g++-12 -Os", "g++-11 -O2"}, "~"},
	{"a member that is stored nowhere", `
#include <stdio.h>
typedef struct { char text[12]; int key; } item;
static volatile long sink;
static inline int pick(item i, int at) { return i.text[at & 7] + i.key; }
__attribute__((noinline)) void take(int k) { item i = {"hello", k}; sink += pick(i, k); }
int main(void) { for (int k = 1; k < 5; k++) take(k); return sink == 99; }
`, "c", "pick i", []string{"clang-14 -O2", "clang-22 -O2"}, "~"},
	{"members that are stored behind the body", `
typedef struct { int a, b; int list[4]; } box;
static volatile long sink;
static inline int use(const box *p, int i) { return p->list[i & 3] + p->b; }
static inline int turn(box t, int i) { t.list[i & 3]++; return t.list[(i + 1) & 3] + t.b + t.list[i & 3]; }
__attribute__((noinline)) void frame(int k) { box t = {1, k, {k, k + 1, 7, 9}}; sink += use(&t, k); sink += turn(t, k); }
int main(void) { for (int k = 1; k < 5; k++) frame(k); return sink == 99; }
`, "c", "use p->a p->b", []string{"gcc-11 -O2", "gcc-12 -O1", "gcc-12 -O2"}, "~~"},
	{"stores that become one", `
#include <cmath>
struct vec { float x, y; };
struct turn { float s, c; void set(float a) { s = sinf(a); c = cosf(a); } };
struct move { vec p; turn q; };
static inline vec mul(const turn &q, const vec &v) { return {q.c * v.x - q.s * v.y, q.s * v.x + q.c * v.y}; }
static inline vec operator-(const vec &a, const vec &b) { return {a.x - b.x, a.y - b.y}; }
struct body { move m; vec c, l; float a; void sync() { m.q.set(a); m.p = c - mul(m.q, l); } };
__attribute__((noinline)) void all(body *b, int n) { for (int i = 0; i < n; i++) b[i].sync(); }
int main() { static body b[4]; for (int i = 0; i < 4; i++) b[i].a = i + 1, b[i].c.x = i, b[i].l.y = 2; all(b, 4); return b[3].m.p.x == 99; }
`, "cpp", "mul q", []string{"g++-12 -O2"}, "~"},
	{"a field that cuts", `
static volatile long sink;
struct record { unsigned a : 3, b : 7; int c : 9, d : 20; };
static inline long use(unsigned b, int c, int d) { return b * 2 + c * 3 + d; }
__attribute__((noinline)) void take(int k) { struct record x = {k, k * 20, k * -9, k * -99}; sink += use(x.b, x.c, x.d); }
int main(void) { for (int k = 0; k < 9; k++) take(k); return sink == 99; }
`, "c", "use b c d", []string{"gcc-11 -O1", "gcc-12 -O1", "gcc-12 -O2", "gcc-12 -Os"}, "~~~"},
	{"a short that is shifted", `
#include <stdio.h>
static volatile long sink;
static inline long half(int a) { sink += 1; return a * 3L; }
__attribute__((noinline)) void c1(unsigned m) { short s = m; sink += half((s >> 1) - 5); }
int main(void) { for (unsigned k = 1; k < 5; k++) { fprintf(stderr, "true %d\n", ((short)(k * 21001u) >> 1) - 5); c1(k * 21001u); } printf("%ld\n", sink); return 0; }
`, "c", "half a", []string{"gcc-11 -O2", "gcc-12 -O2"}, "~"},
	{"a constant parameter without its upper bits", `
#include <stdio.h>
#include <stdint.h>
static uint32_t prices[64]; struct coder { uint32_t pad[9], size; };
static inline uint32_t price(const uint32_t bits) { return bits << 4; }
__attribute__((noinline)) static void fill(struct coder *c) {
	for (uint32_t slot = 14; slot < c->size; ++slot)
		prices[slot] += price((slot >> 1) - 1 - 4);
}
int main(void) { struct coder c = {{0}, 20}; fill(&c); printf("%u\n", prices[17]); return 0; }
`, "c", "price bits", []string{"clang-14 -O1", "clang-16 -O2", "clang-22 -O2"}, "~"},
	{"a caller's variable without its upper bits", `
#include <stdio.h>
#include <stdint.h>
static uint32_t prices[64]; struct coder { uint32_t pad[9], size; };
static inline uint32_t price(uint32_t bits) { return bits << 4; }
static inline uint32_t mid(uint64_t w, uint32_t start) { return w >> (start & 63); }
__attribute__((noinline)) static void fill(struct coder *c) {
	for (uint32_t slot = 14; slot < c->size; ++slot) {
		const uint32_t b = (slot >> 1) - 1 - 4;
		prices[slot] += price(b);
	}
}
__attribute__((noinline)) static uint32_t look(uint64_t w, uint32_t used, uint32_t nb) { const uint32_t s = 64 - used - nb; return mid(w, s); }
__attribute__((noinline)) static uint32_t look2(uint64_t w, uint32_t used, uint32_t nb) { return mid(w, 64 - used - nb); }
int main(void) { struct coder c = {{0}, 20}; fill(&c); uint32_t t = 0; for (int i = 1; i < 4; i++) t += look(0x123456789abcdefull, 5, i) + look2(99ull << 55, 3, i); printf("%u %u\n", prices[17], t); return 0; }
`, "c", "price bits", []string{"clang-14 -O1", "clang-22 -O1"}, "~"},
}

// storesEarly has a body in which some processors' code stores before others do.
const storesEarly = `
struct Model { int probability; };
struct Coder {
	unsigned range;
	int out;
	void bit(Model &m, const bool b)
	{
		const unsigned bound = (range >> 11) * m.probability;
		if (!b) {
			range = bound;
			m.probability += (2048 - m.probability) >> 5;
		} else {
			range -= bound;
			m.probability -= m.probability >> 5;
		}
		if (range <= 0xffffffu)
			out++;
	}
};
__attribute__((noipa)) int use(int *reps) { return reps[0] + reps[3]; }
__attribute__((noipa)) int run(Coder &c, Model *all, int d, int n)
{
	int reps[4] = {n, n + 1, n + 2, n + 3}, sum = 0;
	for (int i = 0; i < n; i++) {
		sum += use(reps);
		reps[3] = reps[2];
		reps[2] = reps[1];
		reps[1] = reps[0];
		reps[0] = d - 4 + i;
		c.bit(all[i], 0);
	}
	return sum + use(reps);
}
int main(int n, char **v)
{
	Model all[] = {{1024}, {300}, {900}};
	Coder c = {-1u, 0};
	return run(c, all, n + 5, 3) == 99;
}
`

// TestAsMade: what is not said is doubtful, and what is said in another way is right.
func TestAsMade(t *testing.T) {
	for _, n := range slices.Concat(noted, behind) {
		for _, c := range n.compilers {
			compiler, options, _ := strings.Cut(c, " ")
			t.Run(n.name+" "+c, func(t *testing.T) {
				img := built(t, compiler, options, map[string]string{"a." + n.extension: n.source})
				for definition := range strings.SplitSeq(n.definition, "; ") {
					p := plantest.New(t, img, definition, plan.Options{})
					got := ""
					for i := range p.Sites {
						if len(p.Sites[i].Callers) > 0 {
							got += marksOf(&p.Sites[i]) + " "
						}
					}
					if !strings.Contains(" "+got, " "+n.want+" ") {
						t.Errorf("%v: %q", p.Sites, got)
					}
				}
			})
		}
	}
}

// marksOf returns a character for each argument of a site: see noted.
func marksOf(s *plan.Site) (marks string) {
	for _, a := range s.Args {
		switch v := a.Variable; {
		case !v.Located():
			marks += "?"
		case v.Loc.Doubt != reasons.None:
			marks += "~"
		default:
			marks += "!"
		}
	}
	return marks
}

// TestMovedFirst: without views, GCC's only note of a clone's parameter is one for the whole function, though it begins behind a move to another register:
// at the entry that has something else. A register that nothing sets is the parameter's.
func TestMovedFirst(t *testing.T) {
	const source = `
struct half { short a, b; };
struct pair { int x; long y; };
volatile long sink;
static __attribute__((noinline)) int g(int n) { sink = n * 3; return n; }
static __attribute__((noinline)) unsigned char f(struct half p, short p1, struct pair q, int n)
{
	switch (!!q.x & 3) {
	case 0:
		p1 &= g(-1);
	case 1:
		n -= p.a;
		break;
	case 2:
		n |= g(q.x);
	}
	p1 -= -(-3000 ^ p.b);
	return (100 - 3000) | -(p.b);
}
int main(int argc, char **argv)
{
	int r = 0;
	for (int i = 0; i < 10; i++) {
		struct half h = { argc, argc + i };
		struct pair q = { argc - 2 + i, 3 };
		r += f(h, i, q, i) + g(i);
	}
	return r & 1;
}
`
	for _, compiler := range []string{"gcc-11", "gcc-12"} {
		t.Run(compiler, func(t *testing.T) {
			img := built(t, compiler, "-O2 -gno-variable-location-views", map[string]string{"a.c": source})
			p := plantest.New(t, img, "f p.b q.x", plan.Options{})
			if len(p.Sites) != 1 || marksOf(&p.Sites[0]) != "?!" {
				t.Errorf("%v", p.Sites)
			}
		})
	}
}
