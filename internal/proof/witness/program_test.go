package witness

import (
	"fmt"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/internal/rule"
	"github.com/bpfprologue/bpfprologue/plan"
)

// passing are functions that pass on something else than their parameter where nothing that the others have in common tells: all that know it have one
// that the condition, or the mask, leaves as it is.
var passing = map[string]struct{ outer, caller, lost string }{
	"a mask": {
		"static inline __attribute__((always_inline)) void outer(void *p, long n) { inner((void *)((long)p & ~7)); }",
		"void c%[1]d(void *a, void *b) { other(); outer(&objects[%[1]d], 0); other(); asm volatile(\"\" :: \"r\"(a), \"r\"(b)); }",
		"long lost(void) { long x = get() | 3, m = x & ~7; other(); outer((void *)x, 0); other(); return m; }",
	},
	"a condition in a macro": {
		"#define PICK(c, a, b) if (c) inner(a); else inner(b)\n" +
			"static inline __attribute__((always_inline)) void outer(void **alt, int use, void *p) { PICK(use, *alt, p); }",
		"void c%[1]d(void **d, void *a, void *b) { other(); outer(d, 0, %[1]d %% 2 ? a : b); other(); asm volatile(\"\" :: \"r\"(a), \"r\"(b), \"r\"(d)); }",
		"long lost(void **d) { void *x = (void *)get(); other(); outer(d, 1, x); other(); return 0; }",
	},
}

// TestProgram: instructions say nothing in programs. That a body's value is in one place in all bodies that know it shows what those had in common, and
// not what the source says.
func TestProgram(t *testing.T) {
	for name, x := range passing {
		for _, command := range []string{"gcc-12 -O1", "gcc-12 -O2", "clang-14 -O1", "clang-14 -O2"} {
			t.Run(name+" "+command, func(t *testing.T) {
				compiler, option, _ := strings.Cut(command, " ")
				var b strings.Builder
				b.WriteString(`__attribute__((noinline)) void sink(void *n) { asm volatile("" :: "r"(n) : "memory"); }
__attribute__((noinline)) void other(void) { asm volatile("" ::: "rax", "rdx", "rcx", "rsi", "rdi", "memory"); }
__attribute__((noinline)) long get(void) { long v = 0x1234; asm volatile("" : "+r"(v)); return v; }
static inline __attribute__((always_inline)) void inner(void *q) { sink(q); }
void *objects[64];
` + x.outer + "\n")
				for i := range 24 {
					fmt.Fprintf(&b, "__attribute__((noinline)) "+x.caller+"\n", i+1)
				}
				b.WriteString("__attribute__((noinline)) " + x.lost + "\nint main(void) { return 0; }\n")
				p := plantest.New(t, compiled(t, compiler, b.String(), option), "outer p", plan.Options{})
				found := false
				for i := range p.Sites {
					s := &p.Sites[i]
					found = found || s.Symbol == "lost"
					if v := s.Args[0].Variable; rule.ByInstruction(v.Loc.Rule) {
						t.Errorf("%v: %v by rule %v", s, v, v.Loc.Rule)
					}
				}
				if !found || len(p.Sites) < 25 {
					t.Errorf("%d sites, and the lost one is there: %v", len(p.Sites), found)
				}
			})
		}
	}
}
