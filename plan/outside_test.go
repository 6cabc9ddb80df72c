package plan_test

import "testing"

// TestOutside: what the caller computes, at a place of its own, is passed if none but the body uses it, all of it, or if it is a variable of the caller's, or it has stored it, and another body of the function shows
// no assignment either. It may be what the body makes of what is passed if the caller computes that too.
func TestOutside(t *testing.T) {
	const source = `
struct slot { unsigned value; unsigned char low; };
__attribute__((noinline)) void use(unsigned x) { __asm__ volatile("" : : "r"(x)); }
static inline void stored(struct slot *s, unsigned n) { s->value = n; }
static inline void other(struct slot *s, unsigned n) { s->value = n; }
static inline void cut(struct slot *s, unsigned n) { s->low = n; }
static inline void added(struct slot *s, unsigned n) { n += 1; s->value = n; }
static inline void moved(struct slot *s, unsigned n) { n += 1; s->value = n; }
static inline void sent(struct slot *s, unsigned n) { n += 1; s->value = n; }
static inline unsigned mixed(unsigned n, unsigned mask) { return n * 0x1e35a7bdu >> 15 & mask; }
static inline unsigned lone(unsigned n, unsigned mask) { return n * 0x1e35a7bdu >> 15 & mask; }
static inline void noted(unsigned n) { if ((n & 0xf800) == 0xd800) use(1); }
static inline void once(unsigned n) { if ((n & 0xf800) == 0xd800) use(2); }
__attribute__((noinline)) void f(struct slot *s, unsigned x, unsigned y) { stored(s, x * y); }
__attribute__((noinline)) void g(struct slot *s, unsigned x, unsigned y) { cut(s, x * y & 255); }
__attribute__((noinline)) void h(struct slot *s, unsigned i) { s[1].value = i + 1; added(s, i); }
__attribute__((noinline)) void k(struct slot *s, unsigned i) { other(s + 1, i + 1); moved(s, i); }
__attribute__((noinline)) void l(struct slot *s, unsigned i) { use(i + 1); sent(s, i); }
__attribute__((noinline)) unsigned m(unsigned short *table, unsigned long data, unsigned mask)
{
	unsigned word = data;
	if (table[mixed(word, mask)] == word)
		return 1;
	data >>= 8;
	word = data;
	if (table[mixed(word, mask)] == word)
		return 2;
	data >>= 8;
	word = data;
	return table[mixed(word, mask)] == word;
}
__attribute__((noinline)) unsigned o(unsigned short *table, unsigned long data, unsigned mask)
{
	unsigned word = data >> 16;
	return table[lone(word, mask)] == word;
}
__attribute__((noinline)) void q(unsigned *out, unsigned x, unsigned y) { *out = x * y; noted(*out); }
__attribute__((noinline)) void r(unsigned *in) { unsigned x = *in; noted(x); use(x); }
__attribute__((noinline)) void w(unsigned *out, unsigned x, unsigned y) { *out = x * y; once(*out); }
int main(void)
{
	static struct slot s[3];
	static unsigned short table[1 << 16];
	f(s, 300, 7), g(s, 300, 7), h(s, 5), k(s, 5), l(s, 5), q(&s[0].value, 300, 7), r(&s[0].value), w(&s[0].value, 300, 7);
	return m(table, 0x123456789a, 255) + o(table, 0x123456789a, 255);
}
`
	for _, compiler := range []string{"clang-14", "clang-16", "clang-19", "clang-22"} {
		img := built(t, compiler, "-O2", map[string]string{"a.c": source})
		for _, tt := range []struct {
			definition string
			sites      int
			sure       bool
		}{{"stored n", 1, true}, {"cut n", 1, false}, {"added n", 1, false}, {"moved n", 1, false}, {"sent n", 1, false}, {"mixed n", 3, true}, {"other n", 1, false}, {"lone n", 1, false}, {"noted n", 2, true}, {"once n", 1, false}} {
			isSure(t, compiler, img, tt.definition, tt.sites, tt.sure)
		}
	}
}
