package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestWidths: GCC's notes of shifts to the right and divisions do not say how wide these are. Where the code makes the same one later, behind a branch, that does.
func TestWidths(t *testing.T) {
	const source = `
volatile unsigned sink;
volatile unsigned long wide;
struct pair { int a, b, c; };
#define BODY(name, type) static inline __attribute__((always_inline)) void name(type n) { if (sink) { sink = n; wide = 1; } }
#define OUTER __attribute__((noinline, noclone)) void
BODY(narrow, unsigned) BODY(signs, int) BODY(whole, unsigned) BODY(both, unsigned) BODY(apart, unsigned) BODY(per, unsigned) BODY(each, int)
static inline __attribute__((always_inline)) void none(unsigned n) { if (sink) wide = 1; }
OUTER f1(unsigned long bytes) { narrow((unsigned)bytes >> 9); }
OUTER f2(long bytes) { signs((int)bytes >> 9); }
OUTER f3(unsigned long bytes) { whole(bytes >> 9); }
OUTER f4(unsigned long bytes) { both((unsigned)bytes >> 9); wide = bytes >> 9; }
OUTER f5(unsigned long bytes) { none((unsigned)bytes >> 9); }
OUTER f6(struct pair *a, struct pair *b) { apart(b - a); }
OUTER f7(unsigned long a, unsigned long b) { per(((unsigned)a + (unsigned)b) / (unsigned)b); }
OUTER f8(long a, long b) { each(((int)a - (int)b) / (int)b); }
int main(void)
{
	struct pair p[9];
	f1(5000); f2(5000); f3(5000); f4(5000); f5(5000); f6(p, p + 7); f7(700, 9); f8(700, 9);
	return 0;
}
`
	program := built(t, "gcc-12", "-O2", map[string]string{"a.c": source})
	for _, tt := range []struct{ name, want string }{
		{"narrow", "u32(%rdi) >>u 9"},
		{"signs", "s32(%rdi) >> 9"},
		{"whole", "%rdi >>u 9"},
		{"both", "~%rdi >>u 9"}, // as both widths
		{"none", "~%rdi >>u 9"}, // as none
		{"apart", "(%rsi - %rdi) / 12"},
		{"per", "u32(%rdi + %rsi) /u u32(%rsi)"},
		{"each", "s32(%rdi - %rsi) / s32(%rsi)"},
	} {
		p := plantest.New(t, program, tt.name+" n", plan.Options{})
		if len(p.Sites) != 1 {
			t.Errorf("%s: %d sites", tt.name, len(p.Sites))
			continue
		}
		a := &p.Sites[0].Args[0]
		got := a.Variable.Loc.Text(p.Image.Arch())
		if a.Doubtful {
			got = "~" + got
		}
		if got != tt.want {
			t.Errorf("%s: %s, not %s", tt.name, got, tt.want)
		}
	}
}
