package plan_test

import (
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestFieldAlone: GCC notes a bit-field that begins with its byte as all of the byte, and no instruction cuts it where the body does not use it. The type of the structure tells how many
// bits it has, unless that says that a whole byte can be meant, or a signed field, or a caller has a pointer to bytes there.
func TestFieldAlone(t *testing.T) {
	const source = `
static volatile unsigned sink;
__attribute__((noipa)) void use(long v) { sink += v; }
struct gather { long start, end; unsigned full : 1, all : 1, freed : 1; };
struct both { long start; union { unsigned char byte; struct { unsigned char low : 3, high : 5; }; }; };
struct insn { unsigned char code, dst : 4, src : 4; short off; };
struct wave { long start; signed char level : 4, next : 4; };
static inline void clear(long *p, int full) { *p = 0; use(1); }
static inline void mark(long *p, unsigned reg) { *p += 3; use(2); }
static inline void either(long *p, int low) { *p += 5; use(3); }
static inline void bytes(long *p, int dst) { *p += 7; use(4); }
static inline void leveled(long *p, int level) { *p += 9; use(5); }
__attribute__((noinline)) long gather(struct gather *g) { clear(&g->start, g->full); g->end = 1; return g->start; }
__attribute__((noinline)) long insns(struct insn *i, long *to) { mark(to, i->dst); i->off = 2; return *to; }
__attribute__((noinline)) long boths(struct both *b, long *to) { either(to, b->low); b->start = 2; return *to; }
__attribute__((noinline)) long wave(struct wave *w, long *to) { leveled(to, w->level); w->start = 2; return *to; }
__attribute__((noinline)) long raw(struct insn *i, long *to) { unsigned char *at = (unsigned char *)i; bytes(to, at[1]); i->off = 2; return *to; }
int main(void)
{
	struct gather g = { 1, 2, 1, 1, 0 };
	struct both b = { 1 };
	struct insn i = { 1, 2, 3, 4 };
	struct wave w = { 1, -2, 3 };
	long n = 0;
	return gather(&g) + insns(&i, &n) + boths(&b, &n) + wave(&w, &n) + raw(&i, &n);
}
`
	for _, build := range []string{"gcc-11 -O2", "gcc-12 -O2", "gcc-12 -Os"} {
		cc, options, _ := strings.Cut(build, " ")
		img := built(t, cc, options, map[string]string{"a.c": source})
		onlySite(t, build, img, "clear full", "& 1")
		onlySite(t, build, img, "mark reg", "& 15")
		for _, definition := range []string{"either low", "bytes dst", "leveled level"} {
			p := plantest.New(t, img, definition, plan.Options{})
			if len(p.Sites) != 1 {
				t.Fatalf("%s: probes of %s: %v", build, definition, p.Sites)
			}
			if a := p.Sites[0].Args[0].Variable; a.Located() && a.Loc.Doubt == reasons.None {
				t.Errorf("%s: %s is sure: %s", build, definition, a.Loc.Text(img.Arch()))
			}
		}
	}
}
