package witness

import (
	"fmt"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestUnused: LLVM passes nothing in the register of a parameter that a function of the same unit does not use, whatever its declaration says.
func TestUnused(t *testing.T) {
	var b strings.Builder
	b.WriteString(`struct s { long a, b; };
volatile long sink;
extern struct s *made[2];
__attribute__((noinline)) void take(struct s *p, long c) { sink += c; sink *= 3; }
static inline __attribute__((always_inline)) void note(struct s *p) { take(p, 5); }
`)
	for i := range 30 {
		fmt.Fprintf(&b, "__attribute__((noinline)) void c%d(struct s *q, long n) { note(q); sink++; }\n", i)
	}
	b.WriteString(`struct s *made[2];
__attribute__((noinline)) void lost(long *other, long n) { note(made[n & 1]); sink++; }
int main(void) { return 0; }
`)
	p := plantest.New(t, compiled(t, "clang-14", b.String(), "-O2", asKernel), "note p", plan.Options{})
	found := false
	for i := range p.Sites {
		s := &p.Sites[i]
		if s.Symbol != "lost" {
			continue
		}
		if found = true; strings.Contains(s.Args[0].Variable.Because, "passes it") {
			t.Errorf("%v: %v", s, s.Args[0].Variable)
		}
	}
	if !found {
		t.Error("the lost one is not there")
	}
}
