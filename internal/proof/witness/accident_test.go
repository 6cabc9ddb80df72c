package witness

import (
	"fmt"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/plan"
)

// accidents are bodies that do not use the pointer that was lost, and in which it was, where it is known, just where an instruction is about
// something else: in a register when a function without parameters is called, or beside what another parameter points to.
var accidents = map[string]struct{ note, call, lost string }{
	"the register of no argument": {
		"static inline __attribute__((always_inline)) void note(struct s *p) { hit(); }",
		"note(p)", "note(find(a))",
	},
	"another pointer": {
		"static inline __attribute__((always_inline)) void note(struct s *p, long *q) { *q = 7; }",
		"note(p, &p->b)", "note(find(a), (long *)p)",
	},
	"an address as a number": {
		"static inline __attribute__((always_inline)) void note(struct s *p, unsigned long q) { *(long *)q = 7; }",
		"note(p, (unsigned long)p + 8)", "note(find(a), (unsigned long)p)",
	},
	"what is volatile beside it": {
		"static inline __attribute__((always_inline)) void note(struct s *p, volatile long *q) { sink += *q; }",
		"note(p, &p->b)", "note(find(a), (volatile long *)p)",
	},
	"another argument of a call": {
		"void take(struct s *); static inline __attribute__((always_inline)) void note(struct s *p, struct s *q) { take(q); }\n" +
			"__attribute__((noinline, noclone)) void take(struct s *p) { asm volatile(\"\" ::: \"memory\"); p->c++; }",
		"note(p, p)", "note(find(a), p)",
	},
}

// TestAccidents: nothing is said of such a pointer.
func TestAccidents(t *testing.T) {
	for name, x := range accidents {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			fmt.Fprintf(&b, `struct s { long a, b, c; };
volatile long sink;
__attribute__((noinline, noclone)) void hit(void) { asm volatile("" ::: "memory"); sink++; }
__attribute__((noinline, noclone, pure)) struct s *find(long k) { static struct s all[8]; return sink ? &all[k & 7] : 0; }
%s
`, x.note)
			calls := ""
			for i := range 24 {
				fmt.Fprintf(&b, "__attribute__((noinline, noclone)) void c%d(long a, struct s *p) { %s; sink += a + %d; }\n", i, x.call, i)
				calls += fmt.Sprintf("c%d(%d, &v); ", i, i)
			}
			fmt.Fprintf(&b, "__attribute__((noinline, noclone)) void lost(long a, struct s *p) { %s; sink += a; }\nint main(void) { struct s v = {1, 2, 3}; %slost(3, &v); return 0; }\n", x.lost, calls)
			p := plantest.New(t, compiled(t, "gcc-12", b.String(), "-O2", asKernel), "note p", plan.Options{})
			known, found := 0, false
			for i := range p.Sites {
				s := &p.Sites[i]
				switch v := s.Args[0].Variable; {
				case s.Symbol != "lost" && v.Located():
					known++
				case s.Symbol == "lost" && v.Located():
					t.Errorf("%v: %v", s, v)
				case s.Symbol == "lost":
					found = true
				}
			}
			if known < 20 || !found {
				t.Errorf("%d controls, and the lost one is there: %v", known, found)
			}
		})
	}
}
