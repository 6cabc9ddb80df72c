package plan_test

import (
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestFewBits: LLVM converts the lowest bit of a register to a truth value by a type of its own, of 1 bit by its name and of 1 byte by its size. A bit-field that begins
// with the register's byte has other bits above.
func TestFewBits(t *testing.T) {
	const source = `
static volatile unsigned sink;
static inline void use(long v) { sink += (unsigned)v * 2654435761u; }
struct node { int key; unsigned flags : 3, mode : 5; unsigned char tag; _Bool live : 1; };
static inline int is_live(struct node *p, _Bool want) { use(want); return p->live == want; }
struct node nodes[4] = { { 1, 3, 5 }, { 2, 2, 6 }, { 7, 4, 7, 1 }, { 9, 5, 5, 4 } };
int main(void)
{
	for (int i = 0; i < 4; i++) {
		struct node *p = &nodes[i];
		use(p->mode);
		use(is_live(p, p->flags & 1));
	}
	return 0;
}
`
	for _, cc := range []string{"clang-14", "clang-16", "clang-19", "clang-22"} {
		p := plantest.New(t, built(t, cc, "-O2", map[string]string{"a.c": source}), "use v", plan.Options{Doubt: plan.DoubtKeep})
		bits := 0
		for i := range p.Sites {
			s := &p.Sites[i]
			if len(s.Callers) < 1 || s.Callers[0].Function != "is_live" || !s.Args[0].Variable.Located() {
				continue
			}
			if bits++; !strings.Contains(s.Args[0].Loc.Text(p.Image.Arch()), "& 1)") {
				t.Errorf("%s: v at %v is not one bit: %v", cc, s.Symbol, s.Args[0].Variable)
			}
		}
		if bits == 0 {
			t.Errorf("%s: no v of is_live is located", cc)
		}
	}
}
