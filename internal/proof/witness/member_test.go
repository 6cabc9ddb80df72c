package witness

import (
	"fmt"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/internal/rule"
	"github.com/bpfprologue/bpfprologue/plan"
)

// members is a program in which an inlined function reads one member of what it is given. Without variable tracking GCC notes no register. What is
// used once it computes where that is, and may count it to that statement: in lost_outside the body is left with the load of what it is given.
const members = `struct m { long n; };
struct s { long a, b; struct m *m; struct s *next; };
__attribute__((noinline)) void sink(void *n) { asm volatile("" :: "r"(n) : "memory"); }
static inline __attribute__((always_inline)) struct m *get(const struct s *p) {
	return p->m;
}
%s
#define LOST __attribute__((noinline, noclone, optimize("no-var-tracking")))
LOST void lost(long x, struct s *p) { struct m *m = get(p); if (m) sink(m); }
LOST void lost_outside(long x, struct s *p) { sink(get(p->next)); }
int main(void) { return 0; }
`

// TestMember: a load of what is not volatile says what a body was given, where so many bodies say so that it is the body's own statement.
func TestMember(t *testing.T) {
	for _, tt := range []struct {
		known int // bodies
		said  string
	}{{200, "%rsi"}, {199, ""}} {
		for _, compiler := range []string{"gcc-11", "gcc-12"} {
			t.Run(fmt.Sprintf("%d %s", tt.known, compiler), func(t *testing.T) {
				var known strings.Builder
				for i := range tt.known {
					fmt.Fprintf(&known, "void c%d(struct s *p) { struct m *m = get(p); if (m) sink(m); sink(p + %d); }\n", i, i)
				}
				p := plantest.New(t, compiled(t, compiler, fmt.Sprintf(members, known.String()), "-O2", asKernel), "get p", plan.Options{})
				lost := 0
				for i := range p.Sites {
					s := &p.Sites[i]
					v, want := s.Args[0].Variable, ""
					switch s.Symbol {
					case "lost":
						want = tt.said
						fallthrough
					case "lost_outside":
						lost++
					default:
						if v.Loc.Rule == rule.Member || !v.Located() {
							t.Errorf("%v: %v by rule %v", s, v, v.Loc.Rule)
						}
						continue
					}
					got := ""
					if v.Located() {
						got = v.Loc.Text(p.Image.Arch())
					}
					if got != want || v.Located() && v.Loc.Rule != rule.Member {
						t.Errorf("%v: %q by rule %v, want %q (%s)", s, got, v.Loc.Rule, want, v.Because)
					}
				}
				if lost != 2 {
					t.Errorf("%d sites that lost it", lost)
				}
			})
		}
	}
}
