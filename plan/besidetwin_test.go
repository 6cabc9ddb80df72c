package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestBesideTwin: of "space(r, -1) && space(r, 1)" GCC threads the path on which the first run has come to the end of the text past the first test of the second run, as in discount's text: no
// statement is there, and the first run has made the test that follows. Where GCC has merged equal ends of runs in both sides of a test of the caller's, a run goes on in the code of another one.
func TestBesideTwin(t *testing.T) {
	const threaded = `
struct reader { const unsigned char *text; int size, at; };
__attribute__((noipa)) void emit(struct reader *r, int c) { r->at += c == '*'; }
__attribute__((noipa)) int other(struct reader *r) { return r->size; }
__attribute__((noipa)) const unsigned short *classes(void)
{
	static const unsigned short is[256] = {[' '] = 0x2000, ['\n'] = 0x2000}, *p = is;
	asm("" : "+r"(p));
	return p;
}
static int peek(struct reader *r, int i)
{
	i += r->at - 1;
	return i >= 0 && i < r->size ? r->text[i] : -1;
}
static inline __attribute__((always_inline)) int space(struct reader *r, int i)
{
	int c = peek(r, i);
	if (c == -1)
		return 1;
	if (c & 0x80)
		return 0;
	return (classes()[c] & 0x2000) != 0 || c < ' ';
}
int text(struct reader *r, int c)
{
	switch (c) {
	case '*':
		if (space(r, -1) && space(r, 1)) {
			emit(r, c);
			break;
		}
		return other(r);
	case '_':
		emit(r, 1);
		break;
	}
	return 0;
}
`
	const merged = `
struct array { long timer, *kptrs, kind; };
volatile long seen;
__attribute__((noipa)) void copy(long *to, long *from) { *to = *from; }
__attribute__((noipa)) void locked(long *to, long *from) { *to = *from + 1; }
__attribute__((noipa)) void cancel(long *at) { seen = *at; }
__attribute__((noipa)) void release(struct array *a, long *at) { seen = *at; }
static inline __attribute__((always_inline)) void freed(struct array *a, long *value)
{
	if (a->timer >= 0)
		cancel(value + a->timer);
	if (!(a->kptrs == 0 || (unsigned long)a->kptrs >= -4095ul))
		release(a, value);
}
int update(struct array *a, long *value, long *from, long n)
{
	if (a->kind == 6) {
		long *v = value + n;
		copy(v, from);
		freed(a, v);
	} else {
		long *v = (long *)a->kind + n;
		if (n & 4)
			locked(v, from);
		else
			copy(v, from);
		freed(a, v);
	}
	return 0;
}
`
	for _, options := range []string{"-O2 -shared -fPIC", "-O3 -shared -fPIC"} {
		hasWays(t, plantest.New(t, built(t, "gcc-12", options, map[string]string{"a.c": threaded}), "space i", plan.Options{}), 3, 1)
		hasWays(t, plantest.New(t, built(t, "gcc-12", options, map[string]string{"a.c": merged}), "freed a", plan.Options{}), 3, 0)
	}
}
