package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestLoadedAgain: the first turn of a caller's loop has in a register what the body tests first; the others load it, and begin at the place of the load.
func TestLoadedAgain(t *testing.T) {
	const source = `
#define NOINLINE __attribute__((noinline))
struct input { const char *at; int left, line, eof, kind; };
NOINLINE void word(struct input *in) { in->at++; in->left--; in->kind = 2; }
NOINLINE void add(int kind, int line) { __asm__ volatile("" : : "r"(kind), "r"(line)); }
static inline __attribute__((always_inline)) void comment(struct input *in)
{
	while (*in->at) {
		if (*in->at == '\n') {
			in->line++;
			in->at++;
			in->left--;
			break;
		}
		in->at++;
		in->left--;
	}
}
static int parse(struct input *in)
{
	while (1) {
		if (!in->left) {
			in->kind = 1;
			in->eof = 1;
			return 0;
		}
		switch (*in->at) {
		case '#':
			comment(in);
			continue;
		default:
			word(in);
			return 0;
		}
	}
}
NOINLINE void all(const char *text, int left)
{
	struct input in = {text, left, 1, 0, 0};
	while (!in.eof) {
		parse(&in);
		add(in.kind, in.line);
	}
}
int main(void) { all("ab#c\nde", 7); return 0; }
`
	p := plantest.New(t, built(t, "clang-14", "-O2", map[string]string{"a.c": source}), "parse", plan.Options{})
	if n := len(p.Sites); n != 2 {
		t.Errorf("%d ways into the body, not 2: that of the first turn, and that of the others", n)
	}
	for i := range p.Sites {
		if s := &p.Sites[i]; s.Way.Again {
			t.Errorf("%s: a run begins with each hit", s.Symbol)
		}
	}
}
