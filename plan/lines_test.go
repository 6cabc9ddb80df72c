package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestNestedLines: a function that is declared in another one's body has its own code, elsewhere.
func TestNestedLines(t *testing.T) {
	const source = `int outer(int n)
{
	int sum = n;
	int inner(int k)
	{
		return sum + k;
	}
	sum++;
	return inner(n) + inner(2);
}
int main(int argc, char **argv) { return outer(argc); }
`
	img := built(t, "gcc-12", "-O0", map[string]string{"a.c": source})
	p := plantest.New(t, img, "a.c:6 k", plan.Options{})
	if len(p.Sites) != 1 || p.Sites[0].Function != "inner" || marksOf(&p.Sites[0]) != "!" {
		t.Errorf("%v", p.Sites)
	}
	if p := plantest.New(t, img, "a.c:8 sum", plan.Options{}); len(p.Sites) != 1 || p.Sites[0].Function != "outer" {
		t.Errorf("%v", p.Sites)
	}
}

// TestUnset: what no instruction has stored before a line is nobody's value, in functions that call others too.
func TestUnset(t *testing.T) {
	const source = `#include <stdio.h>
#include <unistd.h>
struct pair { int a, b; };
__attribute__((noinline)) int get(int *p) { return *p; }
__attribute__((noinline)) int work(int n)
{
	char text[64];
	int some;
	struct pair pair;
	int late;
	pair.a = n;
	if (n > 3)
		some = 7;
	scanf("%d", &late);
	n += read(0, text, 10);
	return pair.a + n + text[0] + (n > 3 ? some : 1) + get(&late);
}
/* The copy of it that main calls does not store y: its result is not read. */
__attribute__((noinline)) int stores(int a, int b, int c, int d, int e, int f, int g)
{
	char x[30];
	int __attribute__((aligned(32))) y;
	y = 2;
	asm("nop" : "=m"(y) : "m"(y));
	x[0] = 25;
	asm volatile("nop" : "=m"(x[0]) : "m"(x[0]));
	return y;
}
int main(int argc, char **argv) { int l = 0; asm volatile("" : "=r"(l) : "0"(l)); stores(l + 1, l + 2, l + 3, l + 4, l + 5, l + 6, l + 30); return work(argc); }
`
	for _, tt := range []struct{ options, definition, want string }{
		{"-O0", "a.c:11 text some pair late n", "~~~~!"},
		{"-O0", "a.c:12 text some pair late n", "~~!~!"},
		{"-O0", "a.c:14 text some pair late n", "~!!~!"},
		{"-O0", "a.c:15 text some pair late n", "~!!!!"},
		{"-O0", "a.c:16 text some pair late n", "!!!!!"},
		{"-O2", "a.c:15 text late", "~!"},
		{"-O2", "a.c:16 text late", "!!"},
		{"-O3", "a.c:27 y x", "~! !!"},
	} {
		p := plantest.New(t, built(t, "gcc-12", tt.options, map[string]string{"a.c": source}), tt.definition, plan.Options{})
		got := ""
		for i := range p.Sites {
			if got != "" {
				got += " "
			}
			got += marksOf(&p.Sites[i])
		}
		if got != tt.want {
			t.Errorf("%s %s: %q, want %q", tt.options, tt.definition, got, tt.want)
		}
	}
}
