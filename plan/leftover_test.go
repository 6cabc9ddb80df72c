package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestLeftOver: GCC computes what a body begins with ahead of the caller's test, merges the rest with another call's, and leaves its statements out: a hit there need not be a run, as in wren's
// loadVariable. Where nothing is merged, each body begins at its first statement.
func TestLeftOver(t *testing.T) {
	const source = `
struct compiler { int code[64], count, slots, most; };
static const int effects[64] = { 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, -1, 1, 0, 1, 0, 1 };
struct variable { int index, scope; };
__attribute__((noipa)) int byte(struct compiler *c, int b) { c->code[c->count++ & 63] = b; return c->count - 1; }
static void op(struct compiler *c, int code)
{
	byte(c, code);
	c->slots += effects[code];
	if (c->slots > c->most)
		c->most = c->slots;
}
static int arg(struct compiler *c, int code, int a)
{
	op(c, code);
	return byte(c, a);
}
static void word(struct compiler *c, int code, int a)
{
	op(c, code);
	byte(c, a >> 8 & 255);
	byte(c, a & 255);
}
static void local(struct compiler *c, int slot)
{
	if (slot <= 8) {
		op(c, 4 + slot);
		return;
	}
	arg(c, 13, slot);
}
__attribute__((noipa)) void variable(struct compiler *c, struct variable v)
{
	switch (v.scope) {
	case 0: local(c, v.index); break;
	case 1: arg(c, 15, v.index); break;
	case 2: word(c, 17, v.index); break;
	default: __builtin_unreachable();
	}
}
int main(int argc, char **argv)
{
	static struct compiler c;
	for (int i = 0; i < 12; i++)
		variable(&c, (struct variable){ i, i % 3 });
	word(&c, argc, 3);
	return c.most & 1;
}
`
	for options, marked := range map[string]bool{"-O2 -flto": true, "-O2 -flto -fno-tree-tail-merge -fno-crossjumping": false} {
		p := plantest.New(t, built(t, "gcc-12", options, map[string]string{"a.c": source}), "arg", plan.Options{})
		found := false
		for i := range p.Sites {
			if s := &p.Sites[i]; s.CallLine == 30 {
				if found = true; s.Way.Again != marked {
					t.Errorf("%s: %v", options, s)
				}
			}
		}
		if !found {
			t.Errorf("%s: %v", options, p.Sites)
		}
	}
}

// TestLowestEarly: GCC merges two runs of a body, leaves out the statements of both, and computes what they begin with ahead of the tests: there the body has its lowest address, and no run begins on the path
// on which the tests fail, as in wren's readNumber. Where each has its statements, a run begins at them.
func TestLowestEarly(t *testing.T) {
	const source = `
struct parser { const char *now; int line; double value; };
static char peek(struct parser *p) { return *p->now; }
static char next(struct parser *p)
{
	char c = peek(p);
	p->now++;
	if (c == '\n')
		p->line++;
	return c;
}
static _Bool match(struct parser *p, char c)
{
	if (peek(p) != c)
		return 0;
	next(p);
	return 1;
}
static _Bool digit(char c) { return c >= '0' && c <= '9'; }
__attribute__((noipa)) void fault(struct parser *p) { p->line = -1; }
__attribute__((noipa)) void make(struct parser *p) { p->value = *p->now; }
__attribute__((noipa)) void number(struct parser *p)
{
	while (digit(peek(p)))
		next(p);
	if (peek(p) == '.' && digit(p->now[1])) {
		next(p);
		while (digit(peek(p)))
			next(p);
	}
	if (match(p, 'e') || match(p, 'E')) {
		if (!match(p, '+'))
			match(p, '-');
		if (!digit(peek(p)))
			fault(p);
		while (digit(peek(p)))
			next(p);
	}
	make(p);
}
int main(void)
{
	struct parser p = { "12 " };
	number(&p);
	p.now = "1.5e+7";
	number(&p);
	return p.line;
}
`
	p := plantest.New(t, built(t, "gcc-12", "-O3", map[string]string{"a.c": source}), "next", plan.Options{})
	hasWays(t, p, 6, 1)
	for i := range p.Sites {
		if s := &p.Sites[i]; s.Way.Again && (s.CallLine != 16 || s.Callers[0].CallLine != 31) {
			t.Errorf("%v", s)
		}
	}
}

// TestOperand: what the caller's test needs of a body, and all that is left of it, is a run: it is not computed ahead of the test for a rest that is merged.
func TestOperand(t *testing.T) {
	const source = `
volatile long sink;
static inline int less(const int *a, const int *b) { return *a < *b; }
void sort(int *a, int n)
{
	for (int i = 1; i < n; i++)
		for (int j = i; j > 0 && less(a + j, a + j - 1); j--) {
			int t = a[j];
			a[j] = a[j - 1];
			a[j - 1] = t;
		}
}
void order(int *a, int *b)
{
	if (less(a, b))
		sink = 1;
	if (less(b, a))
		sink = 2;
	if (less(a + 1, b))
		sink = 3;
}
int main(int argc, char **argv)
{
	int a[5] = { 3, 2, 1, 5, argc };
	sort(a, 5);
	order(a, a + 1);
	return a[0] & 1;
}
`
	for _, cc := range []string{"gcc-11", "gcc-12"} {
		p := plantest.New(t, built(t, cc, "-O2 -flto", map[string]string{"a.c": source}), "less", plan.Options{})
		found := 0
		for i := range p.Sites {
			if s := &p.Sites[i]; s.CallLine == 15 {
				if found++; s.Way.Again {
					t.Errorf("%s: %v", cc, s)
				}
			}
		}
		if found != 1 {
			t.Errorf("%s: %v", cc, p.Sites)
		}
	}
}
