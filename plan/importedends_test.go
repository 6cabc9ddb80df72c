package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestImportedEnds: LLVM says of no call of __assert_fail that it is one of that, and its code is behind the function's in the order of the blocks: nothing comes to a call from the one in
// front of it.
func TestImportedEnds(t *testing.T) {
	const source = `
#include <assert.h>
#include <stdlib.h>
volatile int sink;
static inline int part(int v)
{
	assert(v != 30);
	sink = v;
	return v * 3;
}
static inline int whole(int v)
{
	assert(v < 90);
	int r = part(v + 1) + sink;
	assert(r != 77);
	return r;
}
__attribute__((noinline)) int both(int v, int w)
{
	if (v & 1)
		return whole(v) + sink;
	sink = w;
	return part(w);
}
int main(int n, char **args)
{
	int sum = 0;
	for (int i = 0; i < 8; i++)
		sum += both(i, n);
	return sum & 1;
}
`
	for _, compiler := range []string{"clang-14", "clang-16", "clang-19", "clang-22"} {
		p := plantest.New(t, built(t, compiler, "-O2", map[string]string{"a.c": source}), "whole v", plan.Options{})
		if len(p.Sites) != 1 || p.Sites[0].Way.Again {
			t.Errorf("%s: %v", compiler, p.Sites)
		}
	}
}
