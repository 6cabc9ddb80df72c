package plan_test

import (
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestActsAgain: without markers GCC's code has an instruction of the caller in the midst of a turn of the body's own loop. What the body does behind that is nothing that it has done before in the turn: it is
// no other run. Two runs in straight code do the same twice.
func TestActsAgain(t *testing.T) {
	const source = `
#include <string.h>
volatile unsigned long sink;
class printer {
public:
	int depth = 0, text = -1;
	virtual void write(const char *data, unsigned long size);
	virtual void space(int depth);
	virtual void put(char c);
	virtual void close(bool compact);
	void write(const char *data) { write(data, strlen(data)); }
};
__attribute__((noinline)) void printer::write(const char *data, unsigned long size) { sink += size + *data; }
void printer::space(int depth)
{
	for (int i = 0; i < depth; ++i) {
		write("    ");
	}
}
__attribute__((noinline)) void printer::put(char c) { sink += c; }
__attribute__((noinline)) void printer::close(bool compact)
{
	--depth;
	if (text < 0 && !compact) {
		put('\n');
		space(depth);
	}
	write("</");
	if (text == depth)
		text = -1;
}
static inline void reset(printer *p)
{
	p->depth = 0;
	sink++;
}
__attribute__((noinline)) void twice(printer *p, printer *q)
{
	reset(p);
	p->text++;
	reset(q);
}
int main(int argc, char **)
{
	printer p;
	printer *volatile q = &p;
	p.depth = 5;
	q->close(argc > 5);
	q->space(2);
	twice(&p, &p);
	return 0;
}
`
	exe := built(t, "gcc-12", "-O2 -gno-statement-frontiers -fno-rtti", map[string]string{"a.cc": source})
	for name, in := range map[string]string{"printer::space": "close", "reset": "twice"} {
		n := 0
		p := plantest.New(t, exe, name, plan.Options{})
		for i := range p.Sites {
			if s := &p.Sites[i]; strings.Contains(s.Symbol, in) {
				if n++; s.Way.Again {
					t.Errorf("%v may be no run", s)
				}
			}
		}
		if want := map[string]int{"printer::space": 1, "reset": 2}[name]; n != want {
			t.Errorf("%d sites of %s in %s: %v", n, name, in, p.Sites)
		}
	}
}
