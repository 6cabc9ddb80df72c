package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestMergedRest: compilers compute in front of a test what the body behind it begins with, and merge the rest of that with other code. What is hit in front
// of the test need not be a run.
func TestMergedRest(t *testing.T) {
	const source = `
struct value { union { double number; const char *text; struct value *object; } u; char pad[7]; char type; };
struct state { int bottom, fails, top; struct value *stack; };
#define STACK (s->stack)
#define TOP (s->top)
#define BOT (s->bottom)
#define CHECK(n) if (TOP + n >= 256) overflow(s)
__attribute__((noreturn)) void fail(struct state *s);
__attribute__((always_inline)) static inline void overflow(struct state *s)
{
	STACK[TOP].type = 4;
	STACK[TOP].u.text = "stack overflow";
	++TOP;
	fail(s);
}
static struct value *at(struct state *s, int i)
{
	static struct value undefined = { {0}, {0}, 1 };
	i = i < 0 ? TOP + i : BOT + i;
	if (i < 0 || i >= TOP)
		return &undefined;
	return STACK + i;
}
void number(struct state *s, double n) { CHECK(1); STACK[TOP].type = 3; STACK[TOP].u.number = n; ++TOP; }
void nothing(struct state *s) { CHECK(1); STACK[TOP].type = 1; ++TOP; }
void value(struct state *s, struct value v) { CHECK(1); STACK[TOP] = v; ++TOP; }
void object(struct state *s, struct value *v) { CHECK(1); STACK[TOP].type = 7; STACK[TOP].u.object = v; ++TOP; }
void copy(struct state *s, int i) { CHECK(1); STACK[TOP] = *at(s, i); ++TOP; }
int pushed(struct state *s, struct value *v)
{
	struct value *x = v->u.object;
	if (v->type == 9) {
		if (x) object(s, x); else nothing(s);
		return 1;
	}
	copy(s, -2);
	nothing(s);
	if (x) value(s, *v);
	return 0;
}
int run(struct state *s, const char *code)
{
	for (;; code++)
		switch (*code) {
		case 'n': number(s, 7); break;
		case 'u': nothing(s); break;
		case 'c': copy(s, 1); break;
		case 'd': copy(s, -1); copy(s, -2); break;
		case 'm': number(s, TOP); copy(s, 0); break;
		case 'p': pushed(s, at(s, -1)); break;
		case 'l': CHECK(1); STACK[TOP++] = STACK[BOT + *++code]; break;
		case 'L': CHECK(1); STACK[TOP++] = STACK[*++code]; break;
		case 0: return TOP;
		}
}
`
	const rest = `
struct value { long v[2]; };
struct state { int bottom, fails, top; struct value *stack; };
void fail(struct state *s) { __builtin_trap(); }
int run(struct state *s, const char *code);
static struct value v[256];
int main(void) { struct state s = {0, 0, 0, v}; return run(&s, "nucdmnnpp"); }
`
	for _, tt := range []struct {
		compiler, options string
		again             int
	}{
		{"clang-14", "-O2", 4}, {"clang-15", "-O2", 4}, {"clang-16", "-O2", 4},
		{"gcc-11", "-O2", 3}, {"gcc-11", "-O3", 2}, {"gcc-12", "-O2", 4}, {"gcc-12", "-O3", 4},
	} {
		img := built(t, tt.compiler, tt.options, map[string]string{"a.c": source, "b.c": rest})
		p := plantest.New(t, img, "overflow s", plan.Options{})
		again := 0
		for i := range p.Sites {
			if p.Sites[i].Way.Again {
				again++
			}
		}
		if again != tt.again {
			t.Errorf("%s %s: %d of %d sites may be hit without a run, not %d", tt.compiler, tt.options, again, len(p.Sites), tt.again)
		}
	}
}
