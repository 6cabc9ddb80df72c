package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestGoesOnPast: GCC threads a path past the first test of a run, of which it knows how it ends, to the second one. The statements of that path, of another run too, are in front of it,
// and where the first test leads there in other runs is behind them.
func TestGoesOnPast(t *testing.T) {
	const source = `
struct lexer { const char *source; unsigned long mask; int line, c, n; };
__attribute__((noipa)) void push(struct lexer *s, int c) { s->n += c; }
__attribute__((noipa)) void escape(struct lexer *s) { s->c = 'x'; }
__attribute__((noipa)) int rune(int *c, const char *s) { *c = *s; return 1; }
static inline __attribute__((always_inline)) int part(struct lexer *s, int c)
{
	return (c >= 'a' && c <= 'z') || s->mask >> (c & 63) & 1;
}
static inline __attribute__((always_inline)) void next(struct lexer *s)
{
	int c;
	if (__builtin_expect(*s->source == 0, 0)) {
		s->c = -1;
		return;
	}
	s->source += rune(&c, s->source);
	if (__builtin_expect(c < 14, 1)) {
		s->line++;
		c = '\n';
	}
	s->c = c;
}
static inline __attribute__((always_inline)) void unescape(struct lexer *s)
{
	if (s->c == '\\')
		escape(s);
}
__attribute__((noinline)) int word(struct lexer *s)
{
	while (part(s, s->c)) {
		push(s, s->c);
		next(s);
		unescape(s);
	}
	return s->n;
}
int main(int argc, char **argv)
{
	struct lexer s = {"some\\u\rwords\n", 1 << 13 | 1 << 10, 0, '_', 0};
	return word(&s);
}
`
	hasWays(t, plantest.New(t, built(t, "gcc-12", "-O2", map[string]string{"a.c": source}), "unescape", plan.Options{}), 3, 1)
}
