package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestPassedLate: the caller computes what it passes behind the test with which the body begins, and LLVM merges the rest of the body with that of other calls. Where the rest
// begins no run does: each call has one way in that is sure.
func TestPassedLate(t *testing.T) {
	const source = `
#include <string.h>
struct value { union { double number; int boolean; const char *text; } u; char pad[7]; char type; };
struct state { int bottom, top, fails; struct value *stack; };
#define STACK (s->stack)
#define TOP (s->top)
__attribute__((noreturn)) void fail(struct state *s);
static void overflow(struct state *s)
{
	STACK[TOP].type = 4;
	STACK[TOP].u.text = "stack overflow";
	++TOP;
	fail(s);
}
#define CHECK(n) if (TOP + n >= 256) overflow(s)
static inline void number(struct state *s, double n) { CHECK(1); STACK[TOP].type = 4; STACK[TOP].u.number = n; ++TOP; }
static inline void truth(struct state *s, int n) { CHECK(1); STACK[TOP].type = 3; STACK[TOP].u.boolean = !!n; ++TOP; }
int compare(struct state *s, int *okay);
double at(struct state *s, int i);
void pop(struct state *s, int n);
int run(struct state *s, const unsigned short *code)
{
	double x, y;
	int ix, iy, okay, b;
	for (;;)
		switch (*code++) {
		case 1: number(s, *code++ - 32768); break;
		case 2: memcpy(&x, code, sizeof x); code += 4; number(s, x); break;
		case 3: x = at(s, -2); y = at(s, -1); pop(s, 2); number(s, x * y); break;
		case 4: x = at(s, -2); y = at(s, -1); pop(s, 2); number(s, x - y); break;
		case 5: ix = at(s, -2); iy = at(s, -1); pop(s, 2); number(s, ix & iy); break;
		case 6: ix = at(s, -2); iy = at(s, -1); pop(s, 2); number(s, ix | iy); break;
		case 7: b = compare(s, &okay); pop(s, 2); truth(s, okay && b < 0); break;
		case 8: b = compare(s, &okay); pop(s, 2); truth(s, okay && b > 0); break;
		case 9: number(s, -at(s, -1)); break;
		case 10: truth(s, at(s, -1) == 0); break;
		case 0: return TOP;
		}
}
`
	const rest = `
struct value { union { double number; int boolean; const char *text; } u; char pad[7]; char type; };
struct state { int bottom, top, fails; struct value *stack; };
__attribute__((noreturn)) void fail(struct state *s) { __builtin_trap(); }
double at(struct state *s, int i) { return s->stack[s->top + i].u.number; }
void pop(struct state *s, int n) { s->top -= n; }
int compare(struct state *s, int *okay) { *okay = 1; double x = at(s, -2), y = at(s, -1); return x < y ? -1 : x > y; }
int run(struct state *s, const unsigned short *code);
static struct value v[256];
int main(void) { struct state s = {0, 0, 0, v}; unsigned short code[] = {1, 7, 1, 9, 3, 1, 5, 4, 1, 9, 5, 1, 3, 6, 2, 0, 0, 0, 0, 7, 1, 8, 1, 8, 8, 9, 10, 1, 7, 1, 2, 7, 0}; return run(&s, code) != 5; }
`
	for _, compiler := range []string{"clang-19", "clang-22"} {
		img := built(t, compiler, "-O2", map[string]string{"a.c": source, "b.c": rest})
		for function, calls := range map[string]int{"number": 7, "truth": 3} {
			p := plantest.New(t, img, function, plan.Options{})
			sure := 0
			for i := range p.Sites {
				if !p.Sites[i].Way.Again {
					sure++
				}
			}
			if sure != calls {
				t.Errorf("%s: %d sure sites of %s, not %d: %v", compiler, sure, function, calls, p.Sites)
			}
		}
	}
}
