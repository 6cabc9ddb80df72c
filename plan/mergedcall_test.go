package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/plan"
)

const hashedTwice = `
typedef unsigned long number;
struct object { int kind, arity; double from, to; int count; unsigned hash; };
__attribute__((noinline)) static unsigned bits(number h)
{
	h = ~h + (h << 18);
	h ^= h >> 31;
	return h & 0x3fffffff;
}
static inline number raw(double d) { union { double d; number n; } u; u.d = d; return u.n; }
static inline unsigned hash(double d) { return bits(raw(d)); }
__attribute__((noinline)) unsigned all(struct object *o)
{
	switch (o->kind) {
	case 3: return hash(o->arity) ^ hash(o->count);
	case 9: return hash(o->from) ^ hash(o->to);
	case 10: return o->hash;
	}
	return 0;
}
int main(int argc, char **argv)
{
	struct object a = { argc + 2, 4, 1, 2, 5, 6 }, b = { argc + 8, 1, 3, 4, 5, 6 };
	return all(&a) ^ all(&b);
}
`

// TestMergedCall: GCC merges the calls with which two runs end, and has the statements of one before the call: the other one's run has begun, and comes there behind them, as in wren's findEntry. Where
// each has its own call, the statement in front of it stands where it was.
func TestMergedCall(t *testing.T) {
	for _, cc := range []string{"gcc-11", "gcc-12"} {
		for options, merged := range map[string]bool{"-Os": true, "-Os -fno-crossjumping": false} {
			p := plantest.New(t, built(t, cc, options, map[string]string{"a.c": hashedTwice}), "hash", plan.Options{})
			hasWays(t, p, 4, 0)
			if last := &p.Sites[3]; (last.View == 0) != merged {
				t.Errorf("%s %s: the last run is probed at %v", cc, options, last)
			}
		}
	}
}

// TestMergedByPath: LLVM merges the second call of both cases into one of its own. On one path a run comes there that has begun with what it passes, and on the other one a run begins: none is sure.
func TestMergedByPath(t *testing.T) {
	for _, cc := range []string{"clang-19", "clang-22"} {
		p := plantest.New(t, built(t, cc, "-O2", map[string]string{"a.c": hashedTwice}), "hash", plan.Options{})
		merged := 0
		for i := range p.Sites {
			if s := &p.Sites[i]; s.Symbol == "all" && s.CallLine == 0 {
				if merged++; !s.Way.Again {
					t.Errorf("%s: each hit at %v is a run", cc, s)
				}
			}
		}
		if merged != 1 {
			t.Errorf("%s: %d merged ways: %v", cc, merged, p.Sites)
		}
	}
}

// TestMergedTest: LLVM puts the test of a body together with the caller's, before the rest that it has merged of several: a run begins there on the path of that test alone, and goes on on the others, as in
// wren's nextToken.
func TestMergedTest(t *testing.T) {
	const source = `
struct parser { const char *start, *now; int type, length, line; const char *at; int row; };
static _Bool match(struct parser *p, char c)
{
	if (*p->now != c)
		return 0;
	p->now++;
	return 1;
}
static void make(struct parser *p, int type)
{
	p->type = type;
	p->at = p->start;
	p->length = p->now - p->start;
	p->row = p->line;
}
static void two(struct parser *p, char c, int both, int one) { make(p, match(p, c) ? both : one); }
__attribute__((noinline)) void next(struct parser *p)
{
	char c = *p->now;
	p->start = p->now;
	p->now++;
	switch (c) {
	case '*': make(p, 1); return;
	case '|': two(p, '|', 3, 4); return;
	case '&': two(p, '&', 5, 6); return;
	case '=': two(p, '=', 7, 8); return;
	case '<':
		if (match(p, '<'))
			make(p, 11);
		else
			two(p, '=', 12, 13);
		return;
	case '>':
		if (match(p, '>'))
			make(p, 14);
		else
			two(p, '=', 15, 16);
		return;
	}
	p->now--;
}
int main(void)
{
	struct parser p = { 0, "|||&<<<=<>=>>=*" };
	for (int i = 0; i < 9; i++)
		next(&p);
	return p.type;
}
`
	for _, cc := range []string{"clang-19", "clang-22"} {
		p := plantest.New(t, built(t, cc, "-O2", map[string]string{"a.c": source}), "two", plan.Options{})
		hasWays(t, p, 6, 1)
		for i := range p.Sites {
			if s := &p.Sites[i]; s.Way.Again != (s.CallLine == 0) {
				t.Errorf("%s: %v", cc, s)
			}
		}
	}
}
