package tracer_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
)

// TestFrameEnds: at a return instruction the frame has ended, by whose registers LLVM describes what is in it. The slots still have what they had.
func TestFrameEnds(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	const source = `
volatile int sink;
__attribute__((noinline)) void change(int *p) { sink = *p; *p += 1; }
__attribute__((noinline)) int many(int a, int b, int c, int d, int e, int f, int g, int h, int i) { return sink + a + b + c + d + e + f + g + h + i; }
__attribute__((noinline)) int ends(int n, long b, long c, long d, long e, long f, int seventh)
{
	change(&n);
	if (many(1, 2, 3, 4, 5, n, 7, seventh, 9) == 0)
		return 7;
	change(&seventh);
	if (n == 6)
		return 3;
	return many(n, n, n, n, n, n, n, n, n);
}
int main(void)
{
	ends(5, 1, 2, 3, 4, 5, 77);
	ends(15, 1, 2, 3, 4, 5, 87);
	return 0;
}
`
	all := []string{"n=6", "seventh=78", "n=16", "seventh=88"}
	for _, tt := range []struct {
		compilers []string
		want      []string
	}{
		{[]string{"gcc-12 -O0", "clang-14 -O0", "clang-14 -O0 -fomit-frame-pointer", "clang-19 -O0", "clang-22 -O0"}, all},
		{[]string{"clang-22 -O2", "clang-22 -Os", "clang-22 -O2 -fno-omit-frame-pointer"}, all},
		{[]string{"clang-14 -O2", "clang-14 -Os"}, nil}, // its lists end before
	} {
		for _, compiler := range tt.compilers {
			words := strings.Fields(compiler)
			path, img := build(t, words[0], "ends.c", source, words[1:]...)
			var got []string
			for _, line := range traced(t, plans(t, img, "ends%exit n seventh"), "", path) {
				for _, v := range strings.Fields(line) {
					if strings.Contains(v, "=") {
						got = append(got, v)
					}
				}
			}
			if !cmp.Equal(got, tt.want) {
				t.Errorf("%s: %q", compiler, got)
			}
		}
	}
}

// TestFrameMadeLater: LLVM makes the frame on the paths that need it, behind what it says is the end of the prologue, and describes by the frame what the caller has passed on
// the stack.
func TestFrameMadeLater(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	const source = `
volatile int sink, ready, width = 3;
struct mark { long index, line, column; };
__attribute__((noinline)) void fill(char *room, long n) { for (long i = 0; i < 48; i++) room[i] = (char)(n + i); }
__attribute__((noinline)) int roll(struct mark m)
{
	char room[48];
	if (ready)
		return 1;
	if (width > m.column)
		return 2;
	fill(room, m.line);
	fill(room, m.index);
	sink = room[7];
	return room[5] + room[9];
}
int main(void)
{
	struct mark m = {4, 5, 6};
	for (int i = 0; i < 2; i++) { ready = i; sink = roll(m); }
	return 0;
}
`
	for _, compiler := range []string{"clang-14 -O2", "clang-16 -O2", "clang-19 -O1", "clang-19 -O2", "clang-22 -O2", "clang-22 -Os"} {
		words := strings.Fields(compiler)
		path, img := build(t, words[0], "frame.c", source, words[1:]...)
		for _, line := range traced(t, plans(t, img, "roll m.line"), "", path) {
			if strings.Contains(line, "line=") && !strings.Contains(line, "line=5") {
				t.Errorf("%s: %q", compiler, line)
			}
		}
	}
}

// TestBodyEnds: a location without a list is that of the body. What the body calls last has changed the register behind it.
func TestBodyEnds(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	const source = `
#include <string.h>
struct chunk { const char *data; int len; };
struct state { void *mem; struct chunk in; int line, pos, block, column; void *refs; char seen[4021]; };
struct node { void *mem; const char *data; int len, line, column, extra; };
volatile int sink;
__attribute__((noinline)) void use(struct state *s) { sink = s->line + s->seen[7]; }
static void start(void *mem, int line, int block, struct state *e, struct chunk *chunk, void *refs)
{
	int i;
	e->mem = mem;
	e->in = *chunk;
	e->line = line;
	e->pos = 0;
	e->block = block;
	e->column = 0;
	e->refs = refs;
	for (i = 0; i < 4021; i++)
		e->seen[i] = 0;
}
__attribute__((noinline)) void parse(void *mem, struct node *n, void *refs)
{
	struct state s;
	struct chunk c = {n->data, n->len};
	start(mem, n->line, n->column - 1 + n->extra, &s, &c, refs);
	while (c.len > 0 && c.data[c.len - 1] == ' ')
		c.len--;
	sink = c.len;
	use(&s);
}
int main(void)
{
	struct node n = {&n, "text ", 5, 11, 22, 33};
	parse(&n, &n, 0);
	return 0;
}
`
	for _, compiler := range []string{"clang-14 -O1", "clang-14 -O2", "clang-16 -O2", "clang-19 -O2", "clang-22 -O2"} {
		words := strings.Fields(compiler)
		path, img := build(t, words[0], "ends.c", source, words[1:]...)
		if got := traced(t, plans(t, img, "start%exit line block"), "", path); len(got) != 0 { // values that are not lost
			t.Errorf("%s: %q", compiler, got)
		}
	}
}
