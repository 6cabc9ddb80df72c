package plan_test

import (
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestLowest: the lowest piece of a body is no beginning of it, if the body itself comes there; nor is a load for what follows, at the end of a path.
func TestLowest(t *testing.T) {
	for _, tt := range []struct {
		name           string
		sources        map[string]string
		definition     string
		compilers      []string
		probes, marked int
	}{
		{"a load at the end of a path, and the caller stores in between", map[string]string{"a.c": `
#include <stdlib.h>
#include <string.h>
struct object { const char *bytes; int refs, length; struct object *file; int line; const void *type; };
extern struct object *fresh(void);
extern const char *copied(const char *s, int n);
static const char empty[] = "";
static const int source;
static inline void tell(struct object *o, struct object *file, int line)
{
	file->refs++;
	o->file = file;
	o->line = line;
	o->type = &source;
}
static inline struct object *text(const char *s, int n)
{
	struct object *o = fresh();
	o->refs = 0;
	o->bytes = n ? copied(s, n) : empty;
	o->length = n;
	o->type = 0;
	return o;
}
__attribute__((noinline)) struct object *evaluate(struct object *o, const char *file, int line)
{
	tell(o, text(file, strlen(file)), line);
	return o;
}
int main(void)
{
	struct object o;
	return evaluate(&o, "", 1)->file->refs + evaluate(&o, "a.tcl", 2)->file->refs == 3;
}
`, "b.c": `
#include <string.h>
struct object { const char *bytes; int refs, length; struct object *file; int line; const void *type; };
static struct object all[4];
static int used;
struct object *fresh(void) { return &all[used++]; }
const char *copied(const char *s, int n) { return strndup(s, n); }
`}, "tell", []string{"clang-16 -O2", "clang-19 -O2", "clang-22 -O2"}, 1, 0},
		{"the lowest piece in the midst of a body", map[string]string{"a.c": `
#include <stdlib.h>
struct text { int size; void *data; int allocated; };
struct text token;
static const char *at;
static unsigned char kinds[257];
static void grow(struct text *s, int n)
{
	int size = s->allocated;
	if (size < 8)
		size = 8;
	while (size < n)
		size = size * 2;
	s->data = realloc(s->data, size);
	s->allocated = size;
}
static inline void put(struct text *s, int c)
{
	int size;
	size = s->size + 1;
	if (size > s->allocated)
		grow(s, size);
	((unsigned char *)s->data)[size - 1] = c;
	s->size = size;
}
__attribute__((noipa)) int more(const char **p) { return *++*p; }
__attribute__((noinline)) const char *number(const char *p, int c)
{
	int t = c;
	c = *++p;
	token.size = 0;
	for (;;) {
		put(&token, t);
		if (!(kinds[c + 1] & 6 || c == '.' || ((c == '+' || c == '-') && (t == 'e' || t == 'E'))))
			break;
		t = c;
		c = *++p;
		if (c == '\\')
			c = more(&p);
	}
	put(&token, 0);
	return p;
}
int main(void)
{
	const char *p = "123.4567e+12 89 1 22";
	int n = 0;
	for (int i = '0'; i <= '9'; i++)
		kinds[i + 1] = 2;
	kinds['e' + 1] = 4;
	while (*p) {
		p = number(p, *p);
		n += token.size;
		p += *p == ' ';
	}
	return n == 99;
}
`}, "put", []string{"gcc-11 -O2 -gno-statement-frontiers -gno-variable-location-views", "gcc-12 -O2 -gno-statement-frontiers -gno-variable-location-views"}, 2, 0},
		{"the end of another function, which begins the lowest piece", map[string]string{"a.c": `
struct function { int kind, light, parameters, variables; struct scope *scope; };
struct scope { struct scope *outer; struct function *function; };
struct state { int top, bottom, scopes, trace; struct value { long a, b; } *stack, bad; struct scope *scope, *kept[64]; };
__attribute__((noipa)) void push(struct state *s, struct value v) { s->stack[s->top++] = v; }
__attribute__((noipa)) void nothing(struct state *s) { struct value v = {0, 0}; s->stack[s->top++] = v; }
__attribute__((noipa)) void run(struct state *s, struct function *f) { struct value v = {f->kind, s->top}; s->stack[s->top++] = v; }
__attribute__((noipa)) struct scope *scope(struct state *s, struct scope *outer) { static struct scope n; n.outer = outer; return &n; }
__attribute__((noipa)) void set(struct state *s, int n) { s->trace += n; }
__attribute__((noipa)) void full(struct state *s) { s->scopes = 0; }
static inline struct value *at(struct state *s, int n) { n = s->top + n; return n < 0 ? &s->bad : &s->stack[n]; }
static void keep(struct state *s, struct scope *n)
{
	if (s->scopes > 60)
		full(s);
	s->kept[s->scopes++] = s->scope;
	s->scope = n;
}
static void restore(struct state *s) { s->scope = s->kept[--s->scopes]; }
static void light(struct state *s, int n, struct function *f, struct scope *outer)
{
	struct value v;
	keep(s, outer);
	if (n > f->parameters) {
		s->top -= n - f->parameters;
		n = f->parameters;
	}
	for (int i = n; i < f->variables; ++i)
		nothing(s);
	run(s, f);
	v = *at(s, -1);
	s->top = --s->bottom;
	push(s, v);
	restore(s);
}
static void whole(struct state *s, int n, struct function *f, struct scope *outer)
{
	struct value v;
	int i;
	outer = scope(s, outer);
	keep(s, outer);
	for (i = 0; i < n && i < f->parameters; ++i)
		set(s, i + 1);
	s->top -= n;
	for (; i < f->variables; ++i) {
		nothing(s);
		set(s, -1);
		s->top--;
	}
	run(s, f);
	v = s->bad;
	s->top = --s->bottom;
	push(s, v);
	restore(s);
}
__attribute__((noipa)) void call(struct state *s, int n, struct function *f)
{
	int bottom = s->bottom;
	s->bottom = s->top - n;
	if (f->kind == 1) {
		s->trace++;
		if (f->light)
			light(s, n, f, f->scope);
		else
			whole(s, n, f, f->scope);
		s->trace--;
	} else if (f->kind == 2) {
		s->trace += 2;
	}
	s->bottom = bottom;
}
int main(void)
{
	static struct value stack[256];
	struct state s = {8, 4, 0, 0, stack};
	struct function f = {1, 1, 2, 3}, g = {1, 0, 2, 3};
	call(&s, 2, &f);
	call(&s, 2, &g);
	call(&s, 1, &f);
	return s.top & 1;
}
`}, "whole", []string{"gcc-11 -O2 -gno-statement-frontiers -gno-variable-location-views", "gcc-12 -O2 -gno-statement-frontiers -gno-variable-location-views"}, 2, 1},
	} {
		for _, compiler := range tt.compilers {
			t.Run(tt.name+" "+compiler, func(t *testing.T) {
				cc, options, _ := strings.Cut(compiler, " ")
				hasWays(t, plantest.New(t, built(t, cc, options, tt.sources), tt.definition, plan.Options{}), tt.probes, tt.marked)
			})
		}
	}
}
