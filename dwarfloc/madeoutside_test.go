package dwarfloc_test

import (
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestMadeOutside: without views, of several statements at the probe, a register that the body has not made is what was passed, and one that it
// has made is not.
func TestMadeOutside(t *testing.T) {
	const source = `
struct s { long a, b; struct s *next; };
volatile long sink;
#define INLINE static inline __attribute__((always_inline))
INLINE void keeps(struct s *p, long n) { long twice = n * 2; sink = n; sink = p->a; sink = n + p->b; }
INLINE void moves(struct s *p, long n) { long twice = n * 2; p = p->next; sink = n; sink = p->a; sink = n + p->b; }
__attribute__((noinline)) long give(long n) { asm volatile(""); return n; }
__attribute__((noinline)) void keeper(struct s *q, long k) { long v = give(k) * 3; keeps(q->next, v); sink = v; }
__attribute__((noinline)) void mover(struct s *q, long k) { long v = give(k) * 3; moves(q->next, v); sink = v; }
int main(int c, char **v) { struct s x = {1, 2, 0}, y = {3, 4, &x}; x.next = &y; keeper(&y, c); mover(&x, c); return 0; }
`
	img := testenv.Open(t, compile(t, "gcc-12", source, "-g", "-O2", "-gno-variable-location-views"))
	for _, tt := range []struct {
		function string
		sure     bool
	}{{"keeps", true}, {"moves", false}} {
		p := plantest.New(t, img, tt.function+" p", plan.Options{})
		for i := range p.Sites {
			switch v := p.Sites[i].Args[0].Variable; {
			case !tt.sure && v.Located() && v.Loc.Doubt == reasons.None:
				t.Errorf("%v: %v", &p.Sites[i], v)
			case tt.sure && (!v.Located() || v.Loc.Doubt != reasons.None || !strings.Contains(v.Because, "no instruction of the body has made")):
				t.Errorf("%v: %v", &p.Sites[i], v)
			}
		}
	}
}
