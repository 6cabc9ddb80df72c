package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
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
		placed(t, program, tt.name, tt.want)
	}
}

// TestShortShifts: a shift to the right of a number of 8 or 16 bits is one of as many, and a register or a sum has more: the code says so, or that the number is cut behind the shift.
func TestShortShifts(t *testing.T) {
	const source = `
volatile long sink;
#define BODY(name, type) static inline __attribute__((always_inline)) void name(type n) { sink = 1; sink = n & 7; }
BODY(halved, short) BODY(halvedByte, signed char) BODY(sum, short) BODY(sumByte, signed char) BODY(zeros, unsigned short) BODY(zerosByte, unsigned char)
BODY(cutSum, short) BODY(both, short) BODY(product, short) BODY(cutMask, short)
static inline __attribute__((always_inline)) void none(short n) { sink = 1; }
void f1(int a, int b) { short n = a + b; n >>= 1; halved(n); }
void f2(int a, int b) { signed char n = a + b; n >>= 1; halvedByte(n); }
void f3(short a, short b) { short m = a + b; sum(m >> 3); }
void f4(int a, int b) { signed char m = a - b; sumByte(m >> 3); }
void f5(int a, int b) { unsigned short m = a + b; zeros(m >> 3); }
void f6(int a, int b) { unsigned char m = a + b; zerosByte(m >> 3); }
void f8(int a, int b) { cutSum((a + b) >> 1); }
void f9(int a, int b) { int m = a & b + sink; short n = m; n >>= 1; both(n); sink = m >> 1; }
void f10(short a, short b) { short m = a * b; product(m >> 3); }
void f12(int a, int b) { int m = a & b + sink; cutMask(m >> 1); }
void f11(int a, int b) { short m = a + b; none(m >> 3); }
`
	program := built(t, "gcc-12", "-O2 -shared -fPIC", map[string]string{"a.c": source})
	for _, tt := range []struct{ name, want string }{
		{"halved", "s16(%rdi) >> 1"},
		{"halvedByte", "s8(%rdi) >> 1"},
		{"sum", "s16(%rsi + %rdi) >> 3"},
		{"sumByte", "s8(%rdi - %rsi) >> 3"},
		{"zeros", "u16(%rdi + %rsi) >>u 3"},
		{"zerosByte", "u8(%rdi + %rsi) >>u 3"},
		{"cutSum", "(%rdi + %rsi) >> 1"},
		{"both", "~%rsi >> 1"},                      // as both widths
		{"product", "~(%rsi * %rdi) >> 3"},          // products are not compared with the code's
		{"cutMask", "~((%rsi + %rdx) & %rdi) >> 1"}, // nor such masks
		{"none", "~(%rdi + %rsi) >> 3"},             // as none
	} {
		placed(t, program, tt.name, tt.want)
	}
}

// placed looks at where the parameter n of a function with one site is, behind ~ if that is doubtful.
func placed(t *testing.T, img *dwarfloc.Image, function, want string) {
	t.Helper()
	p := plantest.New(t, img, function+" n", plan.Options{})
	if len(p.Sites) != 1 {
		t.Errorf("%s: %d sites", function, len(p.Sites))
		return
	}
	a := &p.Sites[0].Args[0]
	got := a.Variable.Loc.Text(p.Image.Arch())
	if a.Doubtful {
		got = "~" + got
	}
	if got != want {
		t.Errorf("%s: %s, not %s", function, got, want)
	}
}
